// Saves what is being typed: posts it a moment after the last keystroke, when the page is hidden and when it goes,
// and counts the seconds in which the person is active (page visible, no pause of over 30 s).

const PAUSE = 600, IDLE = 30000, HEARTBEAT = 30000;

export default function (component) {
  const { data, parentElement } = component;
  const status = parentElement.querySelector(".status");
  const state = window.__showhowAutosave ??= { traces: {} };
  const mine = state.traces[data.scope] ??= { active: data.active, sent: JSON.stringify(data.content.fields), activeSent: data.active, seen: Date.now(), posted: Date.now() };
  // The function runs again with every new data, without a clean-up between.
  status.release?.();
  let timer = null;

  const inputs = () => Object.entries(data.watch)
    .map(([name, css]) => [name, document.querySelector(`.st-key-${css} textarea, .st-key-${css} input`)])
    .filter(([, input]) => input);
  const fields = () => ({ ...data.content.fields, ...Object.fromEntries(inputs().map(([name, input]) => [name, input.value])) });
  // A reply may come when another trace is shown already.
  const say = (text, wrong) => { if (status.scope !== data.scope) return; status.textContent = text; status.classList.toggle("wrong", Boolean(wrong)); };
  const at = (iso) => new Date(iso).toLocaleTimeString("en-GB");

  const post = async (last) => {
    // Typing begins a new trace; looking at its question does not.
    if (data.new && !mine.typed) return;
    // Fields that have left the page already would be stored as they were when it was drawn.
    if (Object.keys(data.watch).length && !inputs().length) return;
    const now = fields(), text = JSON.stringify(now);
    const stale = Date.now() - mine.posted > HEARTBEAT && mine.active !== mine.activeSent;
    if (text === mine.sent && !stale && !(last && mine.active !== mine.activeSent)) return;
    const former = mine.sent;
    mine.sent = text; mine.posted = Date.now(); mine.activeSent = mine.active;
    const body = JSON.stringify({ ...data.content, fields: now, active: mine.active });
    try {
      const reply = await fetch(data.url, { method: "POST", body, keepalive: body.length < 60000, headers: { "Content-Type": "application/json" } });
      const said = await reply.json();
      if (reply.ok) say(`Saved ${at(said.saved_at)}`);
      else { mine.sent = former; say(`Not saved: ${said.error}`, true); }
    } catch {
      mine.sent = former;
      say("Not saved: the server does not answer. What you typed stays on this page; it is tried again.", true);
      timer = setTimeout(post, 3000);
    }
  };

  const typed = (event) => {
    mine.seen = Date.now();
    // What is typed elsewhere, such as the reason in the dialog that skips the question, begins no trace.
    if (event.type !== "input" || !inputs().some(([, input]) => input === event.target)) return;
    mine.typed = true;
    clearTimeout(timer);
    timer = setTimeout(post, PAUSE);
  };
  const tick = setInterval(() => {
    if (data.timed && document.visibilityState === "visible" && Date.now() - mine.seen < IDLE) mine.active += 1;
    if (Date.now() - mine.posted > HEARTBEAT) post();
  }, 1000);
  const leave = () => { if (document.visibilityState === "hidden") post(true); };
  const gone = () => post(true);
  const kinds = ["input", "keydown", "pointerdown", "pointermove", "wheel"];
  for (const kind of kinds) document.addEventListener(kind, typed, { passive: true });
  document.addEventListener("visibilitychange", leave);
  window.addEventListener("pagehide", gone);
  if (status.scope !== data.scope) {
    status.scope = data.scope;
    say("");
  }
  if (data.saved_at) say(`Saved ${at(data.saved_at)}`);
  timer = setTimeout(post, PAUSE);

  // A clean-up can come after the next run, whose listeners it must not remove.
  return status.release = () => {
    clearTimeout(timer);
    clearInterval(tick);
    for (const kind of kinds) document.removeEventListener(kind, typed);
    document.removeEventListener("visibilitychange", leave);
    window.removeEventListener("pagehide", gone);
  };
}
