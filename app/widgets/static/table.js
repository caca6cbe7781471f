// Draws a table. What a world says goes into text nodes only, never into HTML.
// A cell that leads somewhere is a button; a click sends {to} as the trigger "go".

function cell(it, go) {
  const node = document.createElement("td");
  if (it === null) { node.textContent = "–"; return node; }
  if (it.number) node.className = "number";
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
  if (it.bars.length) node.append(barsOf(it));
  return node;
}

// Counts side by side, the highest as high as the line.
function barsOf(it) {
  const most = Math.max(...it.bars, 1);
  const drawn = document.createElement("span");
  drawn.className = "bars";
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", it.hint);
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
  const head = table.createTHead().insertRow();
  data.columns.forEach((name, place) => {
    const th = document.createElement("th");
    th.scope = "col";
    th.textContent = name;
    if (data.rows[0]?.[place]?.number) th.className = "number";
    head.append(th);
  });
  const body = table.createTBody();
  for (const row of data.rows) body.insertRow().append(...row.map((it) => cell(it, go)));
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  // A region that scrolls can be scrolled by keys.
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", data.label);
  scroll.append(table);
  host.replaceChildren(scroll);
}
