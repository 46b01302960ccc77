"""Random forests of spans, and the same as the text of a Chrome trace."""

from __future__ import annotations

import json
from collections import Counter
from io import BytesIO
from typing import Any

from hypothesis import strategies as st

from opscope.importers import documents
from opscope.importers.building import Builder, Options
from opscope.importers.chrome import read
from opscope.model import Flag, Session

#: Name, thread, start and end in ns; in the order in which they begin, the outer first.
Span = tuple[str, int, int, int]

NAMES = st.one_of(
    st.sampled_from(["a", "b", "aten::add", "f(x, [1, 2])", 'q"uo\\te', "}, {", "é\N{SNOWMAN}"]),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8),
)


@st.composite
def forests(draw: st.DrawFn, base_ns: int = 0) -> list[Span]:
    """Properly nested spans on up to three threads."""
    spans: list[Span] = []

    def grow(thread: int, start: int, end: int, depth: int) -> None:
        at = start
        for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
            begin = draw(st.integers(at, end))
            finish = draw(st.integers(begin, end))
            spans.append((draw(NAMES), thread, base_ns + begin, base_ns + finish))
            grow(thread, begin, finish, depth + 1)
            at = finish

    for thread in range(1, draw(st.integers(1, 3)) + 1):
        grow(thread, 0, draw(st.integers(0, 10**6)), 0)
    return spans


def us(ns: int) -> str:
    """A time stamp as it stands in a file."""
    return f"{ns // 1000}.{ns % 1000:03}"


def text_of(fields: dict[str, Any], **times: int) -> str:
    """One event."""
    stamps = "".join(f', "{key}": {us(ns)}' for key, ns in times.items())
    return json.dumps(fields, ensure_ascii=False)[:-1] + stamps + "}"


def whole_events(spans: list[Span]) -> list[str]:
    """As phase X."""
    return [
        text_of(
            {"ph": "X", "name": name, "pid": 1, "tid": tid, "args": {"x": [{"y": 1}, {"z": "}"}]}},
            ts=start,
            dur=end - start,
        )
        for name, tid, start, end in spans
    ]


def marks(spans: list[Span]) -> list[str]:
    """As phases B and E, in the order in which a program would write them."""
    events: list[str] = []
    open_: list[Span] = []

    def close() -> None:
        name, tid, _, end = open_.pop()
        events.append(text_of({"ph": "E", "name": name, "pid": 1, "tid": tid}, ts=end))

    for span in spans:
        while open_ and not _within(span, open_[-1]):
            close()
        events.append(text_of({"ph": "B", "name": span[0], "pid": 1, "tid": span[1]}, ts=span[2]))
        open_.append(span)
    while open_:
        close()
    return events


def _within(inner: Span, outer: Span) -> bool:
    return inner[1] == outer[1] and inner[3] <= outer[3] and inner[2] < outer[3]


def as_list(events: list[str]) -> bytes:
    """The array form."""
    return ("[\n" + ",\n".join(events) + "\n]").encode()


def as_object(events: list[str]) -> bytes:
    """The object form, with members on both sides."""
    head = '{"schema": 1, "devices": [{"id": 0}], "traceEvents": ['
    return (head + ", ".join(events) + '], "end": {"a": [1]}}').encode()


def session_of(data: bytes, *custom: str, block: int = documents.BLOCK) -> Session:
    """What comes of a file, read in blocks of that size."""
    before, documents.BLOCK = documents.BLOCK, block
    try:
        return read(BytesIO(data), Builder("chrome", Options(custom)))
    finally:
        documents.BLOCK = before


def spans_of(session: Session) -> Counter[Span]:
    """The spans with an end."""
    return Counter(
        (
            session.names[row["name"]],
            session.lanes[row["lane"]].thread,
            int(row["start_ns"]),
            int(row["end_ns"]),
        )
        for row in session.spans
        if not row["flags"] & Flag.INCOMPLETE
    )


def findings_of(session: Session) -> dict[str, int]:
    """How often what was odd."""
    return {finding.what: finding.count for finding in session.processes[0].findings}
