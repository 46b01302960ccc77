// Draws the rows that are on the screen. What it does for a frame depends on the pixels, not on how
// many slices there are: those under a pixel become one mark, found by searching for the next pixel.
const tl = (opscope.tl ||= {});

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LETTERS = {
  python: "P", own: "P", native: "N", sub: "S", wait: "W", dispatch: "D", runtime: "R",
  untracked: "U", elsewhere: "E", device: "G", call: "C", range: "A", plain: "O",
};
// The patterns that parts have everywhere on the page, as lines on a tile: [size, width, lines].
const rising = [[-1, 9, 9, -1], [-9, 9, 1, -1], [7, 9, 17, -1]];
const falling = rising.map(([x1, y1, x2, y2]) => [x1, y2, x2, y1]);
const PATTERNS = {
  wait: [8, 2, rising], own: [8, 2, rising], untracked: [8, 1, falling],
  elsewhere: [8, 2.4, falling], native: [5, 1, [[0.5, 0, 0.5, 5]]],
  device: [8, 2, [[1, 0, 1, 8]]], runtime: [4, 1, [[0, 0.5, 4, 0.5]]],
  dispatch: [6, 2, [[1, 2, 3, 2], [4, 5, 6, 5]]], range: [9, 1, [[0.5, 0, 0.5, 9]]],
};

tl.LETTERS = LETTERS;

// Colours of the theme at hand, read once for each theme.
tl.palette = (node) => {
  const styles = getComputedStyle(node);
  const value = (name) => styles.getPropertyValue(name).trim();
  const own = (name) => value("--timeline-" + name);
  const parts = {};
  for (const part of Object.keys(LETTERS)) {
    const base = part === "own" ? "python" : part;
    const fill = opscope.colour(base) || own(base);
    const ink = value("--on-" + base) || own("on-" + base);
    parts[part] = {fill, ink, pattern: PATTERNS[part] ? hatch(part, ink) : null};
  }
  return {
    parts, surface: value("--surface"), raised: value("--raised"), line: value("--line"),
    ink: value("--ink"), soft: value("--soft"), edge: value("--edge"), focus: value("--focus"),
    warn: value("--warn"), match: own("match"), select: own("select"),
  };
};

const hatch = (part, ink) => {
  const [size, wide, lines] = PATTERNS[part];
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const ctx = tile.getContext("2d");
  ctx.globalAlpha = 0.26;
  ctx.strokeStyle = ink;
  ctx.lineWidth = wide;
  ctx.beginPath();
  for (const [x1, y1, x2, y2] of lines) {
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
  }
  ctx.stroke();
  return ctx.createPattern(tile, "repeat");
};

tl.fitCanvas = (canvas, width, height) => {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
};

tl.painter = (model, view, state) => {
  let ctx = null;
  let colours = null;
  let labels = [];
  let drawn = 0; // rectangles of this frame, and slices looked at for it
  let looked = 0;

  const paint = (canvas, palette) => {
    ctx = tl.fitCanvas(canvas, view.width, view.height);
    colours = palette;
    labels = [];
    drawn = looked = 0;
    ctx.globalAlpha = 1;
    ctx.fillStyle = colours.surface;
    ctx.fillRect(0, 0, view.width, view.height);
    grounds();
    grid();
    const first = Math.max(firstVisible(), 0);
    for (let k = first; k < view.visible.length; k++) {
      const row = view.visible[k];
      const y = view.y(row);
      if (y > view.height) break;
      paintRow(model.rows[row], y, view.size[row]);
    }
    paintLabels();
    missing();
    marks();
    state.rectangles = drawn;
    state.looked = looked;
  };

  const firstVisible = () => {
    let [low, high] = [0, view.visible.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = view.visible[middle];
      if (view.y(row) + view.size[row] < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // Lines between lanes, and a tone for the heads of processes.
  const grounds = () => {
    for (const block of view.blocks) {
      const y = block.top - view.scroll;
      if (y > view.height || y + block.height < 0) continue;
      if (block.lane === undefined) {
        ctx.fillStyle = colours.raised;
        ctx.fillRect(0, y, view.width, block.height);
      } else if (block.top + block.height < view.total - 5) {
        ctx.fillStyle = colours.line;
        ctx.fillRect(0, Math.round(y + block.height) - 2, view.width, 1);
      }
    }
  };

  const grid = () => {
    ctx.fillStyle = colours.line;
    ctx.globalAlpha = 0.55;
    for (const {x} of tl.ticks(view).found) ctx.fillRect(Math.round(x), 0, 1, view.height);
    ctx.globalAlpha = 1;
  };

  // What is looked at: what the selected call owns, else what was searched for.
  const focus = () => state.lit || state.found;

  const paintRow = (row, y, height) => {
    const {start, end, covered, face, faces} = model;
    const scale = view.width / view.span;
    const stop = view.from + view.span;
    const chosen = focus();
    const unit = Math.max(1, 1 / (window.devicePixelRatio || 1));
    let run = null; // marks of many slices that look alike and touch
    const flush = () => {
      if (!run) return;
      ctx.globalAlpha = run.alpha;
      ctx.fillStyle = colours.parts[run.part].fill;
      ctx.fillRect(run.x, y, run.width, height);
      drawn++;
      run = null;
    };
    let i = tl.above(end, row.from, row.to, view.from, true);
    while (i < row.to && start[i] <= stop) {
      looked++;
      const x = (start[i] - view.from) * scale;
      const wide = (end[i] - start[i]) * scale;
      if (wide >= unit) {
        flush();
        slice(i, Math.max(x, -2), Math.min(x + wide, view.width + 2), y, height, chosen);
        i++;
        continue;
      }
      const pixel = Math.floor(x / unit) * unit;
      let next = tl.ahead(start, i, row.to, view.from + (pixel + unit) / scale);
      if (next - i > 1 && (end[next - 1] - start[next - 1]) * scale >= unit) next--;
      if (next <= i) next = i + 1;
      let most = i;
      for (const j of [(i + next) >> 1, next - 1]) {
        if (end[j] - start[j] > end[most] - start[most]) most = j;
      }
      const share = ((covered[next] - covered[i]) * scale) / unit;
      let alpha = share > 0.5 ? 1 : share > 0.15 ? 0.75 : 0.5;
      if (chosen && !chosen.any(i, next)) alpha *= 0.25;
      const {part} = faces[face[most]];
      if (run && run.part === part && run.alpha === alpha && pixel - run.x - run.width < 0.5) {
        run.width = pixel + unit - run.x;
      } else {
        flush();
        run = {x: pixel, width: unit, part, alpha};
      }
      if (state.found && state.found.any(i, next)) {
        flush();
        ctx.globalAlpha = 1;
        ctx.fillStyle = colours.match;
        ctx.fillRect(pixel, y, Math.max(unit, 2), Math.min(3, height));
      }
      i = next;
    }
    flush();
    ctx.globalAlpha = 1;
  };

  const slice = (i, left, right, y, height, chosen) => {
    const look = model.faces[model.face[i]];
    const tone = colours.parts[look.part];
    const wide = right - left;
    const gap = wide > 3 ? 0.75 : 0; // neighbours stay apart
    const dim = chosen && !chosen.marked[i];
    ctx.globalAlpha = dim ? 0.22 : 1;
    ctx.fillStyle = tone.fill;
    ctx.fillRect(left, y, wide - gap, height);
    drawn++;
    if (tone.pattern && wide > 5 && height > 12) {
      ctx.fillStyle = tone.pattern;
      ctx.fillRect(left, y, wide - gap, height);
    }
    if (look.flags.includes("failed") && wide > 5) {
      ctx.fillStyle = colours.warn;
      ctx.fillRect(left, y, wide - gap, 3);
    }
    if (state.found && state.found.marked[i]) {
      ctx.globalAlpha = 1;
      ctx.fillStyle = colours.match;
      ctx.fillRect(left, y, wide - gap, Math.min(3, height));
    }
    if (wide > 9 && height > 12) labels.push({i, left, wide: wide - gap, y, dim, tone});
  };

  const paintLabels = () => {
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.direction = "ltr";
    for (const {i, left, wide, y, dim, tone} of labels) {
      const look = model.faces[model.face[i]];
      const x = Math.max(left, 0);
      const room = Math.min(left + wide, view.width) - x - 7;
      const text = fitted(look, room);
      if (!text) continue;
      ctx.globalAlpha = dim ? 0.45 : 1;
      ctx.fillStyle = dim ? colours.ink : tone.ink;
      ctx.fillText(text, x + 4, y + 9.5);
    }
    ctx.globalAlpha = 1;
  };

  // The name, or as much of it as there is room for; in little room the letter of its part.
  const fitted = (look, room) => {
    look.width ||= ctx.measureText(look.short).width;
    if (look.width <= room) return look.short;
    let size = Math.floor((look.short.length * (room - 9)) / look.width);
    while (size > 2) {
      const text = look.short.slice(0, size).trimEnd() + "…";
      if (ctx.measureText(text).width <= room) return opscope.visible(text);
      size--;
    }
    return room > 5 ? LETTERS[look.part] : "";
  };

  // Strips above a lane where slices of it were left out.
  const missing = () => {
    if (!state.missing) return;
    ctx.fillStyle = colours.warn;
    for (const {lane, from, to, share} of state.missing) {
      const row = model.lanes[lane].rows[0];
      const [left, right] = [view.x(from), view.x(to)];
      const y = view.y(row) - 3;
      if (right < 0 || left > view.width || y < -4 || y > view.height) continue;
      ctx.globalAlpha = 0.35 + 0.65 * share;
      for (let x = Math.max(Math.round(left), 0); x < Math.min(right, view.width); x += 4) {
        ctx.fillRect(x, y, 2, 2);
      }
    }
    ctx.globalAlpha = 1;
  };

  const outline = (i, colour, thick) => {
    const row = model.rowOf[i];
    if (!view.size[row]) return;
    const left = Math.max(view.x(model.start[i]), -4);
    const right = Math.min(Math.max(view.x(model.end[i]), left + 2), view.width + 4);
    if (right < 0 || left > view.width) return;
    ctx.lineWidth = thick + 2;
    ctx.strokeStyle = colours.surface;
    const box = [left - 0.5, view.y(row) - 0.5, right - left + 0.5, view.size[row] + 1];
    ctx.strokeRect(...box);
    ctx.lineWidth = thick;
    ctx.strokeStyle = colour;
    ctx.strokeRect(...box);
  };

  const marks = () => {
    if (state.hovered >= 0 && state.hovered !== state.selected) {
      outline(state.hovered, colours.edge, 1);
    }
    if (state.current >= 0 && state.current !== state.selected) {
      outline(state.current, colours.match, 2);
    }
    tl.paintArrows(ctx, model, view, state, colours);
    if (state.selected >= 0) outline(state.selected, colours.select, 2);
    if (state.range) range();
  };

  const range = () => {
    const [from, to] = state.range;
    const [left, right] = [view.x(Math.min(from, to)), view.x(Math.max(from, to))];
    ctx.globalAlpha = 0.14;
    ctx.fillStyle = colours.select;
    ctx.fillRect(left, 0, right - left, view.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(left - 0.5, 0, 1, view.height);
    ctx.fillRect(right - 0.5, 0, 1, view.height);
  };

  return paint;
};
