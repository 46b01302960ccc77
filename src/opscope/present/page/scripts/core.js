// What all scripts of the page share. They run one after another inside one function.
const opscope = (() => {
  const heard = new Map(); // event name -> functions
  const parsed = new Map(); // element id -> its data
  const colours = new Map(); // part -> colour of the theme at hand
  const root = document.documentElement;

  // Control characters, lone surrogates, reordering marks: shown as escapes, never obeyed.
  const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
  const escaped = (char) => {
    const code = char.codePointAt(0);
    const hex = code.toString(16);
    if (code > 0xffff) return "\\U" + hex.padStart(8, "0");
    return code > 0xff ? "\\u" + hex.padStart(4, "0") : "\\x" + hex.padStart(2, "0");
  };
  const visible = (text) => String(text).replace(UNSEEN, escaped);

  // The text of a node, as text and nothing else; gives the node back.
  const text = (node, string) => {
    node.textContent = visible(string);
    return node;
  };

  const on = (name, fn) => {
    if (!heard.has(name)) heard.set(name, []);
    heard.get(name).push(fn);
  };
  const emit = (name, detail = {}) => {
    for (const fn of heard.get(name) || []) fn(detail);
  };

  const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

  // The unit in which the largest value has one to three digits before the point, or four where
  // most of the values would be nearly nothing else. The same rule as in the terminal.
  const unit = (values) => {
    const known = values.filter(Boolean).sort((a, b) => a - b);
    const largest = known.length ? known[known.length - 1] : 0;
    const usual = known.length ? known[known.length >> 1] : 0;
    const fits = (size) => largest >= size && !(largest < 10 * size && usual * 10 < size);
    const [name, size] = UNITS.find((entry) => fits(entry[1])) || UNITS[3];
    const digits = String(Math.floor(largest / size)).length;
    return {name, size, decimals: size === 1 ? 0 : Math.max(3 - digits, 1)};
  };
  const grouped = (value, decimals = 0) =>
    value.toLocaleString("en-US", {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
  // A value in that unit: "–" for what is not measured, "<0.1" rather than a zero that is none.
  const amount = (value, {size, decimals}) => {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    const smallest = 10 ** -decimals;
    if (value / size < smallest / 2) return "<" + smallest.toFixed(decimals);
    return grouped(value / size, decimals);
  };
  const ns = (value) => {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    const one = unit([Math.abs(value)]);
    return (value < 0 ? "−" : "") + amount(Math.abs(value), one) + " " + one.name;
  };

  const colour = (part) => {
    if (!colours.has(part)) {
      colours.set(part, getComputedStyle(root).getPropertyValue("--part-" + part).trim());
    }
    return colours.get(part);
  };
  on("theme", () => colours.clear());

  const data = (id) => {
    if (!parsed.has(id)) {
      const element = document.getElementById(id);
      parsed.set(id, element ? JSON.parse(element.textContent) : null);
    }
    return parsed.get(id);
  };

  // An element with classes and children; a child that is a string becomes text.
  const el = (tag, classes, ...children) => {
    const node = document.createElement(tag);
    if (classes) node.className = classes;
    for (const child of children) {
      if (child === null || child === undefined) continue;
      node.append(typeof child === "string" ? document.createTextNode(visible(child)) : child);
    }
    return node;
  };
  // A name that may be cut where there is no room: whole in its title.
  const name = (string, classes = "") => {
    const node = el("span", ("name " + classes).trim(), string);
    node.title = visible(string);
    return node;
  };
  const percent = (part, whole) => {
    if (!whole || part === null || part === undefined) return "–";
    const share = (100 * part) / whole;
    if (share > 0 && share < 1) return "<1 %";
    return (share < 100 && share >= 99.5 ? ">99" : Math.round(share)) + " %";
  };
  const plural = (count, noun) => grouped(count) + " " + noun + (count === 1 ? "" : "s");

  document.addEventListener("opscope-theme", () => emit("theme"));
  return {
    ...{on, emit, ns, colour, data, text, visible},
    ...{el, name, unit, amount, grouped, percent, plural},
  };
})();
