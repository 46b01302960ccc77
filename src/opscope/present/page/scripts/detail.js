// What a row opens into: for each phase its parts, its calls, and what is inside it.
const {el, name, ns, unit, amount, grouped, percent, plural} = opscope;
const {INSIDE, BESIDE, bar, swatch} = opscope.parts;

const panel = (title, ...children) => el("div", "panel", el("h4", "", title), ...children);

const cell = (tag, classes, content) => el(tag, classes, content);
const sheet = (heads, rows) => {
  const table = el("table", "sheet");
  const head = el("tr");
  for (const [title, kind] of heads) {
    const th = cell("th", kind, title);
    th.scope = "col";
    head.append(th);
  }
  const body = el("tbody", "", ...rows);
  table.append(el("thead", "", head), body);
  return table;
};

const parts = (phase, times) => {
  const wall = times("wall_ns");
  const column = unit([...INSIDE, ...BESIDE].map(([key]) => times(key)).concat(wall));
  const line = ([key, part, word, about], share) => {
    const value = times(key);
    const label = el("th", "", swatch(part), word);
    label.scope = "row";
    label.dataset.tip = word + "\n" + about + (value === null ? "\nnot measured" : "");
    const share_ = share && value !== null ? percent(value, wall) : "";
    return el("tr", value ? "" : "nothing", label, cell("td", "num", amount(value, column)),
      cell("td", "num soft", share_));
  };
  const sum = el("tr", "sum", el("th", "", "total"), cell("td", "num", amount(wall, column)),
    cell("td", "num soft", "100 %"));
  const rows = INSIDE.filter(([key]) => times(key) !== null || key === "python_ns" ||
    key === "wait_ns").map((entry) => line(entry, true));
  const beside = BESIDE.filter(([key]) => times(key)).map((entry) => line(entry, false));
  if (beside.length) {
    const title = el("tr", "between", el("th", "", "beside the total"));
    title.firstChild.colSpan = 3;
    beside.unshift(title);
  }
  const heads = [["what", ""], [column.name, "num"], ["share", "num"]];
  return panel("Parts of its time", bar(times, 0, "medium"), sheet(heads, [...rows, sum, ...beside]));
};

const spread = (phase) => {
  const list = el("dl", "stats");
  const entries = [["mean", phase.mean], ["median", phase.p50], ["95 %", phase.p95],
    ["slowest", phase.max], ["first", phase.first]];
  for (const [word, value] of entries) {
    list.append(el("div", "", el("dt", "", word), el("dd", "num", ns(value))));
  }
  return panel("How long its calls took", list, opscope.histogram(phase));
};

const slowest = (phase) => {
  if (!phase.slowest.length) return null;
  const column = unit(phase.slowest.map((call) => call[2]));
  const rows = phase.slowest.map(([call, start, wall, lane]) => {
    const button = el("button", "link", `call ${call}`);
    button.type = "button";
    button.title = "Show it in the timeline";
    button.addEventListener("click", () => opscope.emit("call", {call}));
    return el("tr", "", cell("td", "", button), cell("td", "num", amount(wall, column)),
      cell("td", "num", "+" + ns(start)), el("td", "cut", name(lane)));
  });
  const heads = [["", ""], [column.name, "num"], ["began", "num"], ["lane", ""]];
  return panel(rows.length === phase.calls ? "Its calls" : "Slowest calls", sheet(heads, rows));
};

const inside = (phase) => {
  if (!phase.inside.length) {
    return panel("Sub-operators", el("p", "soft", phase.times_of("sub_ns") === null
      ? "Whether it launched any was not measured." : "It launched none."));
  }
  const totals = phase.inside.map((sub) => sub[3]);
  const [all, each] = [unit(totals), unit(phase.inside.map((sub) => sub[5]))];
  const largest = Math.max(...totals, 1);
  const rows = phase.inside.map(([title, kind, count, total, self, mean]) => {
    const meter = el("i", "meter");
    meter.style.width = (100 * total) / largest + "%";
    const label = el("td", "cut metered", name(title), meter);
    return el("tr", "", label, cell("td", "soft", kind), cell("td", "num", grouped(count)),
      cell("td", "num", amount(total, all)), cell("td", "num", amount(self, all)),
      cell("td", "num", amount(mean, each)));
  });
  const heads = [["name", ""], ["kind", ""], ["count", "num"], [`total ${all.name}`, "num"],
    [`self ${all.name}`, "num"], [`mean ${each.name}`, "num"]];
  const more = phase.inside_left_out
    ? el("p", "more", `${plural(phase.inside_left_out, "more name")} left out, together ` +
        `${ns(phase.inside_left_out_ns)}.`)
    : null;
  return panel("Sub-operators", sheet(heads, rows), more);
};

// Columns of panels, in this order. A panel that has nothing to say returns null. Below them stand
// the lines of source, which need the width.
const PANELS = [[parts], [spread, slowest], [inside]];

const block = (phase, keys) => {
  const times = (key) => phase.times[keys.indexOf(key)];
  phase.times_of = times;
  const flags = [["failed", "raised"], ["incomplete", "did not end"], ["estimated", "estimated"]]
    .filter(([key]) => phase[key])
    .map(([key, word]) => el("span", "flag", `${grouped(phase[key])} ${word}`));
  const title = el("h3", "", phase.phase === "none" ? "calls" : phase.phase);
  const line = el("div", "phase-head", title,
    el("span", "soft", `${plural(phase.calls, "call")}, ${ns(times("wall_ns"))}`), ...flags);
  const grid = el("div", "panels", ...PANELS.map((column) =>
    el("div", "column", ...column.map((make) => make(phase, times)))));
  return el("section", "phase", line, grid, opscope.lines(phase));
};

opscope.detail = (row, keys) => {
  const facts = el("p", "identity");
  for (const [word, value] of [["kind", row.kind], ["host", row.host], ["defined at", row.site]]) {
    if (value) facts.append(el("span", "", el("span", "soft", word + " "), el("code", "", value)));
  }
  const whole = el("div", "detail-inside", facts);
  whole.append(...row.phases.map((phase) => block(phase, keys)));
  return whole;
};
