// The search box: finds boxes by op, name, type, kernel or reason, and goes from one to the next.

const MOST_LISTED = 60;

class Search {
  constructor({ boxes, found, chosen }) {
    Object.assign(this, { boxes, found, chosen, hits: [], at: -1 });
    this.input = byId("search");
    this.list = byId("hits");
    this.input.addEventListener("input", () => this.run());
    for (const event of ["focus", "click"]) this.input.addEventListener(event, () => this.open(true));
    this.input.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!event.target.closest("#finder")) this.open(false);
    });
  }

  // Looks again, as after a change of what is shown.
  run() {
    const query = this.input.value.trim().toLowerCase();
    this.hits = query ? this.boxes().filter((box) => box.text.includes(query)) : [];
    this.at = -1;
    byId("count").textContent = query ? String(this.hits.length) : "";
    this.list.replaceChildren(...this.hits.slice(0, MOST_LISTED).map((box, i) => this.row(box, i)));
    if (this.hits.length > MOST_LISTED)
      this.list.append(element("li", { class: "more" }, `and ${this.hits.length - MOST_LISTED} more`));
    this.open(document.activeElement === this.input);
    this.found(this.hits, query);
  }

  row(box, i) {
    const type = box.node.results[0]?.[1] ?? "";
    return element("li", {},
      element("button", { onclick: () => this.go(i) },
        element("i", { class: `swatch ${box.kind}` }), `${nameOf(box)} `, element("small", {}, `${box.id} ${type}`)));
  }

  open(on) {
    this.list.hidden = !on || this.hits.length === 0;
  }

  go(i) {
    this.at = (i + this.hits.length) % this.hits.length;
    byId("count").textContent = `${this.at + 1}/${this.hits.length}`;
    this.list.querySelectorAll("button").forEach((button, k) => button.classList.toggle("current", k === this.at));
    this.open(false); // it would lie over the node
    this.chosen(this.hits[this.at]);
  }

  key(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.run();
      this.input.blur();
    } else if (this.hits.length && ["Enter", "ArrowDown", "ArrowUp"].includes(event.key)) {
      const back = event.key === "ArrowUp" || event.shiftKey;
      this.go(back ? Math.max(this.at, 0) - 1 : this.at + 1);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
