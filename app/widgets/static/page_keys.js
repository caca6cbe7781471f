// Keys that work wherever the focus is: `?` opens the sheet of keys, outside of text fields and dialogs; Ctrl+Enter and
// Ctrl+Shift+Enter reach their buttons from a choice too, which would keep any Enter for itself. While a dialog is open,
// its own button alone hears Ctrl+Enter, and nothing behind it hears a key: Streamlit lets every button of that key fire.

export default function ({ data }) {
  for (const [name, value] of Object.entries(data?.cookies ?? {})) {
    document.cookie = `${name}=${value}; path=/; max-age=31536000; SameSite=Lax`;
  }
  // Shortcuts that are switched off are heard by nothing; Ctrl+Enter and keys in text fields stay.
  const mute = (event) => {
    if (!data?.off || !event.isTrusted) return;
    const inText = event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable=true]");
    const isPlain = !event.ctrlKey && !event.metaKey && /^[1-5?]$/.test(event.key);
    if ((event.altKey && !event.ctrlKey) || (isPlain && !inText)) event.stopImmediatePropagation();
  };
  const sheet = (event) => {
    if (event.key !== "?" || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable=true], [role=dialog]")) return;
    event.preventDefault();
    document.querySelector(".st-key-keys button")?.click();
  };
  const within = (event) => {
    const dialog = document.querySelector("[data-testid=stDialog]");
    const enters = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (!dialog || !event.isTrusted || !(enters || event.altKey)) return;
    event.stopImmediatePropagation();
    if (!enters) return;
    event.preventDefault();
    const own = [...dialog.querySelectorAll("button[kind=primary]")].find((button) => !button.disabled && button.offsetParent);
    // A field tells what was typed when it is left; Escape is heard where the focus stays in the dialog.
    own?.focus();
    own?.click();
  };
  const enter = (event) => {
    if (event.key !== "Enter" || !event.isTrusted || !(event.ctrlKey || event.metaKey)) return;
    if (!event.composedPath()[0]?.matches?.("input[type=radio], input[type=checkbox], [role=radio], [role=combobox]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { key, code, ctrlKey, shiftKey, metaKey } = event;
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, ctrlKey, shiftKey, metaKey, bubbles: true }));
  };
  window.__showhowPageKeys?.();
  window.addEventListener("keydown", mute, true);
  document.addEventListener("keydown", sheet);
  window.addEventListener("keydown", within, true);
  window.addEventListener("keydown", enter, true);
  window.__showhowPageKeys = () => {
    window.removeEventListener("keydown", mute, true);
    document.removeEventListener("keydown", sheet);
    window.removeEventListener("keydown", within, true);
    window.removeEventListener("keydown", enter, true);
  };
  return window.__showhowPageKeys;
}
