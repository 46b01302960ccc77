// Search by name: marks all that match, and goes from one to the next in order of time.
const tl = (opscope.tl ||= {});

// The slices whose name on show, or operator, holds the text; capitals do not matter.
tl.matches = (model, query) => {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const hit = model.faces.map((face) =>
    face.full.toLowerCase().includes(wanted) || face.short.toLowerCase().includes(wanted));
  const list = [];
  for (let i = 0; i < model.count; i++) if (hit[model.face[i]]) list.push(i);
  const {start} = model;
  return tl.some(model, Uint32Array.from(list).sort((a, b) => start[a] - start[b] || a - b));
};

tl.search = (model, view, state, {show, changed, say}) => {
  const input = tl.make("input", "timeline-input", {
    type: "search", placeholder: "Search names", "aria-label": "Search the names of the timeline",
    spellcheck: "false", autocomplete: "off",
  });
  const count = tl.make("output", "timeline-count", {"aria-live": "polite"});
  const back = tl.button("‹", "Previous match (Shift+Enter)", () => step(-1));
  const next = tl.button("›", "Next match (Enter)", () => step(1));
  let at = -1;
  let waiting = 0;
  let asked = "";

  const tell = () => {
    const number = state.found ? state.found.list.length : 0;
    back.disabled = next.disabled = !number;
    if (!state.found) opscope.text(count, "");
    else if (!number) opscope.text(count, "no match");
    else if (at < 0) opscope.text(count, opscope.grouped(number) + (number > 1 ? " matches" : " match"));
    else opscope.text(count, `${opscope.grouped(at + 1)} of ${opscope.grouped(number)}`);
  };
  const find = () => {
    clearTimeout(waiting);
    if (input.value === asked) return;
    asked = input.value;
    state.found = tl.matches(model, asked);
    state.current = at = -1;
    tell();
    changed();
  };
  // From where one looks: the first match in sight, then onwards, around the end.
  const step = (way) => {
    find();
    const list = state.found && state.found.list;
    if (!list || !list.length) return;
    if (at < 0) {
      const from = view.isWhole() ? -Infinity : view.aim().from;
      at = list.findIndex((i) => model.start[i] >= from);
      if (way < 0) at = (at < 0 ? list.length : at) - 1;
      if (at < 0) at = way < 0 ? list.length - 1 : 0;
    } else {
      at = (at + way + list.length) % list.length;
    }
    state.current = list[at];
    tell();
    show(list[at]);
    const face = model.faces[model.face[list[at]]];
    say(`${face.short}, ${opscope.ns(model.end[list[at]] - model.start[list[at]])}`);
  };
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 120);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && input.value) {
      input.value = "";
      find();
    }
  });
  tell();
  return {nodes: [input, back, next, count], focus: () => input.focus()};
};
