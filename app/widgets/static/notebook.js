// Draws a trace as a lab notebook. Text from a world goes into text nodes only, never into HTML.
// Acts are sent as one trigger, "act": {kind, step, ...}.

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "onclick") node.onclick = value;
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
  return node;
};

// Traces that open as an outline open expanded where "Expand all" was chosen last, in this browser.
const EXPANDED = "showhow_expanded";
const opensExpanded = () => { try { return localStorage.getItem(EXPANDED) === "yes"; } catch { return false; } };
const rememberExpanded = (expanded) => { try { localStorage.setItem(EXPANDED, expanded ? "yes" : "no"); } catch { /* a browser that stores nothing */ } };

// What is folded is drawn when it is opened first.
const folded = (summary, content) => {
  const details = el("details", {}, summary);
  details.ontoggle = () => { if (details.open && details.children.length === 1) details.append(...content().filter(Boolean)); };
  return details;
};

// All texts of a step, without the names of their fields.
const textsOf = (value, name = "") => typeof value === "string" ? (/^(kind|pointer|state|value_kind)$/.test(name) ? [] : [value])
  : value && typeof value === "object" ? Object.entries(value).flatMap(([key, part]) => textsOf(part, key)) : [];

function drawer(data, act, folds, offer) {
  // The title on the button of the form, where there is one.
  const titleOf = (step) => data.titles?.[step.tool] ?? step.tool_title;
  // A value that can fill an argument of the next action; `at` is {pointer, start?, end?} in its step's data.
  const value = (step, text, kind, at, strong) => {
    if (!data.editable || !text || !kind) return el("span", { className: strong ? "strong" : "" }, text ?? "");
    return el("button", {
      className: strong ? "value strong" : "value", type: "button", title: "Use it in the next action",
      onclick: (event) => {
        const pick = { kind: "pick", step: step.position, value: text, value_kind: kind, ...at };
        act(pick);
        offer(event, pick);
      },
    }, text);
  };

  const sentence = (step, s) => {
    const node = el("span", { className: "sentence-text" });
    node.dataset.pointer = s.pointer; node.dataset.step = step.position;
    let at = 0;
    for (const [start, end] of s.names) {
      node.append(s.text.slice(at, start), value(step, s.text.slice(start, end), "title", { pointer: s.pointer, start, end }));
      at = end;
    }
    node.append(s.text.slice(at));
    return node;
  };

  // What the language model answers from a text, with its quotations and whether they stand there.
  const answer = (step, a) => el("div", { className: "found " + a.sign },
    a.text && el("p", {}, value(step, a.text, "title", { pointer: "/answer" }, true)),
    a.quotes.map((q, i) => el("blockquote", {}, el("span", { className: "place", title: "sentence" }, String(q.place + 1)), value(step, q.text, "title", { pointer: `/quotes/${i}/text` }))),
    a.invented.map((words) => el("p", { className: "note" }, `Quoted, but not in the text: ${words}`)),
    el("p", { className: "verdict" }, a.words));

  // A long list has its first items, and the rest on request; the world has what no step stores.
  const more = (step, m) => {
    if (!m) return null;
    const total = ` of ${m.total.toLocaleString("en")}; the world has all`;
    // A link to the article on the Worlds page, which has all of it.
    const query = new URLSearchParams({ world: data.world, view: "look", ...(step.view.address ? { page: step.view.address } : { title: step.view.title }) });
    const beyond = m.total <= m.on_request ? "" : step.view.kind === "article" ? el("a", { href: `worlds?${query}`, target: "_blank" }, total) : total;
    return el("p", { className: "note more" }, `${m.shown.toLocaleString("en")} ${m.noun} shown`, beyond, ". ",
      m.on_request > m.shown ? el("button", { className: "act", type: "button", onclick: () => act({ kind: "complete", step: step.position }) },
        `Show ${m.on_request === m.total ? "all " : ""}${m.on_request.toLocaleString("en")} ${m.noun}`) : null);
  };

  // The newest search has more results on request: it runs again, with a larger limit.
  const moreResults = (step) => data.editable && step.more_results && step.position === data.last
    ? el("button", { className: "act", type: "button", onclick: () => act({ kind: "more", step: step.position }) }, `More results, up to ${step.more_results}`) : null;

  const views = {
    hits: (step, v) => [
      v.note && el("p", { className: "note" }, v.note),
      el("ul", { className: "hits" }, v.hits.map((h) => el("li", {},
        value(step, h.title, "title", { pointer: h.pointer + "/title" }, true),
        h.entity && el("span", { className: "id" }, " ", value(step, h.entity, "entity", { pointer: h.pointer + "/entity", label: h.title })),
        h.description && el("span", { className: "description" }, " – " + h.description),
        el("span", { className: "snippet" }, h.snippet)))),
      moreResults(step),
    ],
    pages: (step, v) => [
      v.note && el("p", { className: "note" }, v.note),
      el("ul", { className: "hits" }, v.pages.map((p) => el("li", {},
        el("strong", {}, p.title), " ",
        p.date && el("span", { className: "description" }, p.date + " "),
        el("span", { className: "id" }, value(step, p.address, "address", { pointer: p.pointer + "/address" })),
        el("span", { className: "snippet" }, p.snippet)))),
      moreResults(step),
    ],
    article: (step, v) => [
      el("div", {}, v.address ? [el("strong", {}, v.title), " ", v.date && el("span", { className: "description" }, v.date + " "), value(step, v.address, "address", { pointer: "/address" })] : value(step, v.title, "title", { pointer: "/title" }, true), v.redirected && el("span", { className: "description" }, ` redirected from ${v.redirected}`), v.entity && el("span", {}, " ", value(step, v.entity, "entity", { pointer: "/entity", label: v.title }))),
      v.note && el("p", { className: "note" }, v.note),
      v.answer && answer(step, v.answer),
      v.best.map((s) => el("p", { className: "sentence" }, el("span", { className: "place", title: "sentence" }, String(s.place + 1)), el("mark", {}, sentence(step, s)))),
      v.rest.length ? folded(el("summary", {}, `The whole ${v.address ? "page" : "article"}, ${v.count} sentences`),
        () => [el("div", { className: "scroll" }, v.rest.map((s) => el("p", { className: "sentence" },
          el("span", { className: "place" }, String(s.place + 1)), s.best ? el("mark", {}, sentence(step, s)) : sentence(step, s)))), more(step, v.more)]) : null,
    ],
    entities: (step, v) => [
      v.note && el("p", { className: "note" }, v.note),
      el("ul", { className: "hits" }, v.entities.map((e) => el("li", {}, e.literal
        ? value(step, e.literal.shown, e.literal.kind, { pointer: e.literal.pointer + "/literal" }, true)
        : [value(step, e.label, "title", { pointer: e.pointer + "/label" }, true), " ",
          value(step, e.id, e.kind, { pointer: e.pointer + "/id", label: e.label }), e.description && el("span", { className: "description" }, " – " + e.description)]))),
    ],
    queries: (step, v) => [v.note && el("p", { className: "note" }, v.note), v.candidates.map((c, i) => {
      const body = [el("div", {}, el("strong", {}, c.reading), " ", data.editable ? el("button", {
        className: "act", type: "button", onclick: () => act({ kind: "pick", step: step.position, value: c.sparql, value_kind: "query", pointer: c.pointer + "/sparql" }),
      }, "use this query") : null), el("pre", {}, c.sparql)];
      return i === 0 ? el("div", {}, body) : el("details", {}, el("summary", {}, c.reading), body);
    }), v.tried.length ? el("details", {}, el("summary", {}, `Queries of the language model that do not answer: ${v.tried.length}`),
      v.tried.map((t) => el("div", {}, el("pre", {}, t.sparql), el("p", { className: "note" }, t.trouble)))) : null],
    table: (step, v) => [
      v.rows.length ? el("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `Query result of step ${step.position}` }, el("table", {},
        el("thead", {}, el("tr", {}, v.columns.map((c) => el("th", { scope: "col" }, c)))),
        el("tbody", {}, v.rows.map((r) => el("tr", {}, r.map((c) => c === null ? el("td", {}, "–") : el("td", {},
          c.label ? [value(step, c.label, "title", { pointer: c.pointer + "/label" }), el("span", { className: "id" }, value(step, c.value, c.kind, { pointer: c.pointer + "/value", label: c.label }))]
            : value(step, c.shown, c.kind, { pointer: c.pointer + "/value" })))))))) : el("p", { className: "note" }, "The query gave no rows."),
      v.note && el("p", { className: "note" }, v.note),
    ],
    // An external tool's result: one line per value, indented below the value that holds it.
    lines: (step, v) => [
      v.note && el("p", { className: "note" }, v.note),
      el("div", { className: "scroll lines", tabIndex: 0, role: "region", ariaLabel: `Result of step ${step.position}` }, v.lines.map((l) => el("div", { style: `padding-left:${l.depth * 1.1}rem` },
        l.name && el("span", { className: "description" }, l.name + ": "), value(step, l.value, l.kind, { pointer: l.pointer })))),
    ],
    boolean: (step, v) => el("strong", {}, v.value ? "Yes" : "No"),
    text: (step, v) => el("pre", {}, v.text),
  };

  const observation = (step) => {
    if (step.state === "interrupted") return el("div", { className: "observation interrupted" }, data.interrupted ?? "This step was started but not finished: the program ended while the tool ran. Run it again or undo it.");
    if (step.state === "running") return el("div", { className: "observation" }, "Running …");
    if (step.state === "thought") return step.reply ? el("div", { className: "observation reply" }, step.reply) : null;
    if (step.error) return el("div", { className: "observation error", role: "note" }, step.error);
    return el("div", { className: "observation" }, views[step.view.kind](step, step.view), step.view.kind === "article" ? null : more(step, step.view.more));
  };

  const stars = (step) => {
    const set = el("fieldset", { className: "stars" }, el("legend", { className: "sr" }, `Rating of step ${step.position}`));
    for (let n = 1; n <= 5; n += 1) {
      set.append(el("button", {
        type: "button", className: n <= (step.rating ?? 0) ? "on" : "", disabled: !(data.editable || data.ratable), ariaPressed: String(n === step.rating), title: n === step.rating ? "Remove the rating" : `${n} of 5: ${data.scale[n - 1]}`,
        ariaLabel: `Rate step ${step.position}: ${n} of 5`, onclick: () => act({ kind: "rate", step: step.position, rating: n === step.rating ? 0 : n }),
      }, n <= (step.rating ?? 0) ? "★" : "☆"));
    }
    return set;
  };

  // What is long or a query stands on lines of its own; a long sentence reads on.
  const argument = (a) => a.value.includes("\n") || (a.value.length > 90 && /[{}<>]/.test(a.value))
    ? el("span", { className: "argument" }, el("span", { className: "name" }, a.name + ": "), a.origin && el("span", { className: "origin" }, a.origin), el("span", { className: "long" }, a.value))
    : el("span", { className: "argument" }, el("span", { className: "name" }, a.name + ": "), a.value, a.origin && el("span", { className: "origin" }, a.origin));

  // When the step was worked on, beside the others.
  const bar = (s) => {
    if (!data.timed || !s.span) return null;
    const spans = data.steps.map((other) => other.span).filter(Boolean);
    const first = Math.min(...spans.map((span) => span[0]));
    const seconds = Math.max(...spans.map((span) => span[0] + span[1])) - first || 1;
    const start = s.span[0] - first, length = s.span[1];
    return el("span", { className: "when", role: "img", ariaLabel: `begins at ${start.toFixed(2)} s, takes ${length.toFixed(2)} s`, title: `begins at ${start.toFixed(2)} s, takes ${length.toFixed(2)} s` },
      el("span", { style: `left:${Math.min(98, (100 * start) / seconds)}%; width:${Math.max(2, (100 * length) / seconds)}%` }));
  };
  const outline = (s) => el("button", { className: "outline", type: "button", ariaExpanded: "false", ariaLabel: `Show step ${s.position}: ${titleOf(s) ?? s.marks[0] ?? "thought"} ${s.result}`, onclick: () => fold(s, false) },
    el("span", { className: "what" }, data.thoughts && s.thought && (s.arguments.length || s.tool) ? el("span", { className: "why" }, s.thought) : null, el("b", {}, titleOf(s) ?? s.marks[0] ?? ""), " ", s.arguments.length ? s.arguments.map((a) => a.value).join(", ") : s.thought,
      s.result ? [" → ", el("span", { className: s.error ? "wrong" : "result" }, s.result)] : null),
    el("span", { className: "spent" }, s.spent), bar(s));
  const fold = (s, folded, focus = true) => {
    folds.steps[s.position] = folded;
    const item = folds.host.querySelector(`#step-${s.position}`);
    if (!item) return;
    item.classList.toggle("folded", folded);
    if (folded && !item.querySelector(".outline")) item.lastElementChild.prepend(outline(s));
    if (focus) item.querySelector(folded ? ".outline" : ".number").focus();
  };
  const isFolded = (s) => folds.steps[s.position] ?? folds.all ?? Boolean(data.folded && s.position !== data.focus && !opensExpanded());

  const step = (s, last) => el("li", { className: `step${s.is_span ? " span" : ""}${isFolded(s) ? " folded" : ""}`, id: `step-${s.position}`, style: s.depth ? `margin-left:${Math.min(s.depth, 8) * 1.6}rem` : null },
    el("button", { className: "number", type: "button", ariaExpanded: String(!isFolded(s)), ariaLabel: `Step ${s.position}`, title: "Fold or show the step", onclick: () => fold(s, !isFolded(s)) }, String(s.position)),
    el("div", {}, isFolded(s) ? outline(s) : null,
      s.thought ? el("p", { className: "thought" }, s.thought, s.marks.map((mark) => el("span", { className: "mark" }, mark)))
        : s.tool && (s.depth || s.node) ? null : el("p", { className: "thought none" }, "no thought written"),
      s.tool && el("p", { className: "action" }, el("span", { className: "tool", title: s.tool }, titleOf(s)), s.arguments.map(argument)),
      observation(s),
      s.notes.length ? el("ul", { className: "notes", ariaLabel: `Notes on step ${s.position}` }, s.notes.map((note) =>
        el("li", {}, el("strong", {}, note.label), note.text ? `: ${note.text}` : "", note.author ? el("span", { className: "author" }, ` – ${note.author}`) : null))) : null,
      el("div", { className: "meta" },
        s.state === "done" ? stars(s) : null,
        s.state === "done" && data.editable && last ? el("span", {}, "rate: keys ", el("kbd", {}, "1"), "–", el("kbd", {}, "5"), ", while you write with ", el("kbd", {}, "Alt+Shift")) : null,
        s.spent && el("span", { className: "spent", title: s.spent_details }, s.spent),
        s.edits ? el("span", { title: "The former values are stored." }, s.edits) : null,
        data.notable ? el("button", { className: "act", type: "button", title: "Comment on this step, or say what its tool lacks", onclick: () => act({ kind: "note", step: s.position }) }, "Note") : null,
        data.editable ? el("button", { className: "act", type: "button", onclick: () => act({ kind: "edit", step: s.position }) }, "Edit thought") : null,
        data.editable && s.tool && last ? el("button", { className: "act", type: "button", onclick: () => act({ kind: "again", step: s.position }) }, "Run again") : null,
        data.fixable ? [
          el("button", { className: "act", type: "button", title: "Do this step yourself; the steps before it are kept", onclick: () => act({ kind: "fix", step: s.position }) }, "Fix this"),
          data.changeable && s.is_skill_call ? el("button", { className: "act", type: "button", title: "Write the reply of this step yourself; the run goes on from there", onclick: () => act({ kind: "change", step: s.position }) }, "Change the reply") : null,
          el("button", { className: "act", type: "button", title: "Have it answered again from this step on; the steps before it are kept", onclick: () => act({ kind: "rerun", step: s.position }) }, "Ask again from here"),
        ] : null,
        data.forkable ? el("button", { className: "act", type: "button", title: "Start a new draft that keeps the steps up to this one", onclick: () => act({ kind: "fork", step: s.position }) }, "Fork here") : null)));

  // The answer, its marks of steps leading to them.
  const toStep = (number, text) => el("button", {
    className: "act", type: "button", title: `Show step ${number}`,
    onclick: (event) => {
      const shown = event.target.getRootNode().querySelector(`#step-${number}`);
      if (shown) {
        fold(data.steps.find((s) => s.position === number), false, false);
        shown.scrollIntoView({ block: "center", behavior: "smooth" });
      } else act({ kind: "show", step: number });
    },
  }, text);
  const linked = (text, links) => {
    const characters = Array.from(text), nodes = [];
    let at = 0;
    for (const { step, start, end } of links) {
      nodes.push(characters.slice(at, start).join(""), toStep(step, characters.slice(start, end).join("")));
      at = end;
    }
    return [...nodes, characters.slice(at).join("")];
  };
  const conclusion = (c) => el("section", { className: "conclusion", ariaLabel: "Answer" },
    el("p", { className: "answer" }, c.answer),
    c.response && el("p", { className: "response" }, linked(c.response, c.links)),
    c.agreement && el("p", { className: "agreement " + c.agreement.sign }, c.agreement.words),
    c.sources.length ? el("dl", {}, c.sources.map((a) => [el("dt", {}, a.name), el("dd", {}, a.value)])) : null,
    c.evidence.length ? el("p", { className: "meta" }, "Seen in ", c.evidence.map((n) => toStep(n, `step ${n}`))) : null,
    c.note && el("p", { className: "note" }, c.note));

  // The pages of a long trace.
  const pager = (place) => {
    const pages = Math.ceil(data.count / data.per_page);
    if (pages < 2) return null;
    const turn = (text, page) => el("button", { className: "act", type: "button", disabled: page < 0 || page >= pages, onclick: () => act({ kind: "page", page }) }, text);
    const first = data.page * data.per_page + 1;
    const field = el("input", { type: "number", min: 1, max: data.last, ariaLabel: "Number of the step", className: "number-of-step", placeholder: "step" });
    field.onkeydown = (event) => { if (event.key === "Enter" && field.value) act({ kind: "show", step: Number(field.value) }); };
    return el("nav", { className: "pager", ariaLabel: `Pages of steps, ${place}` },
      turn("First", data.page ? 0 : -1), turn("Earlier steps", data.page - 1),
      el("span", {}, `Steps ${first.toLocaleString("en")}–${(first + data.steps.length - 1).toLocaleString("en")} of ${data.count.toLocaleString("en")}`),
      turn("Later steps", data.page + 1), turn("Last", data.page < pages - 1 ? pages - 1 : -1),
      el("label", {}, "Go to ", field));
  };

  // Search, folding and copies of the whole trace.
  const bench = () => {
    if (!data.count || (data.editable && data.count < 2)) return null;
    const all = data.steps.every(isFolded);
    const turn = el("button", { className: "act", type: "button", onclick: () => {
      for (const s of data.steps) fold(s, !all, false);
      folds.all = !all; folds.steps = {};
      if (data.folded) rememberExpanded(all);
      turn.closest("nav").replaceWith(bench());
    } }, all ? "Expand all" : "Fold all");
    const field = el("input", { type: "search", className: "search", placeholder: "Search in the trace", ariaLabel: "Search in the trace", value: folds.query ?? "" });
    const count = el("span", { role: "status" });
    const filter = () => {
      folds.query = field.value;
      const query = field.value.trim().toLowerCase();
      let matches = 0;
      for (const s of data.steps) {
        const shown = !query || textsOf(s).join("\n").toLowerCase().includes(query);
        matches += shown;
        const item = folds.host.querySelector(`#step-${s.position}`);
        if (item) item.hidden = !shown;
      }
      count.textContent = query ? `${matches} of ${data.steps.length} steps${data.count > data.steps.length ? " of this page; Enter searches all" : ""}` : "";
    };
    field.oninput = filter;
    field.onkeydown = (event) => {
      if (event.key === "Enter" && field.value.trim() && data.count > data.steps.length) { field.value = ""; act({ kind: "search", text: folds.query.trim(), step: folds.match ?? 0 }); }
    };
    const copy = (format) => el("button", { className: "act", type: "button", onclick: () => act({ kind: "copy", format }) }, format);
    setTimeout(filter, 0);
    return el("nav", { className: "bench", ariaLabel: "The trace" }, turn, field, count, el("span", {}, "Copy as ", copy("JSON"), " ", copy("Markdown")));
  };

  return { step, conclusion, pager, toStep, bench };
}

// The text goes to the clipboard; a page without a secure address has the older way only.
async function copyText(text, say) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { value: text, className: "sr" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

// A clicked value is in the form already; the menu beside it has the other tools that take it.
function openMenu(data, root, event, pick, act) {
  root.querySelector(".takers")?.remove();
  const takers = (data.takers?.[pick.value_kind] ?? []).filter((tool) => tool.name !== data.tool);
  const box = event.currentTarget.getBoundingClientRect(), frame = root.querySelector(".notebook").getBoundingClientRect();
  const close = () => { menu.remove(); document.removeEventListener("pointerdown", outside, true); };
  const outside = (pressed) => { if (!pressed.composedPath().includes(menu)) close(); };
  const button = (text, run) => el("button", { type: "button", onclick: () => { close(); run(); } }, text);
  const menu = el("div", { className: "takers", role: "group", ariaLabel: `Use ${pick.value} with`, style: `left:${Math.max(0, Math.min(box.left - frame.left, frame.width - 260))}px; top:${box.bottom - frame.top + 3}px` },
    takers.map((tool) => button(tool.title, () => act({ ...pick, tool: tool.name }))),
    data.answerable ? button("Use as answer", () => act({ ...pick, is_answer: true })) : [],
    button("Copy", () => copyText(pick.value, () => {})));
  menu.onkeydown = (pressed) => { if (pressed.key === "Escape") { close(); event.target.focus?.(); } };
  root.querySelector(".live").before(menu);
  // A click by key goes on in the menu.
  if (event.detail === 0) menu.firstElementChild.focus();
  document.addEventListener("pointerdown", outside, true);
}

let waiting = null;
// Moves the focus once the server has drawn the form anew; with `scroll` the field comes into view, as in a narrow window
// where the form follows the steps.
function focusLater(choose, scroll = false) {
  // The latest request alone moves the focus.
  clearTimeout(waiting);
  const before = document.activeElement;
  const begun = performance.now();
  let ran = false;
  const look = () => {
    const state = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState;
    ran ||= state === "running";
    const waited = performance.now() - begun;
    if (waited > 4000) return;
    if (state === "running" || (!ran && waited < 350)) { waiting = setTimeout(look, 40); return; }
    const at = document.activeElement;
    // Who went on to another field meanwhile stays there.
    if (at && at !== before && at.matches("input, textarea")) return;
    if (at && at !== document.body && !at.closest(".st-key-composer, [data-testid=stBidiComponentRegular]")) return;
    if (document.querySelector("[role=dialog]")) return;
    const field = choose();
    field?.focus({ preventScroll: true });
    if (scroll) field?.scrollIntoView({ block: "nearest", behavior: "instant" });
  };
  waiting = setTimeout(look, 40);
}
// The step whose result was drawn last, until a key or a click says that its author goes on: a digit in the empty thought,
// where the focus was put, still rates it.
let unrated = null;
const toThought = () => document.querySelector(".st-key-form textarea");
// The first empty field; without one the first that the tool has, whose suggestion is replaced by what is typed.
const firstEmpty = () => {
  const fields = [...document.querySelectorAll(".st-key-form :is(textarea, input[type=text])")].filter((field) => field.offsetParent);
  const field = fields.find((other) => !other.value) ?? fields[1];
  if (field?.matches("input")) field.select();
  return field;
};

// A name that no chip offers: text selected inside one sentence can be taken as well, with its place.
function takeSelection(root, host, act) {
  host.querySelector(".take")?.remove();
  const selection = (root.getSelection ? root.getSelection() : document.getSelection());
  if (!selection || selection.isCollapsed || selection.rangeCount === 0) return;
  const range = selection.getRangeAt(0);
  const within = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest(".sentence-text");
  const home = within(range.startContainer);
  const text = selection.toString();
  if (!home || home !== within(range.endContainer) || !text.trim()) return;
  const before = document.createRange();
  before.selectNodeContents(home);
  before.setEnd(range.startContainer, range.startOffset);
  const start = Array.from(before.toString() + text.match(/^\s*/)[0]).length;
  const chosen = text.trim();
  const box = range.getBoundingClientRect(), frame = host.getBoundingClientRect();
  host.append(el("button", {
    className: "take", type: "button", style: `left:${box.left - frame.left}px; top:${box.bottom - frame.top + 4}px`,
    onclick: () => act({ kind: "pick", step: Number(home.dataset.step), pointer: home.dataset.pointer, start, end: start + Array.from(chosen).length, value: chosen, value_kind: "title" }),
  }, "Use the selection"));
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const host = parentElement.querySelector(".notebook");
  const act = (what) => setTriggerValue("act", { ...what, trace: data.trace, nonce: Math.random() });
  // What is folded stays so while the same trace is drawn again; a run that ends folds.
  const folds = host.folds?.trace === data.trace && host.folds.folded === data.folded ? host.folds : (host.folds = { trace: data.trace, folded: data.folded, steps: {}, host });
  const live = parentElement.querySelector(".live");
  const say = (text) => { live.textContent = text; };
  const draw = drawer(data, act, folds, (event, pick) => openMenu(data, parentElement, event, pick, act));
  const before = Number(host.dataset.count ?? -1);
  const opened = new Set([...host.querySelectorAll("details[open]")].map((d) => d.closest("li")?.id + d.querySelector("summary")?.textContent));
  const list = el("ol", { ariaLabel: "The trace so far" }, data.steps.map((s) => draw.step(s, s.position === data.last)));
  if (data.steps.length) list.start = data.steps[0].position;
  const content = data.steps.length ? [draw.bench(), draw.pager("above"), list, draw.pager("below")] : [el("p", { className: "empty" }, data.hint)];
  host.replaceChildren(...content.filter(Boolean));
  if (data.form) host.prepend(drawMethodForm(data.form, data, act, draw.toStep));
  if (data.conclusion) host.prepend(draw.conclusion(data.conclusion));
  if (data.answers.length) {
    host.append(el("dl", { className: "answers", ariaLabel: "Answers" }, data.answers.map((a) => [el("dt", {}, a.name), el("dd", {}, a.value)])));
  }
  if (data.spent) host.append(el("p", { className: "meta" }, `In all: ${data.spent}`));
  for (const d of host.querySelectorAll("details")) d.open = opened.has(d.closest("li")?.id + d.querySelector("summary")?.textContent);
  host.dataset.count = data.count;
  host.style.position = "relative";
  if (before >= 0 && data.count > before) {
    const latest = data.steps.find((s) => s.position === data.last);
    if (latest) say(`Step ${latest.position}: ${(data.titles?.[latest.tool] ?? latest.tool_title) ?? "thought"}. ${latest.error ? "Error: " : ""}${latest.result}`);
    if (data.editable) {
      host.querySelector("li.step:last-child")?.scrollIntoView({ block: "nearest", behavior: "instant" });
      focusLater(toThought);
      unrated = data.last;
    }
  }
  if (data.copied && host.dataset.copied !== data.copied.nonce) {
    host.dataset.copied = data.copied.nonce;
    copyText(data.copied.text, say);
  }

  // A link leads to a step: it is shown once, and stays marked.
  const focused = data.focus && host.querySelector(`#step-${data.focus}`);
  focused?.classList.add("focus");
  const request = `${data.trace} ${data.focus} ${data.focus_request}`;
  if (focused && host.dataset.focused !== request) {
    host.dataset.focused = request;
    focused.scrollIntoView({ block: "center", behavior: "instant" });
  }

  const root = host.getRootNode();
  const release = () => data.editable && setTimeout(() => takeSelection(root, host, act), 0);
  host.onmouseup = release;
  host.onkeyup = release;

  // Plain digits rate the last step, but never while a text field has the focus; with Alt and Shift they always do.
  const digit = (event) => {
    if (data.editable && event.altKey && event.code === "KeyT") { event.preventDefault(); toThought()?.focus(); return; }
    if (data.editable && event.altKey && !event.shiftKey && /^Digit\d$/.test(event.code)) focusLater(firstEmpty, true);
    if (data.editable && event.ctrlKey && event.shiftKey && event.key === "Enter") focusLater(firstEmpty, true);
    const rates = event.altKey && event.shiftKey ? event.code.match(/^Digit([1-5])$/)?.[1] : !event.altKey && event.key.match(/^[1-5]$/)?.[0];
    if (!data.editable || event.ctrlKey || event.metaKey || !rates) {
      if (!["Alt", "Shift", "Control", "Meta"].includes(event.key)) unrated = null;
      return;
    }
    const at = event.composedPath()[0];
    const isFresh = unrated === data.last && at === toThought() && !at.value && !document.documentElement.classList.contains("keys-off");
    unrated = null;
    if (document.querySelector("[role=dialog]") || (!event.altKey && !isFresh && at?.closest?.("input, textarea, select, [contenteditable=true], [role=dialog]"))) return;
    const last = data.steps.find((s) => s.position === data.last);
    if (last?.state !== "done") return;
    event.preventDefault();
    act({ kind: "rate", step: last.position, rating: Number(rates) });
    toThought()?.focus();
  };
  // The function runs again with every new data, without a clean-up between.
  host.release?.();
  const goOn = () => { unrated = null; };
  document.addEventListener("keydown", digit);
  document.addEventListener("pointerdown", goOn);
  // A clean-up can come after the next run, whose listeners it must not remove.
  return host.release = () => { document.removeEventListener("keydown", digit); document.removeEventListener("pointerdown", goOn); };
}
