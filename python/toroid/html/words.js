// Numbers for people, and elements of the page. Texts only ever become text nodes.

function scaled(number, units, base) {
  let unit = 0;
  while (number >= base && unit + 1 < units.length) {
    number /= base;
    unit++;
  }
  const digits = unit === 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${units[unit]}`;
}

const bytes = (number) => scaled(number, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const flops = (number) => scaled(number, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"], 1000);
const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// element("a", {class: "x", onclick}, "text", otherElement)
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svgElement(tag, properties = {}, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const byId = (id) => document.getElementById(id);
