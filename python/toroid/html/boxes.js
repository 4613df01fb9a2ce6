// What a box shows, and how large that makes it.

const FONTS = { title: "600 12px system-ui, sans-serif", line: "10.5px ui-monospace, Menlo, monospace" };
const LINE_HEIGHT = 15, PADDING = 9, MOST_CHARACTERS = 40;

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text, font) {
  ruler.font = FONTS[font];
  return ruler.measureText(text).width;
}

function linesOf(box) {
  const lines = [box.node.results.map(([, type]) => type).join(", ")];
  if (box.external) lines.push(box.external.reason);
  for (const step of box.steps.slice(0, 1)) {
    const work = step.work.match(/\{.*\}/);
    if (work) lines.push(work[0]);
    if (!step.external) lines.push(step.kernel);
  }
  return lines.filter(Boolean).map((line) => cut(line, MOST_CHARACTERS));
}

// Adds title, lines and size to each box.
function shapeBoxes(boxes) {
  for (const box of boxes) {
    box.title = cut(nameOf(box), MOST_CHARACTERS);
    box.lines = linesOf(box);
    const widths = [textWidth(box.title, "title"), ...box.lines.map((line) => textWidth(line, "line"))];
    box.width = Math.ceil(Math.max(48, ...widths) + 2 * PADDING);
    box.height = LINE_HEIGHT * (1 + box.lines.length) + 9;
  }
}

function drawBox(box, [x, y]) {
  const group = svgElement("g", {
    class: `node ${box.kind}`,
    "data-index": box.index,
    "data-op": box.node.op,
    transform: `translate(${x - box.width / 2} ${y - box.height / 2})`,
  });
  group.append(svgElement("rect", { width: box.width, height: box.height, rx: 5 }));
  const texts = [box.title, ...box.lines];
  texts.forEach((text, i) => {
    const at = { class: i ? "line" : "title", x: box.width / 2, y: LINE_HEIGHT * (i + 1) + 1 };
    group.append(svgElement("text", at, text));
  });
  return group;
}

// A line through the points that dagre gives, rounded at each.
function drawEdge(points) {
  const middle = ([ax, ay], [bx, by]) => `${((ax + bx) / 2).toFixed(1)} ${((ay + by) / 2).toFixed(1)}`;
  const plain = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  let path = `M${plain(points[0])}`;
  for (let i = 1; i + 1 < points.length; i++)
    path += `Q${plain(points[i])} ${i + 2 < points.length ? middle(points[i], points[i + 1]) : plain(points[i + 1])}`;
  if (points.length === 2) path += `L${plain(points[1])}`;
  return svgElement("path", { class: "edge", d: path, "marker-end": "url(#arrow)" });
}
