// Which operators called which: each tile as wide as its time, what it called below it.
const {data, el, ns, percent, plural} = opscope;

const NARROWEST = 3; // pixels below which a tile is not drawn but counted
const LEGIBLE = 30; // pixels below which a name would be a letter or two
let tiles, host, crumbs, line, focus, trail;

const own = (tile) =>
  (tile.own || []).flatMap((value, index) => {
    if (!value) return [];
    const part = tiles.own[index].replace("_ns", "");
    return [{part, name: part, kind: "part", phase: tile.phase, calls: tile.calls, inclusive: value,
      own_ns: value, width: value, below: []}];
  });

const describe = (tile, path) => {
  const words = [tile.kind === "part" ? "own time of the call above" : tile.kind];
  if (tile.phase && tile.phase !== "none") words.push(tile.phase);
  if (tile.kind !== "part") words.push(plural(tile.calls, "call"));
  words.push(ns(tile.inclusive));
  if (tile.kind === "call") words.push("own " + ns(tile.own_ns));
  words.push(percent(tile.width, focus.width) + " of what is shown");
  line.replaceChildren(el("b", "name", path.concat(tile.name).join(" › ")),
    el("span", "soft", words.join(" · ")));
};

const piece = (tile, left, width, depth, path) => {
  const button = el("button", "tile");
  button.type = "button";
  const {part} = tile;
  button.classList.add(...(part ? ["part", "p-" + part] : ["call"]));
  button.style.left = 100 * left + "%";
  button.style.width = 100 * width + "%";
  button.style.top = `calc(${depth} * var(--step))`;
  button.tabIndex = -1;
  button.dataset.depth = depth;
  if (width * host.clientWidth > LEGIBLE) button.append(el("span", "", tile.name));
  button.setAttribute("aria-label", `${tile.name}, ${tile.kind}, ${ns(tile.inclusive)}`);
  const show = () => describe(tile, path);
  button.addEventListener("pointerenter", show);
  button.addEventListener("focus", show);
  button.addEventListener("click", () => {
    if (tile === focus && trail.length > 1) return go(trail.slice(0, -1));
    if (tile.below.length || tile.own) go(trail.concat(chain(tile)));
  });
  return button;
};

// From below the focus down to the tile.
const chain = (wanted, from = focus) => {
  for (const tile of from.below) {
    if (tile === wanted) return [tile];
    const deeper = chain(wanted, tile);
    if (deeper.length) return [tile, ...deeper];
  }
  return [];
};

const draw = () => {
  const room = host.clientWidth || 1000;
  let [deepest, hidden] = [0, 0];
  const pieces = [];
  const lay = (tile, left, width, depth, path) => {
    if (width * room < NARROWEST) {
      hidden += 1;
      return;
    }
    deepest = Math.max(deepest, depth);
    pieces.push(piece(tile, left, width, depth, path));
    const inside = depth || tile !== tiles.all ? path.concat(tile.name) : path;
    let at = left;
    for (const child of [...tile.below, ...own(tile)]) {
      const share = tile.width ? (width * child.width) / tile.width : 0;
      lay(child, at, share, depth + 1, inside);
      at += share;
    }
  };
  lay(focus, 0, 1, 0, trail.slice(1, -1).map((tile) => tile.name));
  host.replaceChildren(...pieces);
  host.style.height = `calc(${deepest + 1} * var(--step))`;
  pieces[0].tabIndex = 0;
  crumbs.replaceChildren(...trail.map((tile, index) => {
    const here = index === trail.length - 1;
    const step = el(here ? "span" : "button", here ? "here" : "link", tile.name);
    if (here) step.setAttribute("aria-current", "true");
    else {
      step.type = "button";
      step.addEventListener("click", () => go(trail.slice(0, index + 1)));
    }
    return step;
  }));
  const notes = [];
  if (hidden) notes.push(`${plural(hidden, "tile")} too narrow to draw here: open the tile above`);
  if (tiles.left_out) notes.push(`${plural(tiles.left_out, "small path")} left out of this page`);
  line.replaceChildren(el("span", "soft", notes.join("; ") ||
    "Point at a tile to read it, press it to look inside."));
};

const go = (way) => {
  const had = host.contains(document.activeElement);
  trail = way;
  focus = way[way.length - 1];
  draw();
  if (had) host.firstChild.focus();
};

// The first tile below one, and the tile around it.
const next = (from, depth) => {
  const level = [...host.children].filter((tile) => Number(tile.dataset.depth) === depth);
  const left = from.offsetLeft;
  if (depth < Number(from.dataset.depth)) return level.filter((t) => t.offsetLeft <= left).pop();
  return level.find((t) => t.offsetLeft >= left && t.offsetLeft < left + from.offsetWidth);
};

const walk = (event) => {
  const from = event.target.closest(".tile");
  if (!from) return;
  const depth = Number(from.dataset.depth);
  const level = [...host.children].filter((tile) => Number(tile.dataset.depth) === depth);
  const at = level.indexOf(from);
  const to = {ArrowRight: level[at + 1], ArrowLeft: level[at - 1], ArrowDown: next(from, depth + 1),
    ArrowUp: next(from, depth - 1), Home: host.firstChild}[event.key];
  if (event.key === "Escape" && trail.length > 1) go(trail.slice(0, -1));
  else if (to) {
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  } else return;
  event.preventDefault();
};

opscope.icicle = {
  mount(section) {
    tiles = data("icicle-data");
    if (!tiles.roots.length) return;
    const width = tiles.roots.reduce((sum, tile) => sum + tile.width, 0);
    tiles.all = {name: "all custom operators", kind: "all", phase: "", own: null, own_ns: 0, width,
      calls: tiles.roots.reduce((sum, tile) => sum + tile.calls, 0), below: tiles.roots,
      inclusive: tiles.roots.reduce((sum, tile) => sum + tile.inclusive, 0)};
    crumbs = el("nav", "crumbs");
    crumbs.setAttribute("aria-label", "Where the drawing is");
    host = el("div", "icicle");
    host.setAttribute("role", "group");
    host.setAttribute("aria-label", "Paths as tiles; arrow keys walk, Enter looks inside");
    line = el("p", "readout");
    section.append(el("p", "lead", "Each tile is as wide as its time, with what it called below it " +
      "and then its own time by part."), crumbs, host, line);
    host.addEventListener("keydown", walk);
    trail = [tiles.all];
    focus = tiles.all;
    draw();
    let last = host.clientWidth;
    new ResizeObserver(() => {
      if (host.clientWidth === last) return;
      last = host.clientWidth;
      draw();
    }).observe(host);
  },
};
