"""What tests do with the timeline of a page, and sessions to do it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.builders import op, session, span

from opscope.model import Kind, Lane, LinkKind, Phase, Session
from opscope.present.page import write_page

CALL, OP, TASK, DEVICE, WAIT = Kind.CALL, Kind.OP, Kind.TASK, Kind.DEVICE, Kind.WAIT


def until(tab: Any, condition: str, argument: Any = None) -> None:
    """Looks once a frame. Playwright's own way needs `eval`, which the page forbids."""
    tab.evaluate(
        "(a) => new Promise((done, fail) => { let left = 900; const look = () =>"
        f" ({condition}) ? done() : left-- ? requestAnimationFrame(look) : fail('never');"
        " look(); })",
        argument,
    )


HOOK = "document.querySelector('#timeline').timeline"


class Timeline:
    """What a test does with the timeline of a page."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.canvas = tab.locator(".timeline-canvas")
        self.details = tab.locator(".timeline-details")

    def state(self) -> dict[str, Any]:
        """When nothing moves and the last change has been drawn."""
        until(self.tab, f"!{HOOK}.state().moving")
        self.tab.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        found: dict[str, Any] = self.tab.evaluate(f"{HOOK}.state()")
        return found

    def where(self, ident: int) -> dict[str, float] | None:
        self.state()
        found: dict[str, float] | None = self.tab.evaluate(f"(id) => {HOOK}.where(id)", ident)
        return found

    def at(self, ident: int) -> tuple[float, float]:
        place = self.where(ident)
        assert place is not None, f"{ident} is not on the screen"
        return place["x"], place["y"]

    def click(self, ident: int) -> None:
        self.tab.mouse.click(*self.at(ident))

    def time(self, x: float) -> float:
        """The moment at a place of the window."""
        state, box = self.state(), self.canvas.bounding_box()
        return float(state["from"] + (x - box["x"]) / box["width"] * state["span"])

    def pixel(self, x: float, y: float) -> list[int]:
        """The colour drawn at a place of the window, read from a copy of the canvas."""
        self.state()
        found: list[int] = self.tab.evaluate(
            """([x, y]) => {
              const canvas = document.querySelector(".timeline-canvas");
              const box = canvas.getBoundingClientRect();
              const copy = document.createElement("canvas");
              [copy.width, copy.height] = [canvas.width, canvas.height];
              const ctx = copy.getContext("2d", {willReadFrequently: true});
              ctx.drawImage(canvas, 0, 0);
              const scale = canvas.width / box.width;
              const at = [(x - box.left) * scale, (y - box.top) * scale].map(Math.round);
              return [...ctx.getImageData(...at, 1, 1).data].slice(0, 3);
            }""",
            [x, y],
        )
        return found

    def colour(self, name: str) -> list[int]:
        """A colour of the theme at hand, by the name of its variable."""
        text = self.tab.evaluate(
            "(name) => getComputedStyle(document.querySelector('#timeline'))"
            ".getPropertyValue(name).trim()",
            name,
        )
        return [int(text[place : place + 2], 16) for place in (1, 3, 5)]


def showing(watched: Any, tmp_path: Path) -> Iterator[Callable[..., Timeline]]:
    """`shown(session)` -> its timeline in the window; in the end nothing went wrong or out."""

    def show(made: Session, tab: Any = watched.tab) -> Timeline:
        file = tmp_path / "page.html"
        with file.open("w", encoding="utf-8", newline="") as page:
            write_page(made, page)
        tab.emulate_media(reduced_motion="reduce")
        tab.goto(file.as_uri())
        until(tab, "performance.getEntriesByName('opscope-timeline-painted').length === 1")
        tab.evaluate("document.querySelector('#timeline').scrollIntoView({behavior: 'instant'})")
        return Timeline(tab)

    yield show
    assert watched.errors == []
    assert watched.foreign() == []


def several() -> Session:
    """A call that owns something on four lanes, its backward call, and others."""
    a, b = op("A"), op("B")
    return session(
        [
            span(1, a, CALL, 100_000, 1_100_000, cpu_ns=800_000, phase=Phase.FORWARD),
            span(2, "mul", OP, 150_000, 300_000, owner=1, cpu_ns=150_000),
            span(3, b, CALL, 400_000, 700_000, owner=1, cpu_ns=300_000),
            span(4, "add", OP, 500_000, 600_000, owner=3, cpu_ns=100_000),
            span(5, "job", TASK, 450_000, 900_000, owner=1, lane="pool", submitted_ns=420_000,
                 submitted_lane="main"),
            span(6, "sub", OP, 500_000, 800_000, owner=1, lane="pool"),
            span(7, a, CALL, 1_500_000, 1_700_000, cpu_ns=200_000, phase=Phase.BACKWARD),
            span(8, "alone", OP, 1_750_000, 1_950_000, lane="pool"),
            span(9, "kernel", DEVICE, 800_000, 1_300_000, owner=1, lane="stream"),
            span(10, "lock", WAIT, 750_000, 1_000_000, owner=1),
        ],
        lanes=[Lane("main", thread=5), Lane("pool"), Lane("stream", "stream")],
        links=[(LinkKind.BACKWARD, 7, 1), (LinkKind.LAUNCH, 2, 9)],
    )  # fmt: skip


def many(count: int = 20_000) -> Session:
    """So many short spans on each of two lanes."""
    lines = []
    for number in range(1, count + 1):
        at = 1000 * number
        kind = CALL if number % 100 == 0 else OP
        name = "hit" if number % 1000 == 550 else f"op{number % 7}"
        lines.append(span(number, "C" if kind == CALL else name, kind, at, at + 900))
        lines.append(span(count + number, "other", OP, at, at + number % 900, lane="second"))
    return session(lines)
