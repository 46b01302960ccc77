"""The timeline of the report page: how soon it is on the screen, and how fluently it moves.

    python bench/page_paint.py [--spans 200000] [--rounds 5] [--json FILE]

Writes the page of a made-up session (the same for the same seed), opens it in the installed
Chromium (OPSCOPE_CHROMIUM names one elsewhere), in a new profile each round, and reads the times
that the page itself marks. The first paint counts as done when the frame after it begins, which may
be before the load event ends. Frames are those of a zoom into the session and out again and of a
pan along it: how long drawing one takes on the main thread, and how far they are apart.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from opscope.model import SPAN, Kind, Lane, Op, Phase, Process, Session, Sight
from opscope.present.page import write_page

FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: ms from the load event to the first paint, and for a frame.
FIRST_MS, FRAME_MS = 1500, 16
MARK = "opscope-timeline-painted"

#: Moves the view as a hand would, one step a frame, and times each frame.
SCRIPT = """async (moves) => {
  const canvas = document.querySelector(".timeline-canvas");
  const hook = document.querySelector("#timeline").timeline;
  const box = canvas.getBoundingClientRect();
  const apart = [], drawn = [], idle = [];
  const next = () => new Promise(requestAnimationFrame);
  await next();
  let last = await next();
  for (let k = 0; k < 100; k++) {
    const now = await next();
    idle.push(now - last);
    last = now;
  }
  for (let k = 0; k < moves; k++) {
    const zooms = k % 100 < 70;
    const where = {bubbles: true, cancelable: true, clientX: box.left + box.width * 0.4,
      clientY: box.top + 10};
    const turn = k % 100 < 35 ? -60 : 60;
    canvas.dispatchEvent(new WheelEvent("wheel", zooms
      ? {...where, deltaY: turn, ctrlKey: true} : {...where, deltaX: turn}));
    const now = await next();
    apart.push(now - last);
    last = now;
    drawn.push(hook.state().frame_ms);
  }
  return {apart, drawn, idle};
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spans", type=int, default=200_000, help="how many (default 200,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often opened (default 5)")
    parser.add_argument("--moves", type=int, default=300, help="frames a round (default 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the figures of every round")
    chosen = parser.parse_args()
    session = made_up(chosen.spans, chosen.seed)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = Path(folder) / "page.html"
        began = time.process_time()
        with page.open("w", encoding="utf-8", newline="") as file:
            write_page(session, file)
        written_s = time.process_time() - began
        size = page.stat().st_size
        rounds = [opened(browser, page, chosen.moves) for _ in range(chosen.rounds)]
    report(len(session.spans), written_s, size, rounds)
    if chosen.json:
        chosen.json.write_text(json.dumps(rounds, indent=1), "utf-8")


def report(spans: int, written_s: float, size: int, rounds: list[dict[str, Any]]) -> None:
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {len(rounds)} rounds")
    print(
        f"{spans:,} spans, {rounds[0]['slices']:,} slices: page of {size / 1e6:.1f} MB "
        f"({size / spans:.1f} bytes a span), written in {written_s:.2f} s of CPU time"
    )
    first = [each["paint_ms"] - each["load_ms"] for each in rounds]
    whole = [each["paint_ms"] for each in rounds]
    print(f"{'':38}   median      worst")
    line("load event to first paint, ms", first)
    line("navigation start to first paint, ms", whole)
    drawn = [value for each in rounds for value in each["drawn"]]
    apart = [value for each in rounds for value in each["apart"]]
    idle = [value for each in rounds for value in each["idle"]]
    print(f"{'':38}   median        p95      worst")
    frames("drawing a frame while moving, ms", drawn)
    frames("from frame to frame, ms", apart)
    frames("the same while nothing moves, ms", idle)
    verdict = "PASS" if statistics.median(first) < FIRST_MS else "over"
    print(f"  budget: first paint {FIRST_MS} ms after the load event: {verdict}")
    verdict = "PASS" if percentile(drawn, 95) < FRAME_MS else "over"
    print(f"  budget: 95 of 100 frames drawn in {FRAME_MS} ms: {verdict}")


def line(what: str, values: list[float]) -> None:
    print(f"{what:38} {statistics.median(values):8.0f} {max(values):10.0f}")


def frames(what: str, values: list[float]) -> None:
    middle, most = statistics.median(values), percentile(values, 95)
    print(f"{what:38} {middle:8.1f} {most:10.1f} {max(values):10.1f}")


def percentile(values: list[float], share: int) -> float:
    return float(np.percentile(values, share))


def opened(browser: Any, page: Path, moves: int) -> dict[str, Any]:
    """The figures of the page in a new tab of a new profile."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.evaluate(  # Playwright's own way to wait needs `eval`, which the page forbids
        "(mark) => new Promise((done) => { const look = () => performance.getEntriesByName(mark)"
        ".length ? done() : requestAnimationFrame(look); look(); })",
        MARK,
    )
    found: dict[str, Any] = tab.evaluate(
        "([mark]) => ({paint_ms: performance.getEntriesByName(mark)[0].startTime,"
        " load_ms: performance.getEntriesByType('navigation')[0].loadEventStart,"
        " slices: document.querySelector('#timeline').timeline.state().slices})",
        [MARK],
    )
    tab.evaluate("document.querySelector('#timeline').scrollIntoView({behavior: 'instant'})")
    found |= tab.evaluate(SCRIPT, moves)
    context.close()
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("playwright is not installed: pip install playwright (no browser needed with it)")
    named = os.environ.get("OPSCOPE_CHROMIUM", "")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        sys.exit("no Chromium is installed (OPSCOPE_CHROMIUM names one elsewhere)")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


# --- the session ---------------------------------------------------------------------------------

OPS = tuple(Op("torch", "autograd.Function", f"Made{number}") for number in range(12))
PLAIN = ("aten::linear", "aten::mul", "aten::add", "aten::copy_", "aten::empty")
TASK, KERNEL, STEP = "prepare", "kernel_of_some_length", "ProfilerStep"
NAMES_SHOWN = (*(op.name for op in OPS), *PLAIN, TASK, KERNEL, STEP)
LANES = (
    *(Lane(name) for name in ("main", "pool-0", "pool-1", "pool-2")),
    *(Lane(f"stream {number}", "stream") for number in (7, 8)),
)


def made_up(spans: int, seed: int) -> Session:
    """Steps on a main thread: calls of a dozen operators, each with operators nested in it, tasks
    on other threads and work on two device streams."""
    maker = Maker(seed)
    while len(maker.rows) < spans:
        maker.step()
    return Session(
        spans=np.array(maker.rows[:spans], SPAN),
        names=NAMES_SHOWN,
        lanes=LANES,
        ops=OPS,
        op_names=tuple(range(len(OPS))),
        sight=(Sight("torch", "2", ("calls", "sub-operators", "device")),),
        processes=(Process(pid=7, command=("made_up.py",), complete=True),),
    )


class Maker:
    def __init__(self, seed: int) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.now = 1_000
        self.free = [0] * len(LANES)
        self._chance = random.Random(seed)

    def step(self) -> None:
        begin, place = self.now, self._reserve()
        for _ in range(40):
            self.call()
        self._put(place, STEP, Kind.STEP, 0, begin, self.now)
        self.now += 2_000

    def call(self) -> None:
        """One call with what it causes."""
        chance, begin, place = self._chance, self.now, self._reserve()
        self.now += 2_000
        for _ in range(chance.randint(3, 7)):
            self.now += chance.randint(0, 4_000)
            start = self.now
            self.now += 3_000 + int(chance.random() ** 4 * 90_000)
            self._put(None, PLAIN[0], Kind.OP, 0, start, self.now, place)
            inner = chance.choice(PLAIN[1:])
            self._put(None, inner, Kind.OP, 0, start + 500, self.now - 700, place)
            length = 1_000 + int(chance.random() ** 3 * 60_000)
            self._later(KERNEL, Kind.DEVICE, chance.choice((4, 5)), length, place)
        if chance.random() < 0.3:
            self._later(TASK, Kind.TASK, chance.choice((1, 2, 3)), 40_000, place)
        self.now += 1_500
        phase = chance.choice((Phase.FORWARD, Phase.BACKWARD))
        self._put(place, chance.choice(OPS).name, Kind.CALL, 0, begin, self.now, phase=phase)
        self.now += 6_000

    def _later(self, name: str, kind: Kind, lane: int, length: int, owner: int) -> None:
        """Something handed over now, done when its lane is free."""
        begin = max(self.free[lane], self.now)
        self.free[lane] = begin + length
        self._put(None, name, kind, lane, begin, begin + length, owner, pushed=self.now)

    def _reserve(self) -> int:
        self.rows.append(())
        return len(self.rows)

    def _put(
        self,
        place: int | None,
        name: str,
        kind: Kind,
        lane: int,
        begin: int,
        end: int,
        owner: int = 0,
        *,
        phase: Phase = Phase.NONE,
        pushed: int = 0,
    ) -> None:
        place = place or self._reserve()
        number = NAMES_SHOWN.index(name)
        self.rows[place - 1] = (
            *(place, owner, number, kind, phase, 0, lane, 0, begin, end, pushed, -1),
        )


if __name__ == "__main__":
    main()
