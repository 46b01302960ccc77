// The keyboard. Without a selection arrows move the view, with one they walk from slice to slice;
// Enter selects, Escape gives up the selection, and Tab always leaves.
const tl = (opscope.tl ||= {});

tl.HELP = [
  ["W / S, + / −, Ctrl+wheel, pinch", "zoom in and out"],
  ["A / D, ← / →, drag, Shift+wheel", "move in time"],
  ["0, double click, F", "all, that slice, the selection"],
  ["Enter", "select a slice in the middle; then ← → ↑ ↓ walk, Enter fits, Escape ends"],
  ["Shift+drag", "measure a range"],
  ["/", "search; Enter and Shift+Enter for the next and previous match"],
  ["C", "fold the lane of the selection"],
];

// The slice of a row that is nearest to a moment.
const nearest = (model, row, time) => {
  const {from, to} = model.rows[row];
  if (from === to) return -1;
  const next = Math.min(tl.above(model.end, from, to, time, true), to - 1);
  const away = (i) => Math.max(model.start[i] - time, time - model.end[i], 0);
  return next > from && away(next - 1) < away(next) ? next - 1 : next;
};

// The neighbour of a slice in one of four ways, itself where there is none.
tl.walk = (model, view, i, key) => {
  const number = model.rowOf[i];
  const row = model.rows[number];
  if (key === "ArrowLeft") return Math.max(i - 1, row.from);
  if (key === "ArrowRight") return Math.min(i + 1, row.to - 1);
  const time = (model.start[i] + model.end[i]) / 2;
  const at = view.visible.indexOf(number);
  if (key === "ArrowDown") {
    // The first that lies in it, else the lane below.
    const below = model.lanes[row.lane].rows[row.depth + 1];
    if (below !== undefined && view.size[below]) {
      const inner = tl.above(model.start, model.rows[below].from, model.rows[below].to,
        model.start[i], true);
      if (inner < model.rows[below].to && model.start[inner] <= model.end[i]) return inner;
    }
    const next = view.visible.find((other, k) => k > at && model.rows[other].lane !== row.lane);
    return next === undefined ? i : nearest(model, next, time);
  }
  const above = view.visible[at - 1];
  if (above === undefined) return i;
  const found = nearest(model, above, row.depth ? model.start[i] : time);
  return found < 0 ? i : found;
};

// Something to start from: the longest slice near the middle of what is on the screen.
tl.central = (model, view) => {
  const time = view.from + view.span / 2;
  for (const row of view.visible) {
    const y = view.y(row);
    if (y < 0 || y > view.height) continue;
    const i = nearest(model, row, time);
    if (i >= 0 && model.end[i] >= view.from && model.start[i] <= view.from + view.span) return i;
  }
  return -1;
};

tl.keys = (canvas, model, view, scroller, state, {select, fit, measure, find}) => {
  const zoom = (factor) => view.zoom(factor, anchor(), true);
  // Around the selection where it is in sight, else around the middle.
  const anchor = () => {
    if (state.selected < 0) return view.width / 2;
    const x = view.x((model.start[state.selected] + model.end[state.selected]) / 2);
    return x > 0 && x < view.width ? x : view.width / 2;
  };
  const arrows = (key) => {
    if (state.selected >= 0) return select(tl.walk(model, view, state.selected, key), true);
    if (key === "ArrowLeft") view.pan(-0.2, true);
    else if (key === "ArrowRight") view.pan(0.2, true);
    else scroller.scrollTop += key === "ArrowUp" ? -60 : 60;
  };
  const escape = () => {
    if (state.range) measure(null);
    else if (state.selected >= 0) select(-1);
    else return false;
    return true;
  };
  const acts = {
    w: () => zoom(1 / 1.6), s: () => zoom(1.6), "+": () => zoom(1 / 1.6), "=": () => zoom(1 / 1.6),
    "-": () => zoom(1.6), a: () => view.pan(-0.25, true), d: () => view.pan(0.25, true),
    0: () => view.all(), home: () => view.all(), f: () => fit(state.selected), "/": find,
    c: () => {
      if (state.selected < 0) return false;
      const {lane} = model.rows[model.rowOf[state.selected]];
      view.toggle({lane});
    },
    enter: () => {
      if (state.selected >= 0) fit(state.selected);
      else select(tl.central(model, view), true);
    },
    escape,
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = event.key.startsWith("Arrow") ? () => arrows(event.key) : acts[event.key.toLowerCase()];
    if (!act || act() === false) return;
    event.preventDefault();
    event.stopPropagation(); // the page has keys of its own
  });
};
