// Draws boxes over lines. What a world calls its people goes into text nodes only, never into HTML.
// A box that leads somewhere is a button; a click sends {to} as the trigger "go".

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
  node.append(...children);
  return node;
}

function lines(data) {
  const head = shape("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    shape("path", { d: "M0,0 L8,4 L0,8 z", class: "head" }));
  const drawn = data.lines.map((line) => shape("polyline", {
    points: line.points.map(([x, y]) => `${x},${y}`).join(" "), ...(line.arrow ? { "marker-end": "url(#head)" } : {}),
  }));
  return shape("svg", { width: data.width, height: data.height, "aria-hidden": "true" }, shape("defs", {}, head), ...drawn);
}

function box(it, go) {
  const node = document.createElement(it.go ? "button" : "div");
  node.className = `box ${it.look}`;
  node.title = it.note ? `${it.label}\n${it.note}` : it.label;
  node.style.cssText = `left:${it.x}px; top:${it.y}px; width:${it.width}px; height:${it.height}px`;
  const part = (name, text) => {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    node.append(span);
  };
  part("label", it.label);
  if (it.note && it.height > 30) part("note", it.note);
  if (it.go) {
    node.type = "button";
    node.onclick = () => go(it.go);
  }
  return node;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const host = parentElement.querySelector(".drawing");
  const held = host.contains(host.getRootNode().activeElement);
  const canvas = document.createElement("div");
  canvas.className = "canvas";
  canvas.style.cssText = `width:${data.width}px; height:${data.height}px`;
  canvas.append(lines(data), ...data.boxes.map((it) => box(it, (to) => setTriggerValue("go", { to, nonce: Math.random() }))));
  host.setAttribute("role", "group");
  host.setAttribute("aria-label", data.label);
  host.replaceChildren(canvas);
  const centre = host.querySelector(".centre");
  if (centre) {
    host.scrollLeft = centre.offsetLeft + centre.offsetWidth / 2 - host.clientWidth / 2;
    // Whoever walks by keyboard goes on from where they went.
    if (held) { centre.tabIndex = -1; centre.focus({ preventScroll: true }); }
  }
}
