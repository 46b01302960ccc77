// What is on the screen: which time, which lanes, and where. Knows no canvas.
const tl = (opscope.tl ||= {});

const NARROW = 640; // pixels: below it, names of lanes stand above them instead of beside them
const ROW = 18;
const HEAD = 22;
const CLOSED = 10;
const SHORTEST = 20; // ns on the whole width

tl.view = (model, changed) => {
  const slack = model.length * 0.02;
  const view = {
    from: -slack / 2, span: model.length + slack, width: 600, height: 300, scroll: 0,
    narrow: false, gutter: 0, rowHeight: ROW, closed: new Set(), closedProcesses: new Set(),
    top: new Float64Array(model.rows.length), size: new Float64Array(model.rows.length),
    visible: [], blocks: [], total: 0, version: 0,
  };
  const whole = {from: view.from, span: view.span};

  // Lanes from top to bottom: `blocks` are the heads of processes and lanes, `visible` the rows.
  view.arrange = () => {
    const {narrow} = view;
    view.blocks = [];
    view.visible = [];
    let y = 4;
    const used = model.lanes.map((lane, number) => number)
      .filter((number) => model.lanes[number].rows.length);
    const processes = [...new Set(used.map((number) => model.lanes[number].process))];
    for (const process of processes) {
      const shut = view.closedProcesses.has(process);
      const top = y;
      if (processes.length > 1) {
        view.blocks.push({process, top: y, height: HEAD, shut});
        y += HEAD + 2;
      }
      for (const number of used) {
        const lane = model.lanes[number];
        if (lane.process !== process) continue;
        if (shut) {
          for (const row of lane.rows) (view.top[row] = top), (view.size[row] = 0);
          continue;
        }
        y = lay(lane, number, y, narrow);
      }
    }
    view.total = y + 4;
    view.version++;
    clamp();
    changed();
  };

  const lay = (lane, number, y, narrow) => {
    const closed = view.closed.has(number);
    const top = y;
    if (narrow) y += HEAD;
    y += 3; // the strip that tells what was left out
    lane.rows.forEach((row, depth) => {
      view.top[row] = closed ? y : y + depth * ROW;
      view.size[row] = closed ? (depth ? 0 : CLOSED) : ROW - 1;
      if (view.size[row]) view.visible.push(row);
    });
    y += closed ? CLOSED : lane.rows.length * ROW;
    y = Math.max(y, top + (narrow ? 0 : HEAD)) + 5;
    view.blocks.push({lane: number, top, height: y - top, shut: closed});
    return y;
  };

  const clamp = () => {
    view.span = Math.min(Math.max(view.span, SHORTEST), whole.span);
    // Half an empty screen at either end, so that the first and last slices can be centred.
    const low = whole.from - view.span * 0.4;
    const high = whole.from + whole.span - view.span * 0.6;
    view.from = view.span >= whole.span ? whole.from : Math.min(Math.max(view.from, low), high);
  };

  view.x = (time) => ((time - view.from) / view.span) * view.width;
  view.time = (x) => view.from + (x / view.width) * view.span;
  view.isWhole = () => view.span >= whole.span;

  let going = 0;
  let aim = null;
  view.aim = () => aim || {from: view.from, span: view.span};
  view.go = (from, span) => {
    cancelAnimationFrame(going);
    aim = null;
    view.from = from;
    view.span = span;
    clamp();
    changed();
  };
  // In a few frames, so that the eye can follow; at once for those who asked for less motion.
  view.glide = (from, span) => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return view.go(from, span);
    cancelAnimationFrame(going);
    const first = {from: view.from, span: view.span};
    [view.from, view.span] = [from, span];
    clamp();
    aim = {from: view.from, span: view.span};
    [view.from, view.span] = [first.from, first.span];
    let begin = 0;
    const ratio = aim.span / first.span;
    const move = (now) => {
      begin ||= now;
      const part = Math.min((now - begin) / 180, 1);
      const eased = 1 - (1 - part) ** 3;
      view.span = first.span * ratio ** eased;
      // The point that stands still while the span changes does so all the way.
      const way = Math.abs(ratio - 1) < 1e-6 ? eased
        : (first.span - view.span) / (first.span - aim.span);
      view.from = first.from + (aim.from - first.from) * way;
      if (part < 1) going = requestAnimationFrame(move);
      else [view.from, view.span, aim] = [aim.from, aim.span, null];
      changed();
    };
    going = requestAnimationFrame(move);
  };

  // By that factor, around a place on the screen that stays where it is.
  view.zoom = (factor, x = view.width / 2, smooth = false) => {
    const {from, span} = view.aim();
    const wanted = Math.min(Math.max(span * factor, SHORTEST), whole.span);
    const next = from + (x / view.width) * (span - wanted);
    (smooth ? view.glide : view.go)(next, wanted);
  };
  view.pan = (share, smooth = false) => {
    const {from, span} = view.aim();
    (smooth ? view.glide : view.go)(from + share * span, span);
  };
  view.fit = (start, end, share = 0.8) => {
    const span = Math.max((end - start) / share, SHORTEST);
    view.glide((start + end - span) / 2, span);
  };
  view.all = () => view.glide(whole.from, whole.span);

  // So that a slice can be seen and hit, changing no more than needed.
  view.show = (i) => {
    const aimed = view.aim();
    const [start, end] = [model.start[i], model.end[i]];
    const length = end - start;
    let {from, span} = aimed;
    if (length < span / 200) span = Math.max(length * 25, SHORTEST);
    else if (length > span) span = length / 0.8;
    const changes = span !== aimed.span;
    if (changes || start < from || end > from + span) from = (start + end - span) / 2;
    if (from !== aimed.from || changes) view.glide(from, span);
  };

  view.toggle = (block) => {
    const [set, key] = block.lane === undefined
      ? [view.closedProcesses, block.process] : [view.closed, block.lane];
    if (!set.delete(key)) set.add(key);
    view.arrange();
  };
  view.open = (i) => {
    const {lane} = model.rows[model.rowOf[i]];
    const opened = view.closed.delete(lane) | view.closedProcesses.delete(model.lanes[lane].process);
    if (opened) view.arrange();
    return Boolean(opened);
  };

  // Where on the canvas a row is.
  view.y = (row) => view.top[row] - view.scroll;
  view.rowAt = (y) => {
    const want = y + view.scroll;
    const {visible, top, size} = view;
    let [low, high] = [0, visible.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (top[visible[middle]] + size[visible[middle]] < want) low = middle + 1;
      else high = middle;
    }
    const row = visible[low];
    return row !== undefined && top[row] <= want ? row : -1;
  };
  // The slice at a place of the canvas, -1 for none; small ones can be hit beside themselves.
  view.pick = (x, y, reach = 3) => {
    const row = view.rowAt(y);
    if (row < 0) return -1;
    const {from, to} = model.rows[row];
    const time = view.time(x);
    const near = tl.above(model.start, from, to, time) - 1;
    let best = -1;
    let least = reach;
    for (let i = Math.max(near - 1, from); i <= near + 2 && i < to; i++) {
      const away = Math.max(view.x(model.start[i]) - x, x - view.x(model.end[i]), 0);
      if (away < least || (away === least && i === near)) [best, least] = [i, away];
    }
    return best;
  };
  // How many slices share the pixel of this one.
  view.crowd = (i) => {
    const {from, to} = model.rows[model.rowOf[i]];
    const pixel = view.span / view.width;
    if (model.end[i] - model.start[i] >= pixel) return 1;
    const begin = tl.above(model.start, from, to, model.start[i] - pixel / 2, true);
    return tl.above(model.start, from, to, model.start[i] + pixel / 2, true) - begin;
  };

  view.resize = (width, height, gutterWidth) => {
    view.narrow = width < NARROW;
    view.gutter = view.narrow ? 0 : gutterWidth;
    view.width = Math.max(width - view.gutter, 50);
    view.height = height;
    view.arrange();
  };
  return view;
};
