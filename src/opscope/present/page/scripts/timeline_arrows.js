// Arrows from where something was caused to where it ran: those of the selection, or all in sight.
const tl = (opscope.tl ||= {});

const MOST = 1500; // so many are drawn at a time
const DASHES = {push: [], spawn: [6, 3], launch: [2, 2], backward: [8, 3, 2, 3]};

// Arrows in the order in which they leave, so that those in sight can be searched for.
const ordered = ({at}, numbers) => {
  const list = Uint32Array.from(numbers).sort((a, b) => at[a] - at[b]);
  return {list, moments: Float64Array.from(list, (k) => at[k])};
};

tl.noArrows = {list: new Uint32Array(0), moments: new Float64Array(0), has: () => false};

// The arrows at a slice and at all that it owns. What it owns may have caused what it does not own:
// work on a device, a backward call.
tl.arrowsAt = (model, lit) => {
  const found = new Set();
  for (const i of lit) {
    for (const arrow of tl.of(tl.arrowsTo(model), i)) found.add(arrow);
    for (const arrow of tl.of(tl.arrowsFrom(model), i)) found.add(arrow);
  }
  return {...ordered(model.arrows, found), has: (k) => found.has(k)};
};

const every = (model) =>
  (model.everyArrow ||= ordered(model.arrows, Array.from({length: model.arrows.count}, (_, k) => k)));

// All of them where they are few; else those that leave in the time in sight, evenly picked.
const inSight = ({list, moments}, view) => {
  if (list.length <= MOST) return {some: list, left: 0};
  const first = tl.above(moments, 0, list.length, view.from, true);
  const last = tl.above(moments, 0, list.length, view.from + view.span);
  const step = Math.max(Math.ceil((last - first) / MOST), 1);
  const some = [];
  for (let k = first; k < last; k += step) some.push(list[k]);
  return {some, left: last - first - some.length};
};

tl.paintArrows = (ctx, model, view, state, colours) => {
  const own = inSight(state.arrows, view);
  const all = state.allArrows ? inSight(every(model), view) : {some: [], left: 0};
  state.arrowsLeft = own.left + all.left;
  state.arrowsDrawn = 0;
  for (const k of all.some) {
    if (!state.arrows.has(k)) state.arrowsDrawn += paintArrow(ctx, model, view, colours, k, 0.45);
  }
  for (const k of own.some) state.arrowsDrawn += paintArrow(ctx, model, view, colours, k, 1);
  ctx.globalAlpha = 1;
  ctx.setLineDash([]);
};

// Leaves a slice at its edge, so as not to cross out its name, and ends before its target; within
// one row it goes over the top, from edge to edge.
const ends = (model, view, source, target) => {
  const [from, to] = [model.rowOf[source], model.rowOf[target]];
  const [top, low] = [view.y(from), view.y(to)];
  if (from === to) return [top, top, 0];
  const end = low + (view.size[to] || 8) / 2;
  const size = view.size[from] || 8;
  const way = Math.sign(end - top - size / 2) || 1;
  return [top + (size / 2) * (1 + way), end, way];
};

// The head of an arrow that comes from the left, or (`down`) from above.
const paintHead = (ctx, x, y, down) => {
  ctx.beginPath();
  ctx.moveTo(x, y);
  if (down) {
    ctx.lineTo(x - 3.5, y - 7);
    ctx.lineTo(x + 3.5, y - 7);
  } else {
    ctx.lineTo(x - 7, y - 3.5);
    ctx.lineTo(x - 7, y + 3.5);
  }
  ctx.fill();
};

const paintArrow = (ctx, model, view, colours, k, alpha) => {
  const {arrows} = model;
  const target = arrows.target[k];
  const [x1, x2] = [view.x(arrows.at[k]), view.x(model.start[target])];
  const [y1, y2, way] = ends(model, view, arrows.source[k], target);
  if (Math.max(x1, x2) < 0 || Math.min(x1, x2) > view.width) return 0;
  if (Math.max(y1, y2) < 0 || Math.min(y1, y2) > view.height) return 0;
  // Far outside, a curve would be drawn with too little precision.
  const far = 4 * view.width;
  const [a, b] = [Math.max(x1, -far), Math.min(Math.max(x2, -far), far)];
  const bend = Math.min(Math.max((b - a) / 2, 14), 120);
  const lean = way * Math.min(Math.abs(y2 - y1) * 0.6, 60);
  ctx.globalAlpha = alpha;
  for (const [colour, wide] of [[colours.surface, 3.5], [colours.ink, 1.4]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = wide;
    ctx.setLineDash(wide > 2 ? [] : DASHES[arrows.words[arrows.kind[k]]] || []);
    ctx.beginPath();
    ctx.moveTo(a, y1);
    if (way) ctx.bezierCurveTo(a, y1 + lean, b - bend, y2, b - 5, y2);
    else ctx.bezierCurveTo(a, y1 - 22, b, y2 - 22, b, y2 - 4);
    ctx.stroke();
  }
  ctx.fillStyle = colours.ink;
  paintHead(ctx, b, y2, !way);
  return 1;
};
