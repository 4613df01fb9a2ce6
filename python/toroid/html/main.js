// What is shown, and how the parts of the page hear of each other.

const report = readReport(byId("data"));
const state = { graph: report.graphs[0] ?? null, tab: "after", box: null };

const TABS = [
  ["before", "Before passes", (graph) => graph.views.before?.boxes.length],
  ["after", "After passes", (graph) => graph.views.after?.boxes.length],
  ["steps", "Steps", (graph) => graph.steps.length],
];

const viewOf = (graph, tab) => graph?.views[tab === "steps" ? "after" : tab] ?? null;

const drawing = new Drawing({ chosen: (box) => choose(box) });
const search = new Search({
  boxes: () => viewOf(state.graph, state.tab)?.boxes ?? [],
  found: (hits, query) => {
    if (state.tab === "steps") byId("count").textContent = query ? String(showStepTable(query)) : (showStepTable(""), "");
    else if (drawing.elements) drawing.highlight(hits);
  },
  chosen: (box) => goTo(box),
});

function showStepTable(query) {
  return showSteps(state.graph, query, (step) => goTo(step.box));
}

function showTabs() {
  byId("tabs").replaceChildren(...TABS.map(([tab, text, count]) =>
    element("button", {
      role: "tab",
      "data-tab": tab,
      "aria-selected": tab === state.tab,
      onclick: () => show(state.graph, tab),
    }, text, element("small", {}, String(count(state.graph) ?? 0)))));
}

function remember() {
  const parts = [`graph=${state.graph.number}`, `tab=${state.tab}`];
  if (state.box) parts.push(`node=${state.box.index}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

// Shows a graph's tab; a drawing may take a moment to lay out.
async function show(graph, tab) {
  Object.assign(state, { graph, tab, box: null });
  const view = viewOf(graph, tab);
  showTabs();
  showGraphs(report, graph, (other) => show(other, other.steps.length ? state.tab : "after"));
  showSymbols(view);
  showExternals(view, goTo);
  showLegend(view);
  showDetails(null);
  byId("canvas").hidden = tab === "steps";
  byId("table").hidden = tab !== "steps";
  byId("weights-switch").hidden = byId("zoom").hidden = tab === "steps";
  remember();
  if (!view) {
    drawing.clear(describeGraph(graph));
    return;
  }
  if (tab !== "steps" && !(await drawing.show(view, byId("weights").checked))) return;
  search.run();
}

// Marks a node of what is shown and tells of it.
function choose(box) {
  state.box = box;
  drawing.select(box);
  showDetails(box, state.graph, goTo);
  remember();
}

// Goes to a node, wherever it is; null: to none.
async function goTo(box) {
  if (box && (box.view !== state.tab || state.tab === "steps")) await show(state.graph, box.view);
  if (box?.kind === "weight" && !byId("weights").checked) {
    byId("weights").checked = true;
    await show(state.graph, box.view);
  }
  choose(box);
  if (box) drawing.centre(box);
}

function key(event) {
  if (event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  const camera = drawing.camera;
  const actions = {
    "/": () => byId("search").select(),
    "+": () => camera.zoom(1.3),
    "=": () => camera.zoom(1.3),
    "-": () => camera.zoom(1 / 1.3),
    f: () => camera.fit(),
    Escape: () => choose(null),
    ArrowLeft: () => camera.move(80, 0),
    ArrowRight: () => camera.move(-80, 0),
    ArrowUp: () => camera.move(0, 80),
    ArrowDown: () => camera.move(0, -80),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

async function start() {
  document.addEventListener("keydown", key);
  byId("zoom").addEventListener("click", (event) => {
    const { zoom } = event.target.dataset;
    if (zoom === "fit") drawing.camera.fit();
    else if (zoom) drawing.camera.zoom(zoom === "in" ? 1.3 : 1 / 1.3);
  });
  byId("weights").addEventListener("change", () => show(state.graph, state.tab));
  showSummary(report);
  if (!state.graph) {
    byId("status").textContent = "No graph was compiled.";
    return;
  }
  const asked = new URLSearchParams(location.hash.slice(1));
  const graph = report.graphs[Number(asked.get("graph"))] ?? state.graph;
  const tab = TABS.some(([name]) => name === asked.get("tab")) ? asked.get("tab") : state.tab;
  const box = asked.has("node") ? viewOf(graph, tab)?.boxes[Number(asked.get("node"))] : null;
  await show(graph, tab);
  if (box) await goTo(box);
}

start();
