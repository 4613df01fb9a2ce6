// The summary on top, and the lists at the side.

function showSummary(report) {
  byId("title").textContent = report.title;
  byId("about").textContent = report.about;
  const sum = (pick) => report.graphs.reduce((total, graph) => total + pick(graph), 0);
  const stat = (name) => sum((graph) => graph.stats[name] ?? 0);
  const steps = (name) => sum((graph) => graph.steps.reduce((total, step) => total + step[name], 0));
  const left = sum((graph) => (graph.fallback === null ? 0 : 1));
  const external = stat("external_nodes");
  const tiles = [
    ["graphs", report.graphs.length],
    ["graph breaks", report.breaks.length, report.breaks.length > 0],
    ...(left ? [["graphs run by PyTorch", left, true]] : []),
    ["native nodes", stat("native_nodes")],
    ["external nodes", external, external > 0],
    ["steps", stat("steps")],
    ["work of a call", flops(steps("flops"))],
    ["memory traffic", bytes(steps("bytes"))],
    ["packed weights", bytes(stat("weight_bytes"))],
    ["arena", bytes(stat("arena_bytes"))],
  ];
  byId("summary").replaceChildren(...tiles.map(([name, value, warns]) =>
    element("div", { class: warns ? "warns" : "" }, element("dd", {}, String(value)), element("dt", {}, name))));
}

function describeGraph(graph) {
  if (graph.fallback !== null) return `PyTorch runs it: ${graph.fallback}`;
  if (graph.compiler !== null) return `compiled by ${graph.compiler}`;
  const { stats } = graph;
  return [
    counted(stats.native_nodes, "native node"),
    counted(stats.external_nodes, "external node"),
    counted(stats.steps, "step"),
    `weights ${bytes(stats.weight_bytes)}`,
    `arena ${bytes(stats.arena_bytes)}`,
  ].join(", ");
}

// Graphs in the order in which they were compiled, and the places where Dynamo broke off.
function showGraphs(report, current, chosen) {
  const entries = report.graphs.map((graph) =>
    element("button", {
      class: `graph${graph === current ? " current" : ""}${graph.fallback !== null ? " left" : ""}`,
      onclick: () => chosen(graph),
    },
    element("b", {}, `Graph ${graph.number}`), ` ${graph.kind}`, element("small", {}, describeGraph(graph))));
  const breaks = report.breaks.map((reason) => element("li", { class: "break" }, reason));
  byId("graphs").replaceChildren(
    element("h2", {}, report.graphs.length === 1 ? "Graph" : "Graphs"), ...entries,
    ...(breaks.length ? [element("h2", {}, "Graph breaks"), element("ul", { class: "breaks" }, ...breaks)] : []));
}

function showSymbols(view) {
  const section = byId("symbols");
  section.hidden = !view?.symbols.length;
  section.querySelector("ul").replaceChildren(
    ...(view?.symbols ?? []).map((symbol) => element("li", {}, element("code", {}, symbol))));
}

function showExternals(view, chosen) {
  const section = byId("externals");
  const boxes = view?.boxes.filter((box) => box.external) ?? [];
  section.hidden = !boxes.length;
  section.querySelector("ul").replaceChildren(...boxes.map((box) =>
    element("li", {},
      element("button", { class: "external-node", onclick: () => chosen(box) },
        element("b", {}, box.external.target), element("small", {}, box.external.reason)))));
}

function showLegend(view) {
  const count = (kind) => view?.boxes.filter((box) => box.kind === kind).length ?? 0;
  byId("legend").querySelector("ul").replaceChildren(...Object.entries(KINDS).map(([kind, text]) =>
    element("li", { class: count(kind) ? "" : "absent" },
      element("i", { class: `swatch ${kind}` }), element("span", {}, text),
      element("small", {}, String(count(kind))))));
}
