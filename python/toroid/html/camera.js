// What part of the drawing is seen: pan by dragging, zoom by wheel, pinch, buttons and keys.

const LEAST_SCALE = 0.02, MOST_SCALE = 4;
const FAR = 0.4; // below this scale texts are too small to read, and are not drawn

class Camera {
  constructor(svg, world, moved) {
    Object.assign(this, { svg, world, moved, x: 0, y: 0, scale: 1, size: { width: 1, height: 1 } });
    this.pointers = new Map();
    this.dragged = 0;
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"])
      svg.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
  }

  get frame() {
    return this.svg.getBoundingClientRect();
  }

  apply() {
    this.world.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    this.svg.classList.toggle("far", this.scale < FAR);
    this.moved();
  }

  move(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.apply();
  }

  // Zooms about a point of the frame; about its middle if none is given.
  zoom(factor, point) {
    const { width, height } = this.frame;
    const [px, py] = point ?? [width / 2, height / 2];
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.scale * factor));
    this.x = px - ((px - this.x) * scale) / this.scale;
    this.y = py - ((py - this.y) * scale) / this.scale;
    this.scale = scale;
    this.apply();
  }

  // Shows the whole drawing.
  fit() {
    const { width, height } = this.frame, margin = 24;
    const across = (width - 2 * margin) / this.size.width, down = (height - 2 * margin) / this.size.height;
    this.scale = Math.min(1, Math.max(LEAST_SCALE, Math.min(across, down)));
    this.centre([this.size.width / 2, this.size.height / 2]);
  }

  // Brings a point of the drawing to the middle, at a readable scale if `near`.
  centre([x, y], near = false) {
    const { width, height } = this.frame;
    if (near) this.scale = Math.max(this.scale, 0.9);
    this.x = width / 2 - x * this.scale;
    this.y = height / 2 - y * this.scale;
    this.apply();
  }

  wheel(event) {
    event.preventDefault();
    const { left, top } = this.frame;
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * 0.0015), [event.clientX - left, event.clientY - top]);
  }

  press(event) {
    if (this.pointers.size === 0) this.dragged = 0;
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
  }

  drag(event) {
    const from = this.pointers.get(event.pointerId);
    if (!from) return;
    const to = [event.clientX, event.clientY];
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    this.dragged += Math.hypot(dx, dy);
    // Captured no sooner, so that a click still reaches the box under the pointer.
    if (this.wasDrag()) this.svg.setPointerCapture(event.pointerId);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, to);
    if (!other) {
      this.move(dx, dy);
      return;
    }
    const { left, top } = this.frame;
    const span = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
    this.zoom(span(to) / Math.max(1, span(from)), [other[0] - left, other[1] - top]);
  }

  // Did the last press move the drawing, rather than click on something?
  wasDrag() {
    return this.dragged > 4;
  }
}
