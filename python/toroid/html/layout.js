// Where boxes and edges lie: dagre finds it, in a worker so that the page answers meanwhile.

const GAP = 14;
const MOST_ORDERED = 1300; // boxes; more would take dagre too long to untangle, so they lie as they come

// Runs in the worker as well, so it uses nothing from outside but its arguments.
// sizes: [width, height] of each box; edges: [from, to]. Boxes without an edge stand in rows below.
function layOut(dagre, { sizes, edges, gap, mostOrdered }) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ ranker: "network-simplex", nodesep: gap, edgesep: gap / 2, ranksep: 2.4 * gap });
  const connected = new Set(edges.flat());
  sizes.forEach(([width, height], i) => connected.has(i) && graph.setNode(i, { width, height }));
  for (const [from, to] of edges) graph.setEdge(from, to, {});
  let width = 0, height = 0;
  if (connected.size) {
    dagre.layout(graph, { disableOptimalOrderHeuristic: connected.size > mostOrdered });
    ({ width, height } = graph.graph());
  }
  const alone = sizes.map((_, i) => i).filter((i) => !connected.has(i));
  const area = alone.reduce((sum, i) => sum + (sizes[i][0] + gap) * (sizes[i][1] + gap), 0);
  const wide = Math.max(width, 600, Math.sqrt(2 * area));
  const row = { x: 0, y: height ? height + 6 * gap : 0, height: 0 };
  const places = sizes.map(([w, h], i) => {
    if (connected.has(i)) return [graph.node(i).x, graph.node(i).y];
    if (row.x && row.x + w > wide) {
      row.y += row.height + gap;
      row.x = row.height = 0;
    }
    const place = [row.x + w / 2, row.y + h / 2];
    row.x += w + gap;
    row.height = Math.max(row.height, h);
    width = Math.max(width, row.x - gap);
    height = row.y + row.height;
    return place;
  });
  const lines = edges.map(([from, to]) => graph.edge(from, to).points.map(({ x, y }) => [x, y]));
  return { places, lines, width, height };
}

function makeWorker() {
  const source = [
    byId("dagre").textContent,
    layOut.toString(),
    "onmessage = (event) => postMessage(layOut(dagre, event.data));",
  ].join("\n");
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  return worker;
}

// Promises the layout; where a page may have no worker, it is made in place.
function findLayout(sizes, edges) {
  const input = { sizes, edges, gap: GAP, mostOrdered: MOST_ORDERED };
  return new Promise((resolve) => {
    let worker = null;
    try {
      worker = makeWorker();
    } catch {
      resolve(layOut(dagre, input));
      return;
    }
    const end = (result) => {
      worker.terminate();
      resolve(result);
    };
    worker.onmessage = (event) => end(event.data);
    worker.onerror = () => end(layOut(dagre, input));
    worker.postMessage(input);
  });
}
