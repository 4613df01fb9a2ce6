// One view of a graph on the canvas.

class Drawing {
  constructor({ chosen }) {
    this.svg = byId("drawing");
    this.world = byId("world");
    this.map = new Minimap(byId("map"), (point) => this.camera.centre(point));
    this.camera = new Camera(this.svg, this.world, () => this.map.frame(this.camera));
    this.layouts = { all: new Map(), unweighted: new Map() }; // by view
    this.box = null;
    this.svg.addEventListener("click", (event) => {
      if (this.camera.wasDrag()) return;
      const node = event.target.closest(".node");
      chosen(node ? this.shown.boxes[Number(node.dataset.index)] : null);
    });
  }

  // Lays the view out, if it was not, and draws it.
  async show(view, withWeights) {
    const known = this.layouts[withWeights ? "all" : "unweighted"];
    this.shown = view;
    document.body.dataset.ready = "";
    if (!known.has(view)) {
      byId("status").textContent = `laying out ${counted(view.boxes.length, "node")} …`;
      this.world.replaceChildren();
      known.set(view, this.layOut(view, withWeights));
    }
    const layout = await known.get(view);
    if (this.shown !== view) return false; // another was asked for meanwhile
    this.draw(layout);
    byId("status").textContent =
      `${counted(layout.boxes.length, "node")}, ${counted(layout.edges.length, "edge")}; ` +
      `laid out in ${(layout.milliseconds / 1000).toFixed(2)} s`;
    document.body.dataset.layout = Math.round(layout.milliseconds);
    document.body.dataset.ready = view.name;
    return true;
  }

  async layOut(view, withWeights) {
    const boxes = withWeights ? view.boxes : view.boxes.filter((box) => box.kind !== "weight");
    const number = new Map(boxes.map((box, i) => [box, i]));
    shapeBoxes(boxes);
    const edges = boxes.flatMap((box, i) =>
      box.readers.filter((reader) => number.has(reader)).map((reader) => [i, number.get(reader)]));
    const start = performance.now();
    const found = await findLayout(boxes.map((box) => [box.width, box.height]), edges);
    return { ...found, boxes, edges, milliseconds: performance.now() - start };
  }

  draw(layout) {
    this.box = null;
    this.elements = new Map();
    this.edges = new Map(layout.boxes.map((box) => [box, []]));
    this.places = new Map(layout.boxes.map((box, i) => [box, layout.places[i]]));
    const edges = svgElement("g"), nodes = svgElement("g");
    layout.edges.forEach(([from, to], i) => {
      const path = drawEdge(layout.lines[i]);
      this.edges.get(layout.boxes[from]).push(path);
      this.edges.get(layout.boxes[to]).push(path);
      edges.append(path);
    });
    layout.boxes.forEach((box, i) => {
      const drawn = drawBox(box, layout.places[i]);
      this.elements.set(box, drawn);
      nodes.append(drawn);
    });
    this.world.replaceChildren(edges, nodes);
    this.map.draw(layout);
    this.camera.size = layout;
    this.begin(layout);
  }

  // Shows a text in place of a drawing.
  clear(text) {
    this.shown = null;
    this.world.replaceChildren();
    this.map.canvas.hidden = true;
    byId("status").textContent = text;
    document.body.dataset.ready = "nothing";
  }

  // A graph that can be read as a whole is shown so; of a larger one, where it begins.
  begin(layout) {
    this.camera.fit();
    if (this.camera.scale >= FAR) return;
    const computed = layout.boxes.findIndex((box) => box.kind !== "weight" && box.kind !== "input");
    this.camera.scale = 0.7;
    this.camera.centre(layout.places[Math.max(0, computed)]);
    this.camera.move(0, Math.min(0, 24 - this.camera.y)); // no empty band above the first row
  }

  // Marks a box with its edges; null: none.
  select(box) {
    if (this.box) this.mark(this.box, false);
    this.box = box && this.elements.has(box) ? box : null;
    if (this.box) this.mark(this.box, true);
  }

  mark(box, on) {
    this.elements.get(box)?.classList.toggle("current", on);
    for (const edge of this.edges.get(box) ?? []) {
      edge.classList.toggle("current", on);
      if (on) edge.parentNode.append(edge); // over the others
    }
  }

  centre(box) {
    const place = this.places.get(box);
    if (place) this.camera.centre(place, true);
  }

  highlight(boxes) {
    const found = new Set(boxes);
    this.svg.classList.toggle("searching", found.size > 0);
    for (const [box, drawn] of this.elements) drawn.classList.toggle("hit", found.has(box));
  }
}
