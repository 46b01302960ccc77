// The parts of a call's time: their words, their order, and bars of them.
const {el, ns, percent} = opscope;

// [key, part of the colours, word, what it is]
const INSIDE = [
  ["python_ns", "python", "python", "its own Python code"],
  ["native_ns", "native", "native", "its own code, not written in Python"],
  ["sub_ns", "sub", "sub-ops", "sub-operators on its own lane"],
  ["wait_ns", "wait", "wait", "it was blocked"],
  ["dispatch_ns", "dispatch", "dispatch", "the framework's wrapper around it"],
  ["runtime_ns", "runtime", "runtime", "chores of the engine, garbage collection"],
  ["untracked_ns", "untracked", "untracked", "own time of which nothing more is known"],
];
const BESIDE = [
  ["elsewhere_ns", "elsewhere", "elsewhere", "what it caused on other host lanes"],
  ["device_ns", "device", "device", "what it caused on devices"],
  ["queue_ns", "queue", "queue", "waiting for a lane, before it ran"],
  ["sub_wait_ns", "wait", "waits in sub-ops", "what sub-operators themselves idled"],
];

const swatch = (part) => {
  const node = el("i", "swatch part p-" + part);
  node.setAttribute("aria-hidden", "true");
  return node;
};

// A stacked bar: times is a function from a key to nanoseconds, full is what fills the whole width.
const bar = (times, full, size = "") => {
  const wall = times("wall_ns");
  const node = el("span", ("bar-of-parts " + size).trim());
  node.setAttribute("role", "img");
  const words = [];
  for (const [key, part, word] of INSIDE) {
    const value = times(key);
    if (!value) continue;
    const piece = el("i", "part p-" + part);
    piece.style.width = (100 * value) / (full || wall || 1) + "%";
    piece.dataset.tip = word + "\n" + ns(value) + ", " + percent(value, wall);
    words.push(word + " " + percent(value, wall));
    node.append(piece);
  }
  node.setAttribute("aria-label", words.length ? words.join(", ") : "nothing measured");
  return node;
};

opscope.parts = {INSIDE, BESIDE, bar, swatch};
