"""The arrows of a trace: from where something was caused to where it ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import all_links
from opscope.analyse.basis import basis
from opscope.model import LinkKind, Rows, Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """One entry an arrow: its kind, the rows of the spans it joins, and when it leaves the first.

    Moments are those of the session's clock. An arrow ends where its target starts.
    """

    kind: Ints
    source: Ints
    target: Ints
    moment_ns: Ints


def arrows(session: Session) -> Arrows:
    """The links that can be drawn. Pushes are, where the lanes differ; a backward call is drawn
    from the forward call to it. A push or spawn whose moment is known leaves the innermost span at
    that moment. Not drawn: links to spans the session lacks, and those that would point back in
    time.
    """
    spans, links = session.spans, all_links(session)
    by_id: Ints = np.argsort(spans["id"], kind="stable")
    source, target = (_rows(spans, by_id, links[end]) for end in ("source", "target"))
    back = links["kind"] == LinkKind.BACKWARD
    source, target = np.where(back, target, source), np.where(back, source, target)
    known = np.flatnonzero((source >= 0) & (target >= 0))
    kind, source, target = links["kind"][known], source[known], target[known]
    row, moment = _leave(session, kind, source, target)
    drawn = row >= 0
    return Arrows(kind[drawn], row[drawn], target[drawn], moment[drawn])


def _leave(session: Session, kind: Ints, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """(row of the span, moment) that each arrow leaves; row -1 where it is not to be drawn."""
    spans = session.spans
    start, submitted = spans["start_ns"][target], spans["submitted_ns"][target]
    pushed = kind == LinkKind.PUSH
    caused = pushed | (kind == LinkKind.SPAWN)
    told = caused & (submitted > 0)
    lane = np.where(told, spans["submitted_lane"][target], spans["lane"][source])
    first, last = spans["start_ns"][source], spans["end_ns"][source]
    moment = np.where(caused, np.maximum(np.minimum(start, last), first), first)
    moment = np.where(told, submitted, moment)
    row = source.copy()
    row[told] = innermost(session, lane[told], moment[told])
    here = pushed & (lane == spans["lane"][target])
    return np.where(here | (np.where(told, submitted, first) > start), -1, row), moment


def innermost(session: Session, lane: Ints, moment_ns: Ints) -> Ints:
    """For each moment the row of the innermost span of that lane with start <= moment < end, else
    of one that ends just then, else -1."""
    spans, nesting = session.spans, basis(session).attribution.nesting
    order = np.lexsort((nesting.depth, -spans["end_ns"], spans["start_ns"], spans["lane"]))
    starts = spans["start_ns"][order]
    edges = np.searchsorted(spans["lane"][order], np.arange(len(session.lanes) + 1))
    row = np.full(len(lane), -1, np.int64)
    asked = np.argsort(lane, kind="stable")
    for number in np.unique(lane).tolist():
        if not 0 <= number < len(session.lanes):
            continue
        among = asked[slice(*np.searchsorted(lane[asked], (number, number + 1)).tolist())]
        low, high = edges[number : number + 2].tolist()
        place = low + np.searchsorted(starts[low:high], moment_ns[among], "right") - 1
        row[among[place >= low]] = order[place[place >= low]]
    found = np.full(len(lane), -1, np.int64)
    left = np.flatnonzero(row >= 0)
    while len(left):
        here, end = row[left], spans["end_ns"][row[left]]
        inside = end > moment_ns[left]
        touching = (end == moment_ns[left]) & (found[left] < 0)
        found[left[inside | touching]] = here[inside | touching]
        row[left] = nesting.parent[here]
        left = left[~inside & (row[left] >= 0)]
    return found


def _rows(spans: Rows, order: NDArray[np.int64], ids: Rows) -> Rows:
    """The row of each id, -1 where the session has no such span."""
    if not len(spans):
        return np.full(len(ids), -1, np.int64)
    known = spans["id"][order]
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[place] == ids, order[place], -1)
