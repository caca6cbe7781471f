// Keys that work wherever the focus is: `?` opens the help, outside of text fields and dialogs; Ctrl+Enter and
// Ctrl+Shift+Enter reach their buttons from a choice too, which would keep any Enter for itself. While a dialog is open,
// its own button alone hears Ctrl+Enter, and nothing behind it hears a key: Streamlit lets every button of that key fire.
// While Alt is held, the buttons show their keys, which are no part of their names. Selected buttons and the open page say so to a screen reader. After the
// connection to the server was lost, the page runs anew, with what is in its fields.

const SELECTIONS = [".st-key-views", ".st-key-tools", ".st-key-list", ".st-key-list_questions", ".st-key-list_demonstrations"]
  .map((list) => `${list} button[kind]`).join(", ");

function describe() {
  for (const button of document.querySelectorAll(SELECTIONS)) {
    const pressed = String(button.getAttribute("kind") === "primary");
    if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
  }
  // The key of a button is shown while it is hovered; its name stays the same.
  for (const hint of document.querySelectorAll("button kbd:not([aria-hidden])")) {
    hint.setAttribute("aria-hidden", "true");
    hint.closest("button").setAttribute("aria-keyshortcuts", hint.textContent.replaceAll(" ", "").replace("Ctrl", "Control"));
  }
  for (const link of document.querySelectorAll("[data-testid=stTopNavLink]")) {
    const open = new URL(link.href).pathname.replace(/\/$/, "") === location.pathname.replace(/\/$/, "");
    if (open !== link.hasAttribute("aria-current")) open ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
}

export default function ({ data, setTriggerValue }) {
  for (const [name, value] of Object.entries(data?.cookies ?? {})) {
    document.cookie = `${name}=${value}; path=/; max-age=31536000; SameSite=Lax`;
  }
  document.documentElement.classList.toggle("keys-off", Boolean(data?.off));
  document.documentElement.style.setProperty("--page", JSON.stringify(data?.page ?? ""));
  document.dispatchEvent(new Event("showhow:theme"));
  // A chart has the colours of the theme in which the page ran.
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const rerun = () => setTimeout(() => setTriggerValue("rerun", true), 100);
  // Shortcuts that are switched off are heard by nothing; Ctrl+Enter and keys in text fields stay.
  const mute = (event) => {
    if (!data?.off || !event.isTrusted) return;
    const inText = event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable=true]");
    const isPlain = !event.ctrlKey && !event.metaKey && /^[1-5?]$/.test(event.key);
    const isArrow = /^Arrow(Left|Right|Down)$/.test(event.key) && event.target === document.body;
    if ((event.altKey && !event.ctrlKey) || isArrow || (isPlain && !inText)) event.stopImmediatePropagation();
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
  // A key of the reviewer's decision comes with the comment as it is typed: a field tells its text when it is left.
  const commit = (event) => {
    const field = event.target;
    if (!event.altKey || !event.isTrusted || !field.matches?.(".st-key-decision input")) return;
    field.blur();
    field.focus();
  };
  const enter = (event) => {
    if (event.key !== "Enter" || !event.isTrusted || !(event.ctrlKey || event.metaKey)) return;
    if (!event.composedPath()[0]?.matches?.("input[type=radio], input[type=checkbox], [role=radio], [role=combobox]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { key, code, ctrlKey, shiftKey, metaKey } = event;
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, ctrlKey, shiftKey, metaKey, bubbles: true }));
  };
  const hints = (event) => document.documentElement.classList.toggle("keys-shown", event.type === "keydown" && event.key === "Alt");
  window.__showhowPageKeys?.();
  // Once a frame, since a page changes many times while it is drawn.
  let planned = false;
  const observer = new MutationObserver(() => {
    if (planned) return;
    planned = true;
    requestAnimationFrame(() => { planned = false; describe(); });
  });
  observer.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["kind"] });
  describe();
  window.addEventListener("keydown", mute, true);
  document.addEventListener("keydown", sheet);
  document.addEventListener("showhow:reconnected", rerun);
  scheme.addEventListener("change", rerun);
  window.addEventListener("keydown", within, true);
  window.addEventListener("keydown", enter, true);
  window.addEventListener("keydown", commit, true);
  for (const kind of ["keydown", "keyup", "blur"]) window.addEventListener(kind, hints, true);
  window.__showhowPageKeys = () => {
    observer.disconnect();
    window.removeEventListener("keydown", mute, true);
    document.removeEventListener("keydown", sheet);
    document.removeEventListener("showhow:reconnected", rerun);
    scheme.removeEventListener("change", rerun);
    window.removeEventListener("keydown", within, true);
    window.removeEventListener("keydown", enter, true);
    window.removeEventListener("keydown", commit, true);
    for (const kind of ["keydown", "keyup", "blur"]) window.removeEventListener(kind, hints, true);
  };
  return window.__showhowPageKeys;
}
