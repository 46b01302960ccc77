"""Arrows, all at once, are those that a look at one link after the other finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from tests.builders import session
from tests.present.test_chrome import lines_of_a_session
from tests.present.test_perfetto import links_of_a_session

from opscope.analyse import all_links
from opscope.analyse.basis import basis
from opscope.model import LinkKind, Session
from opscope.present.arrows import arrows


class Slow:
    def __init__(self, made: Session) -> None:
        self._nesting = basis(made).attribution.nesting
        self._rows = [
            dict(zip(made.spans.dtype.names, r, strict=True)) for r in made.spans.tolist()
        ]

    def innermost(self, lane: int, moment: int) -> int | None:
        """Of the last that began and what is around it: what has not ended, else what ends now."""
        begun = [n for n, r in enumerate(self._rows) if r["lane"] == lane]
        begun = [n for n in begun if self._rows[n]["start_ns"] <= moment]
        if not begun:
            return None
        depth = self._nesting.depth
        row = max(begun, key=lambda n: (self._key(n), depth[n], n))
        touching = None
        while row >= 0:
            end = self._rows[row]["end_ns"]
            if end > moment:
                return row
            touching = row if end == moment and touching is None else touching
            row = int(self._nesting.parent[row])
        return touching

    def _key(self, row: int) -> tuple[int, int]:
        return self._rows[row]["start_ns"], -self._rows[row]["end_ns"]

    def leaves(self, kind: int, source: int, target: int) -> tuple[int, int] | None:
        """(row, moment) an arrow leaves; None: not to be drawn."""
        first, last = self._rows[source], self._rows[target]
        start, moment = last["start_ns"], last["submitted_ns"]
        caused = kind in (LinkKind.PUSH, LinkKind.SPAWN)
        told = caused and moment > 0
        lane = last["submitted_lane"] if told else first["lane"]
        if kind == LinkKind.PUSH and lane == last["lane"]:
            return None
        if told:
            row = self.innermost(lane, moment)
            return None if row is None or moment > start else (row, moment)
        if first["start_ns"] > start:
            return None
        if caused:
            return source, max(min(start, first["end_ns"]), first["start_ns"])
        return source, first["start_ns"]

    def arrows(self, links: Any) -> list[tuple[int, int, int, int]]:
        place = {row["id"]: number for number, row in enumerate(self._rows)}
        found = []
        for kind, source, target in links.tolist():
            if source not in place or target not in place:
                continue
            here, there = place[source], place[target]
            here, there = (there, here) if kind == LinkKind.BACKWARD else (here, there)
            if (begin := self.leaves(kind, here, there)) is not None:
                found.append((kind, begin[0], there, begin[1]))
        return found


@settings(max_examples=300, deadline=None)
@given(lines_of_a_session(), links_of_a_session)
def test_all_at_once_and_one_by_one(lines: Any, links: Any) -> None:
    made = session(lines, links=links)
    drawn = arrows(made)
    columns = (drawn.kind, drawn.source, drawn.target, drawn.moment_ns)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == Slow(made).arrows(
        all_links(made)
    )
