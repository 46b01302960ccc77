// Lines of source with the share each has of the operator's own Python.
const {el, name, ns, unit, amount, plural} = opscope;

const share = (value) => (100 * value).toFixed(1) + " %";

const row = ([line, source, part, margin, spent], column) => {
  const meter = el("i", "heat");
  meter.style.width = 100 * (part || 0) + "%";
  const hot = part === null ? "quiet" : part >= 0.2 ? "hot" : "";
  const share_ = el("td", "num metered", part === null ? "" : share(part), part === null ? null : meter);
  const about = el("td", "num soft", part === null ? "" : share(margin));
  return el("tr", hot, share_, about, el("td", "num", part === null ? "" : amount(spent, column)),
    el("td", "num soft", String(line)), el("td", "source", source === null ? "" : source));
};

const listing = ([title, file, why, lines], column) => {
  const where = el("tr", "where", el("th", "", name(title), " ", name(file, "soft"),
    why ? el("span", "soft", ` (${why})`) : null));
  where.firstChild.colSpan = 5;
  return [where, ...lines.map((entry) => row(entry, column))];
};

opscope.lines = (phase) => {
  const known = opscope.data("lines-data") || [];
  const found = known.find((entry) => entry.key === phase.key && entry.phase === phase.phase);
  if (!found) return null;
  const spent = found.functions.flatMap((entry) => entry[3].map((line) => line[4]));
  const column = unit(spent);
  const head = el("tr");
  for (const [word, kind] of [["share", "num"], ["±", "num"], [column.name, "num"], ["line", "num"], ["source", ""]]) {
    const th = el("th", kind, word);
    th.scope = "col";
    head.append(th);
  }
  const body = el("tbody", "", ...found.functions.flatMap((entry) => listing(entry, column)));
  const table = el("table", "sheet lines", el("thead", "", head), body);
  const about = `${plural(found.samples, "sample")}, about ${ns(found.ns)} in all calls of the operator, ` +
    "wherever they stand. Each share is right to within ± points in 19 of 20 cases.";
  const more = found.left_out ? el("p", "more", `${plural(found.left_out, "more line")} left out.`) : null;
  return el("div", "panel hot-lines", el("h4", "", "Hot lines"), el("p", "soft", about),
    el("div", "scroll", table), more);
};
