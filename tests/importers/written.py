"""Random forests of spans, written in each format that opscope reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.importers.xplane_writer import Plane, space

#: Names by depth: no span is right inside another of its name, which formats read as one.
_NAMES = (("aten::add", "aten::mul"), ("my::one", "aten::sub"), ("other::two", "aten::exp"))
_OWN = ("aten::log", "aten::cat")


@dataclass(frozen=True)
class Written:
    """A span in ticks from 0; `parent` is the place in the list of the one around it, or -1."""

    name: str
    lane: int
    start: int
    end: int
    parent: int


@dataclass(frozen=True)
class Format:
    """How a forest is written. `tick_ns` is what one tick is, `exact` whether an event is a whole
    span, so that no damage can join the beginning of one to the end of another."""

    kind: str
    write: Callable[[list[Written]], bytes]
    tick_ns: int
    exact: bool


@st.composite
def forests(draw: st.DrawFn, most: int = 14) -> list[Written]:
    """Spans on one to three lanes: each of some length, inside its parent, siblings apart or
    touching. Of two that begin together the outer one is longer."""
    spans: list[Written] = []
    gap, some = st.integers(0, 3), st.integers(1, 1500)

    def grow(lane: int, depth: int, at: int, parent: int) -> int:
        for _ in range(draw(st.integers(0 if depth else 1, 3))):
            if len(spans) >= most:
                break
            start = at + draw(gap)
            names = _NAMES[depth] if depth < len(_NAMES) else _OWN
            place = len(spans)
            spans.append(Written(draw(st.sampled_from(names)), lane, start, start, parent))
            inside = grow(lane, depth + 1, start, place) if depth < 3 else start
            at = inside + draw(some)
            spans[place] = Written(spans[place].name, lane, start, at, parent)
        return at

    for lane in range(draw(st.integers(1, 3))):
        grow(lane, 0, draw(st.integers(0, 50)), -1)
    return spans


def _us(ns: int) -> Any:
    """Nanoseconds as a number of microseconds with three places."""
    return _Exactly(f"{ns // 1000}.{ns % 1000:03}")


class _Exactly(float):
    """A number that is written as the text it was made of."""

    def __new__(cls, text: str) -> _Exactly:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def dumped(events: list[dict[str, Any]], *, head: Mapping[str, Any] | None = None) -> bytes:
    """The document, an event a line."""
    told = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in (head or {}).items()
    )
    lines = ",\n".join(_line(event) for event in events)
    return f'{{{told}"traceEvents": [\n{lines}\n]}}\n'.encode()


def _line(event: dict[str, Any]) -> str:
    pairs = (
        f'"{key}": {value.text if isinstance(value, _Exactly) else json.dumps(value)}'
        for key, value in event.items()
    )
    return "{" + ", ".join(pairs) + "}"


def _base(span: Written) -> dict[str, Any]:
    return {"name": span.name, "pid": 7, "tid": 100 + span.lane}


def kineto(spans: list[Written]) -> bytes:
    """As PyTorch writes it; ticks are nanoseconds."""
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            **_base(span),
            "ts": _us(span.start),
            "dur": _us(span.end - span.start),
            "args": {"External id": place + 1},
        }
        for place, span in enumerate(spans)
    ]
    return dumped(events, head={"schemaVersion": 1, "baseTimeNanoseconds": 0})


def complete(spans: list[Written]) -> bytes:
    """Chrome's complete events."""
    events = [
        {
            "ph": "X",
            "cat": "some",
            **_base(span),
            "ts": _us(span.start),
            "dur": _us(span.end - span.start),
        }
        for span in spans
    ]
    return dumped(events)


def pairs(spans: list[Written]) -> bytes:
    """Chrome's beginnings and ends, in the order of time on each lane."""
    children: dict[int, list[int]] = {}
    for place, span in enumerate(spans):
        children.setdefault(span.parent, []).append(place)
    events: list[dict[str, Any]] = []

    def walk(parent: int) -> None:
        for place in children.get(parent, ()):
            span = spans[place]
            base = {**_base(span), "cat": "some"}
            events.append({"ph": "B", **base, "ts": _us(span.start)})
            walk(place)
            events.append({"ph": "E", **base, "ts": _us(span.end)})

    walk(-1)
    return dumped(events)


def mxnet(spans: list[Written]) -> bytes:
    """Each operator twice, as a slice and as a task; ticks are microseconds."""
    events = []
    for span in spans:
        for phases, row in (("BE", 1), ("be", 3060606181218273969)):
            base = {"name": span.name.replace("::", "_"), "cat": "operator", "pid": row}
            thread = 17343844709549807314 + span.lane
            times = zip(phases, (span.start, span.end), strict=True)
            events += [
                {**base, "ph": ph, "ts": ts, "id": thread, "tid": thread} for ph, ts in times
            ]
    return dumped(events)


def xplane(spans: list[Written]) -> bytes:
    """A host's threads; ticks are nanoseconds."""
    plane = Plane("/host:CPU")
    lines = {lane: plane.line(100 + lane, f"python {lane}") for lane in {s.lane for s in spans}}
    for span in spans:
        lines[span.lane].append(plane.event(span.name, span.start * 1000, span.end * 1000))
    return space(plane)


FORMATS = {
    "kineto": Format("kineto", kineto, 1, True),
    "chrome X": Format("chrome", complete, 1, True),
    "chrome BE": Format("chrome", pairs, 1, False),
    "mxnet": Format("mxnet", mxnet, 1000, False),
    "xplane": Format("xplane", xplane, 1, True),
}
