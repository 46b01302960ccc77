// How long the calls took: a histogram with logarithmic bins, drawn in SVG.
const {el, ns, plural} = opscope;
// The page holds no address, not even this one.
const SVG = document.querySelector("#theme svg").namespaceURI;
const WIDTH = 360;
const HEIGHT = 84;

const shape = (tag, attributes, classes) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (classes) node.setAttribute("class", classes);
  return node;
};

const draw = (phase) => {
  const {edges, counts} = phase;
  const most = Math.max(...counts);
  const low = Math.log(Math.max(edges[0], 1));
  const span = Math.log(edges[edges.length - 1]) - low || 1;
  const x = (value) => (WIDTH * (Math.log(Math.max(value, 1)) - low)) / span;
  const svg = shape("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label":
      `${plural(phase.calls - phase.incomplete, "call")} from ${ns(edges[0])} to ` +
      `${ns(edges[edges.length - 1])}, median ${ns(phase.p50)}`,
  });
  counts.forEach((count, index) => {
    const [left, right] = [x(edges[index]), x(edges[index + 1])];
    const group = shape("g", {}, "bin");
    group.dataset.tip =
      `${ns(edges[index])} to ${ns(edges[index + 1])}\n${plural(count, "call")}`;
    // The whole height answers to the pointer, so that a low bar is as easy to meet as a high one.
    group.append(shape("rect", {x: left, y: 0, width: right - left, height: HEIGHT}, "room"));
    if (count) {
      const height = Math.max((HEIGHT * count) / most, 2);
      const width = Math.max(right - left - 1, 1);
      group.append(shape("rect", {x: left + 0.5, y: HEIGHT - height, width, height}, "count"));
    }
    svg.append(group);
  });
  for (const [value, classes] of [[phase.p50, "median"], [phase.p95, "late"]]) {
    const at = Math.min(x(value), WIDTH - 0.5);
    svg.append(shape("line", {x1: at, x2: at, y1: 0, y2: HEIGHT}, classes));
  }
  return {svg, most};
};

opscope.histogram = (phase) => {
  if (!phase.counts.length) return el("p", "soft", "No call ended while recorded.");
  const ended = phase.calls - phase.incomplete;
  if (ended === 1) return el("p", "soft", `One call: ${ns(phase.max)}. Nothing to compare it with.`);
  const {svg, most} = draw(phase);
  const axis = el("div", "axis");
  axis.append(
    el("span", "", ns(phase.edges[0])),
    el("span", "soft", `most in one bin: ${plural(most, "call")}`),
    el("span", "", ns(phase.edges[phase.edges.length - 1])),
  );
  const keys = el("div", "axis keys");
  keys.append(
    el("span", "key-median", `median ${ns(phase.p50)}`),
    el("span", "key-late", `95 % within ${ns(phase.p95)}`),
  );
  return el("div", "histogram", svg, axis, keys);
};
