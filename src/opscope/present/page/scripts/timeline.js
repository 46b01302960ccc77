// The timeline: puts its pieces together. Draws a frame only when something changed.
const tl = (opscope.tl ||= {});

const GUTTER = 168; // pixels beside the lanes for their names

const mount = (section) => {
  const raw = opscope.data("timeline-data");
  if (!raw || !raw.rows || !raw.rows.length) {
    section.append(opscope.text(tl.make("p", "timeline-hint"), "This session holds no spans."));
    return;
  }
  const model = tl.read(raw);
  const state = {
    selected: -1, hovered: -1, current: -1, lit: null, found: null, range: null, arrows: tl.noArrows,
    allArrows: false, measuring: false, missing: missing(model), frames: 0,
  };
  const canvas = tl.make("canvas", "timeline-canvas", {
    tabindex: "0", role: "application", "aria-roledescription": "timeline",
    "aria-label": "Lanes and slices", "aria-describedby": "timeline-keys timeline-said",
  });
  const map = tl.make("canvas", "timeline-map", {"aria-hidden": "true"});
  const axis = tl.make("canvas", "timeline-axis", {"aria-hidden": "true"});
  const names = tl.make("div", "timeline-names");
  const space = tl.make("div", "timeline-space", {}, names, canvas);
  const scroller = tl.make("div", "timeline-scroller", {}, space);
  const tip = tl.make("div", "tip timeline-tip", {"aria-hidden": "true"});
  const said = tl.make("p", "timeline-said", {id: "timeline-said", "aria-live": "polite"});
  const panel = tl.make("div", "timeline-details", {role: "region", "aria-label": "Details of the selection"});
  tip.hidden = true;

  let asked = 0;
  let colours = null;
  const changed = () => (asked ||= requestAnimationFrame(frame));
  const view = tl.view(model, changed);
  const paint = tl.painter(model, view, state);
  const updateNames = tl.labels(model, view, names);
  const say = (text) => opscope.text(said, text);

  const frame = () => {
    asked = 0;
    const began = performance.now();
    colours ||= tl.palette(section);
    space.style.height = view.total + "px";
    view.scroll = scroller.scrollTop;
    updateNames();
    paint(canvas, colours);
    tl.paintAxis(axis, view, state, colours);
    tl.paintMap(map, model, view, colours);
    opscope.text(thinned, state.arrowsLeft
      ? `${opscope.grouped(state.arrowsLeft)} arrows are left out: zoom in` : "");
    state.frameMs = performance.now() - began;
    if (!state.frames++) first();
  };
  // The first frame is on the screen when the one after it begins.
  const first = () => {
    performance.mark("opscope-timeline-drawn");
    requestAnimationFrame(() => performance.mark("opscope-timeline-painted"));
  };

  const describe = (i) => {
    const look = model.faces[model.face[i]];
    return `${look.short}, ${opscope.ns(model.end[i] - model.start[i])}`;
  };
  const scrollTo = (i) => {
    const row = model.rowOf[i];
    const [top, size] = [view.top[row], view.size[row]];
    const margin = view.narrow ? 26 : 8;
    if (top - margin < scroller.scrollTop) scroller.scrollTop = top - margin;
    const bottom = top + size + 8 - scroller.clientHeight;
    if (bottom > scroller.scrollTop) scroller.scrollTop = bottom;
  };
  const show = (i) => {
    view.open(i);
    space.style.height = view.total + "px";
    view.show(i);
    scrollTo(i);
    changed();
  };
  // `i` -1: nothing. With `visibly` the view moves where it has to.
  const select = (i, visibly = false) => {
    state.selected = i;
    const isCall = i >= 0 && model.faces[model.face[i]].kind === "call";
    const lit = i < 0 ? null : tl.subtree(model, i);
    state.lit = isCall ? tl.some(model, lit) : null;
    state.arrows = i < 0 ? tl.noArrows : tl.arrowsAt(model, lit);
    detail(i, lit);
    const owns = isCall ? ", owns " + opscope.plural(tl.ownedSpans(model, i, lit).length, "span") : "";
    say(i < 0 ? "Nothing is selected." : describe(i) + owns);
    if (i >= 0 && visibly) show(i);
    changed();
  };
  const fit = (i) => {
    if (i < 0) return;
    view.fit(model.start[i], model.end[i]);
  };
  const near = (i) => tl.button("Fit", "Fit: zoom to this slice", () => (fit(i), show(i)));
  const detail = tl.details(model, panel, (i) => select(i, true), near);

  const hover = (i, event) => {
    if (state.hovered !== i) changed();
    state.hovered = i;
    tip.hidden = i < 0;
    if (i < 0) return;
    const crowd = view.crowd(i);
    const more = crowd > 1 ? ` and ${opscope.grouped(crowd - 1)} more in this pixel` : "";
    const look = model.faces[model.face[i]];
    tip.replaceChildren(
      opscope.text(tl.make("strong"), tl.middleCut(look.full, 120)),
      opscope.text(tl.make("span"), opscope.ns(model.end[i] - model.start[i]) + more),
    );
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18;
    const above = event.clientY - tip.offsetHeight - 12;
    const top = below + tip.offsetHeight > innerHeight - 8 ? above : below;
    tip.style.transform = `translate(${Math.max(left, 8)}px, ${top}px)`;
  };
  const measure = (range, done = false) => {
    state.range = range;
    if (done) say("Range of " + opscope.ns(Math.round(Math.abs(range[1] - range[0]))));
    changed();
  };

  const search = tl.search(model, view, state, {show, changed, say});
  const arrows = tl.button("Arrows", "Show all arrows in sight", () => {
    state.allArrows = !state.allArrows;
    arrows.setAttribute("aria-pressed", String(state.allArrows));
    changed();
  });
  const ruler = tl.button("Measure", "Measure a range by dragging (or Shift+drag)", () => {
    state.measuring = !state.measuring;
    ruler.setAttribute("aria-pressed", String(state.measuring));
  });
  arrows.setAttribute("aria-pressed", "false");
  ruler.setAttribute("aria-pressed", "false");
  const left = tl.leftOut(model);
  const thinned = tl.make("span", "timeline-left");
  const notice = opscope.text(tl.make("p", "timeline-left", {role: "note"}), left);
  notice.hidden = !left;
  const tools = tl.make("div", "timeline-tools", {role: "group", "aria-label": "Tools of the timeline"},
    tl.make("div", "timeline-group", {}, ...search.nodes),
    tl.make("div", "timeline-group", {},
      tl.button("−", "Zoom out (S)", () => view.zoom(1.6, undefined, true)),
      tl.button("+", "Zoom in (W)", () => view.zoom(1 / 1.6, undefined, true)),
      tl.button("All", "All of the time (0)", () => view.all()), ruler, ...(model.arrows.count ? [arrows] : [])),
    help(), thinned);
  const framed = tl.make("div", "timeline-frame", {}, map, axis, scroller);
  section.append(tools, notice, framed, tl.legend(model), panel, said, tip);

  canvas.timelineGutter = 0;
  const acts = {select, fit, hover, measure, find: search.focus};
  tl.pointers(canvas, view, scroller, state, acts);
  tl.mapPointers(map, model, view);
  tl.keys(canvas, model, view, scroller, state, acts);
  scroller.addEventListener("scroll", () => {
    hover(-1);
    changed();
  });
  const watch = () => {
    section.classList.toggle("timeline-narrow", section.clientWidth < 640);
    if (!scroller.clientWidth) return;
    view.resize(scroller.clientWidth, scroller.clientHeight, GUTTER);
    space.style.height = view.total + "px"; // which may change the height of the scroller
    if (scroller.clientHeight !== view.height) {
      view.resize(scroller.clientWidth, scroller.clientHeight, GUTTER);
    }
  };
  new ResizeObserver(watch).observe(scroller);
  watch();
  detail(-1);

  opscope.on("theme", () => {
    colours = null;
    changed();
  });
  // Paper is light; before it is printed nobody waits for a frame.
  matchMedia("print").addEventListener("change", () => {
    opscope.emit("theme");
    frame();
  });
  opscope.on("call", ({call}) => {
    const i = tl.byId(model).get(call);
    if (i === undefined) return say(`Call ${call} is not among the slices shown.`);
    select(i, true);
    view.fit(model.start[i], model.end[i], 0.6);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    section.scrollIntoView({block: "start", behavior: calm ? "auto" : "smooth"});
  });

  section.timeline = hook(model, view, state, canvas);
};

const help = () => {
  const list = tl.make("dl", "timeline-keys", {id: "timeline-keys"});
  for (const [keys, what] of tl.HELP) {
    list.append(opscope.text(tl.make("dt"), keys), opscope.text(tl.make("dd"), what));
  }
  const summary = opscope.text(tl.make("summary"), "Keys");
  return tl.make("details", "timeline-help", {}, summary, list);
};

// Where slices were left out, for the dotted edges: time, lane, and how many of the most.
const missing = ({left, length}) => {
  const {where, bins} = left;
  if (!where.length) return null;
  const found = [];
  let most = 1;
  for (let k = 2; k < where.length; k += 3) most = Math.max(most, where[k]);
  for (let k = 0; k < where.length; k += 3) {
    const [lane, bin, count] = where.slice(k, k + 3);
    const from = (bin * length) / bins;
    found.push({lane, from, to: from + length / bins, share: count / most});
  }
  return found;
};

// For tests and scripts: reads, never changes. Places are in pixels of the window.
const hook = (model, view, state, canvas) => ({
  where: (id) => {
    const i = tl.byId(model).get(id);
    if (i === undefined) return null;
    const row = model.rowOf[i];
    const [left, right] = [view.x(model.start[i]), view.x(model.end[i])];
    const y = view.y(row);
    const hidden = right < 0 || left > view.width || y < 0 || y + view.size[row] > view.height;
    if (hidden || !view.size[row]) return null;
    const box = canvas.getBoundingClientRect();
    const [begin, stop] = [Math.max(left, 0), Math.min(right, view.width)];
    return {
      left: box.left + begin, width: stop - begin, top: box.top + y, height: view.size[row],
      x: box.left + (begin + stop) / 2, y: box.top + y + view.size[row] / 2,
    };
  },
  state: () => {
    const id = (i) => (i < 0 ? null : model.id[i]);
    const lit = state.lit ? Array.from(state.lit.list).filter((i) => !model.isOwn(i)) : [];
    return {
      ...view.aim(), moving: view.from !== view.aim().from, selected: id(state.selected),
      lit: lit.map(id).sort((a, b) => a - b), current: id(state.current),
      found: state.found ? state.found.list.length : null, range: state.range,
      arrows: state.arrows.list.length, arrowsDrawn: state.arrowsDrawn || 0, frames: state.frames, frame_ms: state.frameMs,
      rectangles: state.rectangles, looked_at: state.looked, slices: model.count, scroll: view.scroll,
      lanes: view.blocks.filter((block) => block.lane !== undefined).length,
      rows: view.visible.length,
    };
  },
});

opscope.timeline = {mount};
