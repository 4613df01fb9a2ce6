// The panel that tells all of one node.

// Attributes that the page shows in other words: the reason, and programs as the work of a step.
const TOLD_ELSEWHERE = new Set(["reason", "program", "epilogue"]);

function row(name, ...what) {
  return element("div", { class: "row" }, element("dt", {}, name), element("dd", {}, ...what));
}

function section(title, ...rows) {
  return element("section", {}, element("h3", {}, title), element("dl", {}, ...rows));
}

function link(box, goTo) {
  return element("button", { class: "link", onclick: () => goTo(box) },
    element("i", { class: `swatch ${box.kind}` }), `${box.id} ${nameOf(box)}`.trim());
}

function listOf(boxes, goTo, most = 40) {
  const items = boxes.slice(0, most).map((box) => element("li", {}, link(box, goTo)));
  if (boxes.length > most) items.push(element("li", { class: "more" }, `and ${boxes.length - most} more`));
  return element("ul", { class: "links" }, ...items);
}

function describeStep(step, bound) {
  const rows = [row("work", step.work), row("result", element("code", {}, step.shape))];
  if (step.external) rows.push(row("kernel", "none: PyTorch runs it"));
  else if (bound) rows.push(row("kernel", element("code", {}, step.kernel)));
  else rows.push(row("kernel", "chosen at the first call"));
  if (bound) {
    if (step.flops) rows.push(row("flops", flops(step.flops)));
    rows.push(row("bytes", bytes(step.bytes)));
  }
  return section(`Step ${step.index}`, ...rows);
}

function describeInputs(box, goTo) {
  return box.inputs.map((input, i) =>
    row(String(i),
      input.box ? link(input.box, goTo) : element("code", {}, String(input.number)),
      input.type ? element("code", { class: "type" }, input.type) : null,
      input.into ? element("span", { class: "note" }, ` written to ${input.into}`) : null));
}

function describePlaces(box, graph, goTo) {
  if (box.view === "after") {
    if (box.node.name === "prologue")
      return [element("p", { class: "note" }, "Made from weights once, ahead of the first call that needs it.")];
    if (box.node.op === "input" && !box.readers.length)
      return [element("p", { class: "note" }, "Nothing reads it in a call: what was made of it ahead is read instead.")];
    const fused = box.made.filter((other) => other.node.op !== "input");
    const made = fused.length ? [element("h3", {}, "Made from, before the passes"), listOf(fused, goTo)] : [];
    const none = !box.steps.length && !["input", "output"].includes(box.kind)
      ? [element("p", { class: "note" }, "Needs no step: it is a view, a constant or made with another node.")] : [];
    return [...made, ...box.steps.map((step) => describeStep(step, graph.bound)), ...none];
  }
  if (!box.went.length)
    return [element("p", { class: "note" }, "No step needs it: the passes removed it.")];
  const steps = box.went.flatMap((other) => other.steps);
  return [
    element("h3", {}, "Went to, after the passes"),
    listOf(box.went, goTo),
    ...steps.slice(0, 8).map((step) => describeStep(step, graph.bound)),
  ];
}

// `goTo(box)` shows another node.
function showDetails(box, graph, goTo) {
  const panel = byId("details");
  panel.hidden = !box;
  if (!box) return;
  const { node } = box;
  const title = element("h2", {}, element("i", { class: `swatch ${box.kind}` }), nameOf(box));
  const close = element("button", { class: "close", title: "Close", onclick: () => goTo(null) }, "×");
  const facts = [row("op", element("code", {}, node.op)), row("kind", KINDS[box.kind])];
  if (node.name) facts.push(row("name", node.name));
  if (node.frozen) facts.push(row("frozen", "a weight or buffer that no call writes"));
  if (node.origin) facts.push(row("origin", element("code", {}, node.origin)));
  for (const [id, type, layout] of node.results)
    facts.push(row(`%${id}`, element("code", {}, type), layout ? element("code", { class: "type" }, layout) : null));
  const attributes = node.attrs.filter(([key]) => !TOLD_ELSEWHERE.has(key))
    .map(([key, text]) => row(key, element("code", {}, text)));
  panel.replaceChildren(
    close, title,
    ...(box.external ? [element("p", { class: "reason" }, box.external.reason)] : []),
    section("Node", ...facts),
    ...(attributes.length ? [section("Attributes", ...attributes)] : []),
    ...(box.inputs.length ? [section("Inputs", ...describeInputs(box, goTo))] : []),
    ...(box.readers.length ? [element("h3", {}, "Read by"), listOf(box.readers, goTo)] : []),
    ...describePlaces(box, graph, goTo));
  panel.scrollTop = 0;
}
