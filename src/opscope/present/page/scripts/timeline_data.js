// The timeline's data as typed arrays. Slices are sorted by row (a depth of a lane), then by start;
// in a row none overlap, so starts and ends both rise and can be searched.
const tl = (opscope.tl ||= {});

const octets = (base64) => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
};

// Numbers in base 128, lowest digits first. Without shifts, which would cut them at 32 bits.
const numbers = (base64, into) => {
  const bytes = octets(base64);
  let at = 0;
  for (let i = 0; i < into.length; i++) {
    let byte = bytes[at++];
    let value = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      value += (byte & 127) * scale;
    }
    into[i] = value;
  }
  return into;
};
const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

const PART_OF_OWN = {pure_python: "python", own: "own", native: "native", untracked: "untracked"};
const PART_OF_KIND = {
  task: "elsewhere", wait: "wait", dispatch: "dispatch", runtime: "runtime", device: "device",
  range: "range", step: "range", call: "call",
};

// A long path loses its middle: what it begins with, and the name at its end, stay.
tl.middleCut = (text, room) =>
  text.length > room ? text.slice(0, room / 2 - 1) + "…" + text.slice(-room / 2) : text;

const readFace = (texts, [short, full, kind, phase, op, key, site, ...flags]) => {
  const word = texts[kind];
  const owned = op >= 0;
  const part = word === "own" ? PART_OF_OWN[texts[short]]
    : word === "op" ? (owned ? "sub" : "plain") : PART_OF_KIND[word];
  const name = (index) => (index < 0 ? null : texts[index]);
  return {
    short: opscope.visible(texts[short]).slice(0, 300),
    full: opscope.visible(texts[full]),
    kind: word, phase: texts[phase], op: name(op), key: name(key), site: name(site),
    flags: flags.map(name), part, width: 0,
  };
};

tl.read = (raw) => {
  const rows = [];
  const lanes = raw.lanes.map((lane) => ({...lane, rows: []}));
  let count = 0;
  for (const [lane, depth, size] of raw.rows) {
    lanes[lane].rows[depth] = rows.length;
    rows.push({lane, depth, from: count, to: count + size});
    count += size;
  }
  // Where a depth was thinned to nothing there is an empty row.
  for (const lane of lanes) {
    for (let depth = 0; depth < lane.rows.length; depth++) {
      if (lane.rows[depth] !== undefined) continue;
      lane.rows[depth] = rows.length;
      rows.push({lane: lanes.indexOf(lane), depth, from: count, to: count});
    }
  }
  const face = numbers(raw.face, new Uint32Array(count));
  const start = numbers(raw.gap, new Float64Array(count));
  const end = numbers(raw.length, new Float64Array(count));
  const id = numbers(raw.id, new Float64Array(count));
  const back = numbers(raw.owner, new Float64Array(count));
  const owner = new Int32Array(count).fill(-1);
  const rowOf = new Uint32Array(count);
  const covered = new Float64Array(count + 1); // time in slices before this one
  let last = 0;
  rows.forEach((row, number) => {
    let moment = 0;
    for (let i = row.from; i < row.to; i++) {
      const length = end[i];
      start[i] += moment;
      moment = end[i] = start[i] + length;
      covered[i + 1] = covered[i] + length;
      last = id[i] = last + signed(id[i]);
      if (back[i]) owner[i] = i - signed(back[i]);
      rowOf[i] = number;
    }
  });
  const faces = raw.faces.map((each) => readFace(raw.texts, each));
  return {
    count, rows, lanes, face, faces, start, end, id, owner, rowOf, covered,
    processes: raw.processes, left: raw.left, length: Math.max(raw.length_ns, 1),
    calls: readCalls(raw.calls, face, faces), arrows: readArrows(raw.arrows, start),
    isOwn: (i) => faces[face[i]].kind === "own",
  };
};

// The times of calls: `times(i)` gives them by name, null for what was not measured.
const readCalls = (columns, face, faces) => {
  const number = new Map();
  for (let i = 0; i < face.length; i++) {
    if (faces[face[i]].kind === "call") number.set(i, number.size);
  }
  const names = Object.keys(columns);
  const read = names.map((name) => numbers(columns[name], new Float64Array(number.size)));
  return (i) => {
    const at = number.get(i);
    if (at === undefined) return null;
    return Object.fromEntries(
      names.map((name, k) => [name, read[k][at] ? read[k][at] - 1 : null]));
  };
};

const readArrows = (raw, start) => {
  const size = octets(raw.kind).length; // kinds are one byte each
  const target = numbers(raw.target, new Float64Array(size));
  const source = numbers(raw.source, new Float64Array(size));
  const at = numbers(raw.late, new Float64Array(size));
  const kind = numbers(raw.kind, new Uint8Array(size));
  let last = 0;
  for (let i = 0; i < size; i++) {
    last = target[i] += last;
    source[i] = last - signed(source[i]);
    at[i] += start[source[i]];
  }
  return {count: size, target, source, at, kind, words: raw.kinds};
};

// The first of `from` to `to` whose value is above (or, with `same`, at least) `limit`.
tl.above = (values, from, to, limit, same = false) => {
  while (from < to) {
    const middle = (from + to) >>> 1;
    const value = values[middle];
    if (value > limit || (same && value === limit)) to = middle;
    else from = middle + 1;
  }
  return from;
};

// The same, for an answer that is probably near `from`.
tl.ahead = (values, from, to, limit) => {
  let reach = 1;
  while (from + reach < to && values[from + reach] < limit) reach *= 2;
  return tl.above(values, from + (reach >> 1), Math.min(from + reach + 1, to), limit, true);
};

// Which slice has that id. Made when first asked for.
tl.byId = (model) => {
  if (!model.idMap) {
    model.idMap = new Map();
    for (let i = 0; i < model.count; i++) if (!model.isOwn(i)) model.idMap.set(model.id[i], i);
  }
  return model.idMap;
};

// Lists of numbers by group: the members of group g stand at first[g] to first[g + 1].
const grouped = (group, groups) => {
  const first = new Uint32Array(groups + 2);
  for (let i = 0; i < group.length; i++) if (group[i] >= 0) first[group[i] + 2]++;
  for (let g = 1; g < first.length; g++) first[g] += first[g - 1];
  const members = new Uint32Array(first[groups + 1]);
  for (let i = 0; i < group.length; i++) if (group[i] >= 0) members[first[group[i] + 1]++] = i;
  return {first, members};
};
tl.of = ({first, members}, g) => members.subarray(first[g], first[g + 1]);

tl.owned = (model) => (model.ownedLists ||= grouped(model.owner, model.count));
tl.arrowsFrom = (model) => (model.fromLists ||= grouped(model.arrows.source, model.count));
tl.arrowsTo = (model) => (model.toLists ||= grouped(model.arrows.target, model.count));

// Some of the slices, as marks, as a list, and as counts that tell of any stretch in no time.
tl.some = (model, list) => {
  const marked = new Uint8Array(model.count);
  for (const i of list) marked[i] = 1;
  const before = new Uint32Array(model.count + 1);
  for (let i = 0; i < model.count; i++) before[i + 1] = before[i] + marked[i];
  return {marked, list, any: (from, to) => before[to] > before[from]};
};

// The spans of a slice's subtree without itself; own time is a slice, but no span.
tl.ownedSpans = (model, root, subtree) => subtree.filter((i) => i !== root && !model.isOwn(i));

// A slice and all that it owns, on whatever lane, however deep.
tl.subtree = (model, root) => {
  const lists = tl.owned(model);
  const found = [root];
  for (let at = 0; at < found.length; at++) for (const i of tl.of(lists, found[at])) found.push(i);
  return found;
};
