// The table of operators: sorts, filters, opens.
const {data, el, name, unit, amount, grouped, plural} = opscope;
const {INSIDE, BESIDE, bar, swatch} = opscope.parts;

const AT_ONCE = 100; // rows drawn before somebody asks for more
const ALWAYS = ["python_ns", "sub_ns", "wait_ns", "elsewhere_ns"];
let found, rows, keys, columns, table, count, more;
let sort = {by: "wall_ns", falling: true};
let needle = "";
let room = AT_ONCE;
let share = false;

const timed = (key) => (row) => row.times[keys.indexOf(key)];

// Columns: id, title, value of a row, class; times of one group share a unit.
const layout = () => {
  const part = ([key, colour, word, about]) => ({id: key, title: word, about, colour, group: "parts",
    value: timed(key), classes: "num part-cell" + (key === "elsewhere_ns" ? " beside" : "")});
  const seen = ([key]) => ALWAYS.includes(key) || rows.some((row) => timed(key)(row));
  return [
    {id: "name", title: "operator", value: (row) => row.name, classes: "op"},
    {id: "wall_ns", title: "total", about: "wall time of all its calls", group: "parts",
      value: timed("wall_ns"), classes: "num strong"},
    {id: "bar", title: "what it was made of", classes: "bar-cell"},
    {id: "calls", title: "calls", value: (row) => row.calls, classes: "num"},
    {id: "mean", title: "mean", about: "of the calls that ended", group: "each",
      value: (row) => row.mean, classes: "num minor"},
    {id: "max", title: "slowest", about: "the slowest call", group: "each",
      value: (row) => row.max, classes: "num minor"},
    ...INSIDE.filter(seen).map(part),
    ...BESIDE.slice(0, 2).filter(seen).map(part),
  ];
};

const units = () => {
  const groups = {};
  for (const column of columns) {
    if (!column.group) continue;
    const values = rows.map(column.value);
    groups[column.group] = (groups[column.group] || []).concat(values);
  }
  for (const column of columns) if (column.group) column.unit = unit(groups[column.group]);
};

const header = () => {
  const line = el("tr");
  line.setAttribute("role", "row");
  for (const column of columns) {
    const th = el("th", column.classes);
    th.scope = "col";
    th.setAttribute("role", "columnheader");
    column.th = th;
    const words = [column.colour ? swatch(column.colour) : null, column.title,
      column.unit ? el("small", "unit", column.unit.name) : null];
    if (column.id === "bar") {
      const button = el("button", "sort", ...words);
      button.type = "button";
      button.id = "bar-mode";
      button.addEventListener("click", () => {
        share = !share;
        redraw();
      });
      th.append(button);
    } else {
      const button = el("button", "sort", ...words);
      button.type = "button";
      if (column.about) button.dataset.tip = column.title + "\n" + column.about;
      button.addEventListener("click", () => {
        const same = sort.by === column.id;
        sort = {by: column.id, falling: same ? !sort.falling : column.id !== "name"};
        redraw();
      });
      th.append(button);
    }
    line.append(th);
  }
  const head = el("thead", "", line);
  head.setAttribute("role", "rowgroup");
  return head;
};

// The text with what was searched for marked.
const marked = (text) => {
  const shown = opscope.visible(text);
  const at = needle ? shown.toLowerCase().indexOf(needle) : -1;
  const node = name(text);
  if (at < 0) return node;
  node.replaceChildren(shown.slice(0, at), el("mark", "", shown.slice(at, at + needle.length)),
    shown.slice(at + needle.length));
  return node;
};

const first = (row) => {
  const button = el("button", "opener");
  button.type = "button";
  button.setAttribute("aria-expanded", String(Boolean(row.open)));
  button.append(el("i", "chevron"));
  const words = el("span", "op-words");
  if (row.path.length) {
    words.append(el("span", "around", row.path.join(" › ") + " ›"));
  }
  words.append(marked(row.name));
  const flags = [["failed", "raised"], ["incomplete", "did not end"]].filter(([key]) => row[key]);
  const about = el("span", "about-op", row.kind || "");
  about.append(...flags.map(([key, word]) => el("span", "flag", `${grouped(row[key])} ${word}`)));
  words.append(about);
  button.append(words);
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    toggle(row);
  });
  row.button = button;
  return button;
};

const draw = (row, largest) => {
  const body = el("tbody", "operator");
  body.setAttribute("role", "rowgroup");
  const line = el("tr", "main-row");
  line.setAttribute("role", "row");
  for (const column of columns) {
    const td = el("td", column.classes);
    td.setAttribute("role", "cell");
    td.dataset.title = column.title;
    if (column.id === "name") td.append(first(row));
    else if (column.id === "bar") {
      td.append(bar((key) => timed(key)(row), share ? 0 : largest));
    } else {
      const value = column.value(row);
      td.append(column.unit ? amount(value, column.unit) : grouped(value));
      if (column.unit) td.dataset.unit = column.unit.name;
      if (value === null) td.classList.add("unmeasured");
      else if (value === 0) td.classList.add("zero");
    }
    line.append(td);
  }
  line.addEventListener("click", (event) => {
    if (!event.target.closest("a, button") && !String(getSelection())) toggle(row);
  });
  body.append(line);
  row.body = body;
  if (row.open) open(row);
  return body;
};

const open = (row) => {
  row.detail = row.detail || opscope.detail(row, keys);
  const td = el("td", "detail", row.detail);
  td.colSpan = columns.length;
  td.setAttribute("role", "cell");
  const line = el("tr", "detail-row", td);
  line.id = "detail-" + row.number;
  line.setAttribute("role", "row");
  row.button.setAttribute("aria-controls", line.id);
  row.body.classList.add("is-open");
  row.body.append(line);
};

const toggle = (row) => {
  row.open = !row.open;
  row.button.setAttribute("aria-expanded", String(row.open));
  if (row.open) return open(row);
  row.body.classList.remove("is-open");
  row.body.querySelector(".detail-row").remove();
};

const order = (a, b) => {
  const column = columns.find((entry) => entry.id === sort.by);
  const [x, y] = [column.value(a), column.value(b)];
  if (x === null || y === null) return (x === null) - (y === null) || a.number - b.number;
  const rising = typeof x === "string" ? x.localeCompare(y) : x - y;
  return (sort.falling ? -rising : rising) || a.number - b.number;
};

const matches = (row) =>
  !needle || [row.name, ...row.path, row.kind, row.host, row.site, ...row.phases.map((p) => p.name)]
    .some((text) => text && opscope.visible(text).toLowerCase().includes(needle));

const redraw = () => {
  for (const body of table.querySelectorAll("tbody")) body.remove();
  const chosen = rows.filter(matches).sort(order);
  const largest = Math.max(...rows.map(timed("wall_ns")), 1);
  const shown = chosen.slice(0, room);
  const pieces = document.createDocumentFragment();
  pieces.append(...shown.map((row) => draw(row, largest)));
  table.append(pieces);
  for (const column of columns) {
    if (column.id === "bar") {
      const mode = share ? "each row filled: shares of its own total" : "to scale of the largest";
      column.th.firstChild.dataset.tip = `${column.title}\nnow ${mode}; press to change`;
      column.th.firstChild.setAttribute("aria-pressed", String(share));
      continue;
    }
    const state = column.id !== sort.by ? "none" : sort.falling ? "descending" : "ascending";
    column.th.setAttribute("aria-sort", state);
  }
  tell(chosen.length, shown.length);
};

const tell = (chosen, shown) => {
  const all = plural(rows.length + found.left_out, "operator");
  opscope.text(count, needle || found.left_out ? `${grouped(chosen)} of ${all}` : all);
  more.hidden = chosen <= shown;
  opscope.text(more, `Show ${grouped(chosen - shown)} more`);
  table.classList.toggle("is-empty", !chosen);
};

const toolbar = () => {
  const input = el("input", "search");
  input.type = "search";
  input.id = "operator-search";
  input.placeholder = "Search operators";
  input.setAttribute("aria-label", "Search operators");
  input.autocomplete = "off";
  input.spellcheck = false;
  input.addEventListener("input", () => {
    needle = input.value.trim().toLowerCase();
    room = AT_ONCE;
    redraw();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  count = el("span", "soft count");
  count.setAttribute("role", "status");
  const hint = el("span", "soft hint-key", "press ", el("kbd", "", "/"), " to search");
  return el("div", "toolbar", input, count, hint);
};

opscope.table = {
  mount(section) {
    found = data("operators-data");
    ({rows, keys} = found);
    if (!rows.length) return;
    rows.forEach((row, number) => (row.number = number));
    columns = layout();
    units();
    table = el("table", "operators");
    table.setAttribute("role", "table");
    table.setAttribute("aria-labelledby", "operators-title");
    table.append(header());
    more = el("button", "quiet");
    more.type = "button";
    more.addEventListener("click", () => {
      room = Infinity;
      redraw();
    });
    const none = el("p", "empty no-match", "No operator matches the search.");
    section.append(toolbar(), el("div", "table-room", table), none, more);
    if (found.left_out) {
      section.append(el("p", "more", `${plural(found.left_out, "operator")} of less time, together ` +
        `${opscope.ns(found.left_out_ns)}, left out of this page; opscope report lists them all.`));
    }
    redraw();
  },
};
