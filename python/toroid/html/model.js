// The report's data as boxes: what is drawn of each node, and what is known of it.

// Kinds of boxes, in the order of the legend.
const KINDS = {
  external: "run by PyTorch",
  contract: "product, convolution, attention",
  map: "elementwise, fused",
  reduce: "reduction, norm, pooling",
  move: "copy, indexing, sorting",
  view: "view: no work",
  input: "input, output",
  weight: "weight, buffer, constant",
};

const KIND_OF_OP_KIND = {
  map: "map", fused: "map", view: "view", move: "move", pack: "move", contract: "contract",
  reduce: "reduce", row: "reduce", pool: "reduce", external: "external", sink: "input",
};

// What PyTorch runs, and why.
function externalOf(node) {
  if (node.kind !== "external") return null;
  const prefix = `${node.origin}: `, reason = node.reason ?? "";
  return { target: node.origin, reason: reason.startsWith(prefix) ? reason.slice(prefix.length) : reason };
}

function kindOf(node) {
  if (node.kind !== "source") return KIND_OF_OP_KIND[node.kind];
  return node.op === "input" && !node.frozen ? "input" : "weight";
}

// One graph before or after the passes.
function readView(name, table) {
  const boxes = table.nodes.map((node, index) => ({
    index,
    view: name,
    node,
    kind: kindOf(node),
    external: externalOf(node),
    id: node.results.map(([id]) => `%${id}`).join(" "),
    inputs: [],
    readers: [],
    steps: [],
    went: [], // before the passes: boxes after them
    made: [], // after the passes: boxes before them
  }));
  const maker = new Map();
  for (const box of boxes) for (const [id, type] of box.node.results) maker.set(id, { box, type });
  for (const box of boxes) {
    for (const [what, into] of box.node.operands) {
      const found = typeof what === "number" ? maker.get(what) : undefined;
      box.inputs.push(found ? { box: found.box, id: what, type: found.type, into } : { number: what, into });
      if (found && !found.box.readers.includes(box)) found.box.readers.push(box);
    }
  }
  return { name, boxes, symbols: table.symbols };
}

function nameOf(box) {
  if (box.node.op === "input") return box.node.name;
  return box.external?.target ?? box.node.op;
}

// Everything that the search looks at.
function searchText(box) {
  const { node } = box;
  const kernels = box.went.flatMap((other) => other.steps.map((step) => step.kernel));
  return [
    nameOf(box), node.op, node.origin, box.id, box.external?.reason,
    ...node.results.map(([, type]) => type),
    ...box.steps.flatMap((step) => [step.work, step.kernel]),
    ...kernels,
  ].join("\n").toLowerCase();
}

function readGraph(graph, number) {
  const read = { ...graph, number, views: {}, steps: [], bound: false };
  if (!graph.record) return read;
  const { before, after, places, steps, bound } = graph.record;
  read.views.before = readView("before", before);
  read.views.after = readView("after", after);
  read.bound = bound;
  read.steps = steps.map((step, index) => ({ ...step, index, box: read.views.after.boxes[step.node] }));
  for (const step of read.steps) step.box?.steps.push(step);
  places.forEach((list, index) => {
    const box = read.views.before.boxes[index];
    box.went = list.map((place) => read.views.after.boxes[place]);
    for (const other of box.went) other.made.push(box);
  });
  for (const view of Object.values(read.views))
    for (const box of view.boxes) box.text = searchText(box);
  return read;
}

function readReport(element) {
  const report = JSON.parse(element.textContent);
  return { ...report, graphs: report.graphs.map(readGraph) };
}
