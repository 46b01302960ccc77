// The axis of time, and the small picture of the whole session above it.
const tl = (opscope.tl ||= {});

const APART = 90; // pixels between ticks, at least
const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

const niceStep = (least) => {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return Math.max(factor * power, 1);
  return Math.max(10 * power, 1);
};

// The unit of the steps, or a larger one where the largest label would have too many digits.
const inUnit = (value, step, largest) => {
  let at = UNITS.findIndex(([, size]) => Math.max(step * 5, 1) >= size);
  while (at > 0 && largest >= 1e4 * UNITS[at][1]) at--;
  const [name, size] = UNITS[at];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return opscope.grouped(value / size, decimals) + " " + name;
};

// Where labels would need more digits than can be read, they count from `base`.
const baseOf = (view, step) => {
  const reach = 10 ** (Math.ceil(Math.log10(step)) + 3);
  return view.from > 1e6 * step ? Math.floor(view.from / reach) * reach : 0;
};

tl.ticks = (view) => {
  const step = niceStep((view.span * APART) / view.width);
  const base = baseOf(view, step);
  const largest = view.from + view.span - base;
  const found = [];
  const first = Math.max(Math.ceil((view.from - base) / step), base ? -Infinity : 0);
  for (let k = first; base + k * step <= view.from + view.span; k++) {
    const x = view.x(base + k * step);
    found.push({x, text: (base ? "+" : "") + (k === 0 ? "0" : inUnit(k * step, step, largest))});
  }
  return {base, found};
};

tl.paintAxis = (canvas, view, state, colours) => {
  const [wide, high] = [view.width + view.gutter, 24];
  const ctx = tl.fitCanvas(canvas, wide, high);
  ctx.fillStyle = colours.surface;
  ctx.fillRect(0, 0, wide, high);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  ctx.direction = "ltr";
  const {base, found} = tl.ticks(view);
  let edge = view.gutter - 4;
  if (base) {
    const text = opscope.grouped(base / 1e9, 9).replace(/0+$/, "").replace(/\.$/, "") + " s";
    ctx.fillStyle = colours.ink;
    ctx.textAlign = "left";
    ctx.fillText(text, 4, high / 2);
    edge = Math.max(edge, 4 + ctx.measureText(text).width + 6);
  }
  ctx.textAlign = "left";
  for (const {x, text} of found) {
    const at = view.gutter + x;
    ctx.fillStyle = colours.edge;
    ctx.fillRect(Math.round(at), high - 6, 1, 6);
    if (at < edge || at + ctx.measureText(text).width > wide) continue;
    ctx.fillStyle = colours.soft;
    ctx.fillText(text, at + 4, high / 2);
  }
  if (state.range) paintRange(ctx, view, state.range, colours, high);
};

const paintRange = (ctx, view, [from, to], colours, high) => {
  const [left, right] = [view.x(Math.min(from, to)), view.x(Math.max(from, to))];
  const text = opscope.ns(Math.round(Math.abs(to - from)));
  ctx.font = "bold " + FONT;
  const wide = ctx.measureText(text).width + 12;
  const centre = Math.min(Math.max((left + right) / 2, wide / 2), view.width - wide / 2);
  ctx.fillStyle = colours.select;
  ctx.fillRect(view.gutter + left, high - 4, right - left, 3);
  ctx.fillRect(view.gutter + centre - wide / 2, 2, wide, high - 6);
  ctx.fillStyle = colours.surface;
  ctx.textAlign = "center";
  ctx.fillText(text, view.gutter + centre, (high - 2) / 2);
};

// How busy each lane was, in so many bins over the whole session; made once.
const BINS = 480;
const busy = (model) => {
  if (model.busy) return model.busy;
  model.busy = [];
  for (const lane of model.lanes) {
    if (!lane.rows.length) continue;
    const {from, to} = model.rows[lane.rows[0]];
    const share = new Float32Array(BINS);
    const parts = new Array(BINS).fill("");
    const most = new Float64Array(BINS);
    const width = model.length / BINS;
    for (let i = from; i < to; i++) {
      const first = Math.floor(model.start[i] / width);
      const last = Math.min(Math.floor(model.end[i] / width), BINS - 1);
      for (let bin = first; bin <= last; bin++) {
        const inside = Math.min(model.end[i], (bin + 1) * width) - Math.max(model.start[i], bin * width);
        share[bin] += inside / width;
        if (inside >= most[bin]) [most[bin], parts[bin]] = [inside, model.faces[model.face[i]].part];
      }
    }
    model.busy.push({share, parts});
  }
  return model.busy;
};

// The lanes of the small picture; drawn anew only where the size or the theme is another.
const picture = (model, view, colours, high) => {
  const key = [view.width, colours.surface, window.devicePixelRatio].join();
  if (model.picture && model.picture.key === key) return model.picture.canvas;
  const canvas = document.createElement("canvas");
  const ctx = tl.fitCanvas(canvas, view.width, high);
  ctx.fillStyle = colours.raised;
  ctx.fillRect(0, 0, view.width, high);
  const lanes = busy(model);
  const tall = (high - 6) / Math.max(lanes.length, 1);
  const bin = view.width / BINS;
  lanes.forEach(({share, parts}, number) => {
    const y = 3 + number * tall;
    for (let k = 0; k < BINS; k++) {
      if (!share[k]) continue;
      ctx.globalAlpha = 0.3 + 0.7 * Math.min(share[k], 1);
      ctx.fillStyle = colours.parts[parts[k]].fill;
      ctx.fillRect(k * bin, y, bin + 0.5, Math.max(tall - (tall > 3 ? 1 : 0), 0.7));
    }
  });
  model.picture = {key, canvas};
  return canvas;
};

tl.paintMap = (canvas, model, view, colours) => {
  const [wide, high] = [view.width + view.gutter, 40];
  const ctx = tl.fitCanvas(canvas, wide, high);
  ctx.fillStyle = colours.surface;
  ctx.fillRect(0, 0, wide, high);
  ctx.drawImage(picture(model, view, colours, high), view.gutter, 0, view.width, high);
  const x = (time) => view.gutter + (time / model.length) * view.width;
  const left = Math.max(x(view.from), view.gutter);
  const right = Math.min(x(view.from + view.span), wide);
  ctx.globalAlpha = 0.6;
  ctx.fillRect(view.gutter, 0, left - view.gutter, high);
  ctx.fillRect(right, 0, wide - right, high);
  ctx.globalAlpha = 1;
  if (view.isWhole()) return;
  ctx.strokeStyle = colours.focus;
  ctx.lineWidth = 2;
  ctx.strokeRect(Math.min(left, wide - 4) + 1, 1, Math.max(right - left - 2, 2), high - 2);
};
