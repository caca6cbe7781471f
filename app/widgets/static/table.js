// Draws a table. What a world says goes into text nodes only, never into HTML.
// A cell that leads somewhere is a button; a click sends {to} as the trigger "go".
// Boxes mark rows; a change sends the ids of the marked ones as {ids} by the trigger "pick".

// `column` tells what its cells have: numbers, and the most bars.
function cell(it, go, column) {
  const node = document.createElement("td");
  if (it?.number ?? column.number) node.className = "number";
  if (it === null) {
    node.append("–");
    if (column.bars) node.append(barsOf({ bars: [] }, column.bars));
    return node;
  }
  if (it.whole) node.className = "whole";
  if (it.go) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Look at it";
    button.textContent = it.text;
    button.onclick = () => go(it.go);
    node.append(button);
  } else node.append(it.text);
  if (it.id) {
    const id = document.createElement("span");
    id.className = "id";
    id.textContent = it.id;
    node.append(id);
  }
  if (it.hint) node.title = it.hint;
  if (column.bars) node.append(barsOf(it, column.bars));
  return node;
}

// Counts side by side, the highest as high as the line; without counts, room for as many as other cells have.
function barsOf(it, room) {
  const most = Math.max(...it.bars, 1);
  const drawn = document.createElement("span");
  drawn.className = it.bars.length ? "bars" : "bars none";
  drawn.style.setProperty("--room", room);
  if (it.bars.length) {
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", it.hint);
  }
  for (const count of it.bars) {
    const bar = document.createElement("span");
    bar.style.height = `${(count / most) * 100}%`;
    drawn.append(bar);
  }
  return drawn;
}

// A box in front of a row, or of all rows; `id` finds it again once the table is drawn anew.
function box(tag, id, label, checked, change) {
  const node = document.createElement(tag);
  node.className = "box";
  const input = document.createElement("input");
  input.type = "checkbox";
  input.checked = checked;
  input.dataset.pick = id;
  input.setAttribute("aria-label", label);
  input.onchange = () => change(input.checked);
  node.append(input);
  return node;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const host = parentElement.querySelector(".sheet");
  const focused = host.getRootNode().activeElement?.dataset?.pick;
  const go = (to) => setTriggerValue("go", { to, nonce: Math.random() });
  const table = document.createElement("table");
  const columns = data.columns.map((_, place) => ({
    number: data.rows.some((row) => row[place]?.number),
    bars: Math.max(0, ...data.rows.map((row) => row[place]?.bars.length ?? 0)),
  }));
  const head = table.createTHead().insertRow();
  const ids = data.picked ? data.rows.map((row) => row[0].pick).filter(Boolean) : [];
  const picked = new Set(ids.filter((id) => data.picked.includes(id)));
  const send = (marked) => setTriggerValue("pick", { ids: marked, nonce: Math.random() });
  if (data.picked) {
    const all = box("th", "all", "Mark all on this page", picked.size === ids.length, (on) => send(on ? ids : []));
    all.scope = "col";
    head.append(all);
  }
  data.columns.forEach((name, place) => {
    const th = document.createElement("th");
    th.scope = "col";
    th.textContent = name;
    if (columns[place].number) th.className = "number";
    head.append(th);
  });
  const body = table.createTBody();
  for (const row of data.rows) {
    const line = body.insertRow();
    const id = row[0]?.pick;
    if (data.picked) {
      const mark = (on) => (on ? picked.add(id) : picked.delete(id)) && send([...picked]);
      line.append(id ? box("td", id, `Mark ${row[0].text}`, picked.has(id), mark) : document.createElement("td"));
    }
    line.append(...row.map((it, place) => cell(it, go, columns[place])));
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  // A region that scrolls can be scrolled by keys.
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", data.label);
  scroll.append(table);
  host.replaceChildren(scroll);
  if (focused) host.querySelector(`[data-pick="${CSS.escape(focused)}"]`)?.focus();
}
