"""When was a call doing nothing but its own work? The holes on its lane that nothing covers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import Basis, basis
from opscope.analyse.inside import holes, pairs
from opscope.attribution import UNKNOWN, Running, among, looking_through
from opscope.attribution.cover import Axis
from opscope.attribution.ranges import pauses
from opscope.attribution.totals import totals
from opscope.model import Kind, Session

Ints = NDArray[np.int64]


class Own(IntEnum):
    """What the own time of a call was; the names are those on show."""

    PURE_PYTHON = 0
    OWN = 1  #: Python and waiting of which only the amount is known
    NATIVE = 2
    UNTRACKED = 3


@dataclass(frozen=True, slots=True, eq=False)
class OwnTime:
    """One entry for each stretch, in the session's clock: the row of the call, the row of the span
    it is directly inside of (the call, or an annotation in it), and what it was.

    `python_ns` and `wait_ns` say of all stretches of one call how much was what, for `OWN`.
    """

    call: Ints
    box: Ints
    start_ns: Ints
    end_ns: Ints
    sort: Ints
    python_ns: Ints
    wait_ns: Ints


def own_time(session: Session) -> OwnTime:
    """The stretches of own time of all calls. Time in which recording was paused is left out."""
    base = basis(session)
    # Nobody's own time is in a suspension of theirs, and everybody's goes on in those of others.
    running = base.attribution.running
    places, row = running.places, running.row
    call = _call_of_box(running)
    boxes = np.flatnonzero(call >= 0)
    number = np.full(len(places), -1, np.int64)
    number[boxes] = np.arange(len(boxes))
    edge = places["end_ns"][call[boxes]]  # an annotation may reach beyond its call
    axis = Axis(places["start_ns"][boxes], np.minimum(places["end_ns"][boxes], edge))
    below, above = pairs(places, running.parent, np.arange(len(places)))
    inside = number[above] >= 0
    below, above = below[inside], above[inside]
    placed = axis.place(number[above], places["start_ns"][below], places["end_ns"][below])
    stopped = axis.place(*pauses(session, row[boxes]))
    group, start, end = (np.concatenate(pair) for pair in zip(placed, stopped, strict=True))
    group, start, end = holes(axis.origin, axis.length_ns, group, start, end)
    shift = axis.start_ns[group] - axis.origin[group]
    start, end = start + shift, end + shift

    waiting = (places["kind"] == Kind.WAIT)[below]
    known = axis.covered(
        number[above[waiting]],
        places["start_ns"][below[waiting]],
        places["end_ns"][below[waiting]],
    )
    seen = totals(row[call[boxes]], known, len(session.spans))
    sort, python, hidden = _sorts(base, seen)
    box = row[boxes[group]]
    of = row[call[boxes[group]]]
    if running.any:
        which, start, end = _cut(session, running, box, start, end)
        box, of = box[which], of[which]
    return OwnTime(
        call=of,
        box=box,
        start_ns=start,
        end_ns=end,
        sort=sort[of],
        python_ns=python[of],
        wait_ns=hidden[of],
    )


def _call_of_box(running: Running) -> Ints:
    """For each place the place of the call whose own time shows in it: of a call itself, of an
    annotation the call directly around it; -1 for all else."""
    places = running.places
    clear = among(places, (Kind.RANGE, Kind.STEP))
    call = places["kind"] == Kind.CALL
    around = looking_through(running.parent, clear)
    boxed = clear & (around >= 0) & call[around] if len(places) else clear
    return np.where(call, np.arange(len(places)), np.where(boxed, around, -1))


def _cut(
    session: Session, running: Running, box: Ints, start: Ints, end: Ints
) -> tuple[Ints, Ints, Ints]:
    """(index, start, end): the stretches cut wherever somebody on their lane fell asleep or woke.

    A step may take no time, but what is drawn in the suspensions around it must not cross them.
    """
    spans, asleep = session.spans, running.asleep
    lane, edge_lane = spans["lane"][box], spans["lane"][asleep]
    by_lane = np.argsort(lane, kind="stable")
    lane = lane[by_lane]
    some: list[Ints] = []
    inside: list[Ints] = []
    for one in np.unique(edge_lane).tolist():
        rows = by_lane[slice(*np.searchsorted(lane, (one, one + 1)))]
        here = asleep[edge_lane == one]
        edge = np.unique((spans["start_ns"][here], spans["end_ns"][here]))
        first = np.searchsorted(edge, start[rows], side="right")
        count = np.maximum(np.searchsorted(edge, end[rows]) - first, 0)
        cut = np.flatnonzero(count)
        count = count[cut]
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        some.append(np.repeat(rows[cut], count))
        inside.append(edge[np.repeat(first[cut], count) + offset])
    if not any(map(len, some)):
        return np.arange(len(box)), start, end
    which = np.concatenate((np.arange(len(box)), *some))
    begin = np.concatenate((start, *inside))
    order = np.lexsort((begin, which))
    which, begin = which[order], begin[order]
    more = np.append(which[1:] == which[:-1], False)
    return which, begin, np.where(more, np.append(begin[1:], 0), end[which])


def _sorts(base: Basis, seen: Ints) -> tuple[Ints, Ints, Ints]:
    """By row of the spans: what own time was, its Python, and waiting that no wait span shows."""
    attribution, count = base.attribution, len(seen)
    calls, place, parts = attribution.calls, attribution.place, attribution.parts
    wait, python = parts.wait[place], parts.python[place]
    hidden = np.maximum(wait - parts.suspended[place] - seen[calls], 0)
    sort = np.where(hidden > 0, int(Own.OWN), int(Own.PURE_PYTHON))
    sort = np.where(python == UNKNOWN, int(Own.UNTRACKED), sort)
    sort = np.where(parts.native[place] != UNKNOWN, int(Own.NATIVE), sort)
    answers = []
    for column in (sort, python, hidden):
        whole = np.zeros(count, np.int64)
        whole[calls] = column
        answers.append(whole)
    return answers[0], answers[1], answers[2]
