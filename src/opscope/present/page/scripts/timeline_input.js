// Mouse, touch and wheel on the canvas and on the small picture.
const tl = (opscope.tl ||= {});

const STILL = 5; // pixels that a click may move

const place = (event, node) => {
  const box = node.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

tl.pointers = (canvas, view, scroller, state, {select, fit, hover, measure}) => {
  const down = new Map(); // pointer -> where it is
  let drag = null;
  let pinch = null;

  const begin = (event) => {
    if (event.button > 0) return;
    const [x, y] = place(event, canvas);
    down.set(event.pointerId, [x, y]);
    canvas.setPointerCapture(event.pointerId);
    hover(-1);
    if (down.size === 2) {
      drag = null;
      const [[a], [b]] = down.values();
      pinch = {apart: Math.max(Math.abs(a - b), 10), ...view.aim(), middle: (a + b) / 2};
      return;
    }
    const {from, span} = view.aim();
    const measuring = event.shiftKey || state.measuring;
    drag = {x, y, from, span, scroll: scroller.scrollTop, moved: false, measuring, time: view.time(x)};
  };
  const move = (event) => {
    const [x, y] = place(event, canvas);
    if (!down.has(event.pointerId)) {
      if (event.pointerType === "mouse") hover(view.pick(x, y), event);
      return;
    }
    down.set(event.pointerId, [x, y]);
    if (pinch && down.size === 2) {
      const [[a], [b]] = down.values();
      const span = (pinch.span * pinch.apart) / Math.max(Math.abs(a - b), 10);
      const fixed = pinch.from + (pinch.middle / view.width) * pinch.span;
      view.go(fixed - ((a + b) / 2 / view.width) * span, span);
      return;
    }
    if (!drag) return;
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < STILL) return;
    drag.moved = true;
    if (drag.measuring) {
      measure([drag.time, view.time(Math.min(Math.max(x, 0), view.width))]);
      return;
    }
    canvas.classList.add("timeline-dragged");
    view.go(drag.from - ((x - drag.x) / view.width) * drag.span, drag.span);
    if (event.pointerType === "mouse") scroller.scrollTop = drag.scroll - (y - drag.y);
  };
  const finish = (event) => {
    if (!down.delete(event.pointerId)) return;
    canvas.classList.remove("timeline-dragged");
    if (down.size) {
      drag = null;
      return;
    }
    const clicked = drag && !drag.moved && !pinch && event.type === "pointerup";
    if (drag && drag.measuring && drag.moved) measure(state.range, true);
    if (clicked) {
      if (state.range) measure(null);
      select(view.pick(drag.x, drag.y, event.pointerType === "touch" ? 12 : 3));
    }
    drag = pinch = null;
  };
  canvas.addEventListener("pointerdown", begin);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", finish);
  canvas.addEventListener("pointercancel", finish);
  canvas.addEventListener("pointerleave", () => hover(-1));
  canvas.addEventListener("dblclick", (event) => fit(view.pick(...place(event, canvas))));
  wheel(canvas, view);
};

const wheel = (node, view) => {
  node.addEventListener("wheel", (event) => {
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 300 : 1;
    const [dx, dy] = [event.deltaX * lines, event.deltaY * lines];
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const [x] = place(event, node);
      view.zoom(Math.exp(Math.min(Math.max(dy, -200), 200) * 0.004), x - (node.timelineGutter || 0));
    } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      event.preventDefault();
      view.pan((dx || dy) / view.width);
    } // else: up and down through the lanes, and on through the page
  }, {passive: false});
};

// The small picture: click or drag moves the time in sight.
tl.mapPointers = (canvas, model, view) => {
  let grip = null;
  const time = (event) => {
    const [x] = place(event, canvas);
    return ((x - view.gutter) / view.width) * model.length;
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    const {from, span} = view.aim();
    const at = time(event);
    grip = at >= from && at <= from + span ? at - from : span / 2;
    view.go(at - grip, span);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip !== null) view.go(time(event) - grip, view.aim().span);
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, () => (grip = null));
  }
};
