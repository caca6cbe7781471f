// Draws a table. What a world says goes into text nodes only, never into HTML.
// A cell that leads somewhere is a button; a click sends {to} as the trigger "go".

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

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const host = parentElement.querySelector(".sheet");
  const go = (to) => setTriggerValue("go", { to, nonce: Math.random() });
  const table = document.createElement("table");
  const columns = data.columns.map((_, place) => ({
    number: data.rows.some((row) => row[place]?.number),
    bars: Math.max(0, ...data.rows.map((row) => row[place]?.bars.length ?? 0)),
  }));
  const head = table.createTHead().insertRow();
  data.columns.forEach((name, place) => {
    const th = document.createElement("th");
    th.scope = "col";
    th.textContent = name;
    if (columns[place].number) th.className = "number";
    head.append(th);
  });
  const body = table.createTBody();
  for (const row of data.rows) body.insertRow().append(...row.map((it, place) => cell(it, go, columns[place])));
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  // A region that scrolls can be scrolled by keys.
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", data.label);
  scroll.append(table);
  host.replaceChildren(scroll);
}
