// The table of steps: what runs, in order, with which kernel, and how much it has to do.

function share(value, most, text) {
  const width = most ? (100 * value) / most : 0;
  return element("td", { class: "share" }, element("i", { style: `width:${width.toFixed(1)}%` }), element("span", {}, text));
}

// `query` picks steps, "" all; `chosen(step)` hears of a click.
function showSteps(graph, query, chosen) {
  const most = (key) => Math.max(0, ...graph.steps.map((step) => step[key]));
  const [mostFlops, mostBytes] = [most("flops"), most("bytes")];
  const rows = graph.steps
    .filter((step) => !query || `${step.work}\n${step.kernel}\n${step.shape}`.toLowerCase().includes(query))
    .map((step) =>
      element("tr", { class: step.external ? "external" : "", onclick: () => chosen(step) },
        element("td", { class: "number" }, String(step.index)),
        element("td", {}, element("i", { class: `swatch ${step.box?.kind ?? "move"}` }), step.work),
        element("td", {}, element("code", {}, step.external ? "PyTorch" : step.kernel)),
        element("td", {}, element("code", {}, step.shape)),
        share(step.flops, mostFlops, step.flops ? flops(step.flops) : ""),
        share(step.bytes, mostBytes, graph.bound ? bytes(step.bytes) : "")));
  const head = ["", "work", "kernel", "result", "flops", "bytes"].map((name) => element("th", {}, name));
  const note = graph.bound
    ? "Flops of products, and bytes that the step reads and writes at least, at the sizes of the last call. Click a row to see its node."
    : "No call has run yet: kernels are chosen, and work is known, when sizes are.";
  byId("table").replaceChildren(
    element("p", { class: "note" }, note),
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
  return rows.length;
}
