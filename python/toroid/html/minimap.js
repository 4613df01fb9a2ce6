// The whole drawing in a corner, with a frame round what is seen; a click or drag goes there.

const MAP_WIDTH = 150, MAP_HEIGHT = 260;

class Minimap {
  constructor(canvas, goTo) {
    Object.assign(this, { canvas, layout: null });
    const go = (event) => {
      if (event.buttons !== 1) return;
      const { left, top } = canvas.getBoundingClientRect();
      goTo([(event.clientX - left) / this.scale, (event.clientY - top) / this.scale]);
    };
    canvas.addEventListener("pointerdown", go);
    canvas.addEventListener("pointermove", go);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.layout && this.draw(this.layout));
  }

  draw(layout) {
    this.layout = layout;
    this.scale = Math.min(MAP_WIDTH / layout.width, MAP_HEIGHT / layout.height);
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(24, layout.width * this.scale), height = Math.max(24, layout.height * this.scale);
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    this.picture = document.createElement("canvas");
    Object.assign(this.picture, { width: this.canvas.width, height: this.canvas.height });
    const pen = this.picture.getContext("2d");
    pen.scale(ratio * this.scale, ratio * this.scale);
    const style = getComputedStyle(document.documentElement);
    layout.boxes.forEach((box, i) => {
      const [x, y] = layout.places[i];
      const least = 1.5 / this.scale;
      const w = Math.max(least, box.width), h = Math.max(least, box.height);
      pen.fillStyle = style.getPropertyValue(`--${box.kind}-line`);
      pen.fillRect(x - w / 2, y - h / 2, w, h);
    });
  }

  // Shows what the camera sees; nothing where that is all.
  frame(camera) {
    if (!this.layout) return;
    const { width, height } = camera.frame;
    const all = camera.x >= 0 && camera.y >= 0 &&
      camera.x + this.layout.width * camera.scale <= width &&
      camera.y + this.layout.height * camera.scale <= height;
    this.canvas.hidden = all;
    if (all) return;
    const pen = this.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1, scale = (this.scale * ratio) / camera.scale;
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    pen.lineWidth = 2 * ratio;
    pen.strokeRect(-camera.x * scale, -camera.y * scale, width * scale, height * scale);
  }
}
