// `?` opens the sheet of keys, outside of text fields and dialogs.

export default function () {
  const press = (event) => {
    if (event.key !== "?" || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.composedPath()[0]?.closest?.("input, textarea, select, [contenteditable=true], [role=dialog]")) return;
    event.preventDefault();
    document.querySelector(".st-key-keys button")?.click();
  };
  window.__showhowQuestionMark?.();
  document.addEventListener("keydown", press);
  window.__showhowQuestionMark = () => document.removeEventListener("keydown", press);
  return window.__showhowQuestionMark;
}
