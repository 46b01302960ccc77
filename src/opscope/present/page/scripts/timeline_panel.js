// Around the canvas: tools, names of lanes, legend, the details of what is selected.
const tl = (opscope.tl ||= {});

// An element with a class, attributes and children; a string becomes text and nothing else.
const make = (tag, name, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  for (const child of children) {
    node.append(typeof child === "string" ? opscope.text(document.createElement("span"), child) : child);
  }
  return node;
};
tl.make = make;

const button = (label, title, act) => {
  const node = make("button", "timeline-button", {type: "button", title, "aria-label": title});
  opscope.text(node, label);
  node.addEventListener("click", act);
  return node;
};
tl.button = button;

const WORDS = {
  call: "call of a custom operator", python: "its own Python", native: "its own native code",
  sub: "sub-operator", wait: "waiting", dispatch: "dispatch", runtime: "runtime chores",
  untracked: "own time, untracked", elsewhere: "task on another thread", device: "device work",
  own: "Python and waiting", range: "annotation or step", plain: "operator outside of calls",
};

const swatch = (part) => {
  const node = make("span", "timeline-swatch part p-" + part, {"aria-hidden": "true"});
  return opscope.text(node, tl.LETTERS[part]);
};
tl.swatch = swatch;

// Only what the session has.
tl.legend = (model) => {
  const seen = new Set(model.faces.map((face) => face.part));
  const list = make("ul", "timeline-legend", {"aria-label": "Legend"});
  for (const [part, words] of Object.entries(WORDS)) {
    if (seen.has(part)) list.append(make("li", "", {}, swatch(part), words));
  }
  return list;
};

tl.leftOut = ({left}) => {
  const some = (number, of, what) =>
    number ? `${opscope.grouped(number)} of ${opscope.grouped(of)} ${what}` : "";
  const both = [
    some(left.spans, left.of_spans, "spans"), some(left.own, left.of_own, "stretches of own time"),
  ].filter(Boolean);
  return both.length ? both.join(" and ") + " are left out: the shortest, where lanes have a dotted edge" : "";
};

// Names of processes and lanes as buttons that fold them; one of them is in the order of Tab.
tl.labels = (model, view, holder) => {
  let shown = 0;
  const update = () => {
    if (view.version === shown) return;
    shown = view.version;
    const focused = document.activeElement?.dataset?.timelineBlock;
    const inside = holder.contains(document.activeElement);
    holder.replaceChildren(...view.blocks.map((block, number) => label(block, number)));
    if (inside) {
      const again = [...holder.children].find((n) => n.dataset.timelineBlock === focused);
      again?.focus({preventScroll: true});
    }
  };
  const label = (block, number) => {
    const isLane = block.lane !== undefined;
    const about = isLane ? model.lanes[block.lane] : model.processes[block.process];
    const node = make("button", isLane ? "timeline-lane" : "timeline-process", {
      type: "button", "aria-expanded": String(!block.shut), tabindex: number ? "-1" : "0",
    });
    node.dataset.timelineBlock = isLane ? "lane" + block.lane : "process" + block.process;
    const kind = isLane && about.kind === "stream" ? "stream" : "";
    node.append(make("span", "timeline-fold", {"aria-hidden": "true"}, block.shut ? "▸" : "▾"));
    node.append(make("span", "timeline-name", {}, about.name));
    if (kind) node.append(make("span", "timeline-kind", {}, kind));
    node.title = opscope.visible(about.name) + (isLane && about.thread ? `, id ${about.thread}` : "");
    node.style.top = block.top + "px";
    if (isLane && !view.narrow) node.style.height = block.height - 1 + "px";
    node.addEventListener("click", () => view.toggle(block));
    node.addEventListener("keydown", (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      const other = step && holder.children[number + step];
      if (!other) return;
      event.preventDefault();
      node.tabIndex = -1;
      other.tabIndex = 0;
      other.focus();
    });
    return node;
  };
  return update;
};

const fact = (list, name, value) => {
  list.append(opscope.text(make("dt"), name));
  list.append(typeof value === "string" ? opscope.text(make("dd"), value) : make("dd", "", {}, value));
};

const BESIDE = [
  ["elsewhere", "elsewhere_union_ns"], ["device", "device_union_ns"], ["queue", "queue_ns"],
  ["until its last work ended", "span_ns"],
];

const partsOf = (times) => {
  const {INSIDE} = opscope.parts;
  const wall = INSIDE.reduce((sum, [key]) => sum + (times[key] || 0), 0);
  const bar = make("div", "timeline-bar", {"aria-hidden": "true"});
  const table = make("table", "timeline-parts");
  table.append(opscope.text(make("caption"), "Wall time " + opscope.ns(wall)));
  for (const [key, part, word] of INSIDE) {
    const value = times[key];
    if (value === 0 || (part === "native" && value === null)) continue;
    if (value) {
      const piece = make("span", "part p-" + part);
      piece.style.flexGrow = String(value / wall);
      bar.append(piece);
    }
    const share = value === null || !wall ? "" : ((100 * value) / wall).toFixed(1) + " %";
    const name = make("th", "", {scope: "row"}, swatch(part), word);
    table.append(make("tr", "", {}, name, cell(opscope.ns(value)), cell(share)));
  }
  for (const [name, key] of BESIDE) {
    if (!times[key]) continue;
    const head = make("th", "timeline-beside", {scope: "row"}, name);
    table.append(make("tr", "", {}, head, cell(opscope.ns(times[key])), cell("")));
  }
  return [bar, table];
};
const cell = (value) => opscope.text(make("td"), value);

// `choose(i)` selects another slice.
tl.details = (model, holder, choose, near) => {
  const link = (i, text) => {
    const node = make("button", "timeline-link", {type: "button"});
    node.addEventListener("click", () => choose(i));
    return opscope.text(node, text);
  };
  const face = (i) => model.faces[model.face[i]];
  const partners = (i) => {
    const {arrows} = model;
    const is = (k) => arrows.words[arrows.kind[k]] === "backward";
    const after = [...tl.of(tl.arrowsFrom(model), i)].filter(is).map((k) => arrows.target[k]);
    const before = [...tl.of(tl.arrowsTo(model), i)].filter(is).map((k) => arrows.source[k]);
    return {after, before};
  };
  const chain = (i) => {
    const list = [];
    for (let up = model.owner[i]; up >= 0 && list.length < 50; up = model.owner[up]) list.unshift(up);
    return list;
  };

  return (i, lit) => {
    holder.replaceChildren();
    if (i < 0) {
      const hint = "Select a slice to see what its time was and what it owns.";
      holder.append(opscope.text(make("p", "timeline-hint"), hint));
      return;
    }
    const look = face(i);
    const about = make("div", "timeline-about");
    const title = make("h3", "", {}, swatch(look.part), look.short);
    const list = make("dl");
    const phase = look.phase === "none" ? "" : ", " + look.phase;
    fact(list, "kind", WORDS[look.part] + phase);
    if (look.full !== look.short) fact(list, "path", look.full);
    if (look.op) fact(list, "operator", look.op + (look.site ? ` (${look.site})` : ""));
    fact(list, "start", opscope.grouped(model.start[i] / 1e6, 6) + " ms");
    fact(list, "duration", opscope.ns(model.end[i] - model.start[i]));
    const lane = model.lanes[model.rows[model.rowOf[i]].lane];
    fact(list, "lane", lane.name);
    if (!model.isOwn(i)) fact(list, "id", String(model.id[i]));
    if (look.flags.length) fact(list, "flags", look.flags.join(", "));
    const owners = chain(i);
    if (owners.length) {
      const row = make("span", "timeline-chain");
      for (const up of owners) row.append(link(up, face(up).short), " › ");
      row.lastChild.remove();
      fact(list, owners.length > 1 ? "owners" : "owner", row);
    }
    const {after, before} = partners(i);
    if (after.length) fact(list, "backward", joined(after.map((k) => link(k, face(k).short))));
    if (before.length) fact(list, "forward", joined(before.map((k) => link(k, face(k).short))));
    if (lit && lit.length > 1) {
      const owned = tl.ownedSpans(model, i, lit);
      const laneOf = (k) => { // what crosses on a lane stands on tracks of its own
        const {process, kind, lane, thread} = model.lanes[model.rows[model.rowOf[k]].lane];
        return JSON.stringify([process, kind, lane, thread]);
      };
      const lanes = new Set(owned.map(laneOf));
      const where = lanes.size > 1 ? ` on ${lanes.size} lanes`
        : lanes.has(laneOf(i)) ? "" : " on another lane";
      if (owned.length) fact(list, "owns", opscope.plural(owned.length, "span") + where);
    }
    about.append(title, list, near(i));
    holder.append(about);
    const times = model.calls(i);
    if (times) holder.append(make("div", "timeline-times", {}, ...partsOf(times)));
  };
};

const joined = (nodes) => make("span", "timeline-chain", {}, ...nodes.slice(0, 20));
