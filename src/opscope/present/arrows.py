"""The arrows of a trace: from where something was caused to where it ran."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import all_links
from opscope.analyse.basis import basis
from opscope.model import LinkKind, Rows, Session
from opscope.present.threads import Threads, microseconds

_WORDS = {int(kind): kind.name.lower() for kind in LinkKind}


def arrows(session: Session, where: Threads) -> Iterator[str]:
    """Two events for each link that can be drawn: `s` in a slice, `f` at the start of its target.

    Pushes are drawn where the lanes differ. A backward call is drawn from the forward call to it.
    Not drawn: links to spans the session lacks, and those that would point back in time.
    """
    spans = session.spans
    order: NDArray[np.int64] = np.argsort(spans["id"], kind="stable")
    links = all_links(session)
    sources, targets = (_rows(spans, order, links[end]) for end in ("source", "target"))
    inside = Inside(session)
    number, zero = 0, session.start_ns
    for kind, source, target in zip(
        links["kind"].tolist(), sources.tolist(), targets.tolist(), strict=True
    ):
        if source < 0 or target < 0:
            continue
        if kind == LinkKind.BACKWARD:
            source, target = target, source
        begin = _begin(spans, inside, kind, source, target)
        if begin is None:
            continue
        row, moment = begin
        number += 1
        head = f'"id": {number}, "name": {json.dumps(_WORDS.get(kind, "link"))}, "cat": "flow"'
        for phase, at, time in (
            ('"s"', row, moment),
            ('"f", "bp": "e"', target, int(spans["start_ns"][target])),
        ):
            place = where.every[int(where.of_span[at])]
            yield (
                f'{{"ph": {phase}, {head}, "pid": {place.pid}, "tid": {place.tid}, '
                f'"ts": {microseconds(time - zero)}}}'
            )


def _begin(
    spans: Rows, inside: Inside, kind: int, source: int, target: int
) -> tuple[int, int] | None:
    """(row of the slice, moment) an arrow begins at; None: not to be drawn."""
    start = int(spans["start_ns"][target])
    moment = int(spans["submitted_ns"][target])
    if kind in (LinkKind.PUSH, LinkKind.SPAWN) and moment > 0:
        lane = int(spans["submitted_lane"][target])
        if kind == LinkKind.PUSH and lane == spans["lane"][target]:
            return None
        row = inside.at(lane, moment)
        if row is None or moment > start:
            return None
        return row, moment
    first, last = int(spans["start_ns"][source]), int(spans["end_ns"][source])
    if kind == LinkKind.PUSH and spans["lane"][source] == spans["lane"][target]:
        return None
    if first > start:
        return None
    if kind in (LinkKind.PUSH, LinkKind.SPAWN):
        return source, max(min(start, last), first)
    return source, first


class Inside:
    """Finds the innermost span of a lane at a moment."""

    def __init__(self, session: Session) -> None:
        spans, nesting = session.spans, basis(session).attribution.nesting
        order = np.lexsort((nesting.depth, -spans["end_ns"], spans["start_ns"], spans["lane"]))
        edges = np.searchsorted(spans["lane"][order], np.arange(len(session.lanes) + 1))
        self._rows = [order[a:b] for a, b in pairwise(edges.tolist())]
        self._starts = [spans["start_ns"][rows].tolist() for rows in self._rows]
        self._end = spans["end_ns"].tolist()
        self._parent = nesting.parent.tolist()

    def at(self, lane: int, moment_ns: int) -> int | None:
        """The row of a span with start <= moment < end, else one that ends just then, else None."""
        if not 0 <= lane < len(self._rows):
            return None
        place = bisect_right(self._starts[lane], moment_ns) - 1
        touching = None
        row = int(self._rows[lane][place]) if place >= 0 else -1
        while row >= 0:
            if self._end[row] > moment_ns:
                return row
            if self._end[row] == moment_ns and touching is None:
                touching = row
            row = self._parent[row]
        return touching


def _rows(spans: Rows, order: NDArray[np.int64], ids: Rows) -> Rows:
    """The row of each id, -1 where the session has no such span."""
    if not len(spans):
        return np.full(len(ids), -1, np.int64)
    known = spans["id"][order]
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[place] == ids, order[place], -1)
