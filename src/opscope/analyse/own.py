"""When was a call doing nothing but its own work? The holes on its lane that nothing covers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import Basis, basis
from opscope.analyse.inside import holes, pairs
from opscope.attribution import UNKNOWN, among, looking_through
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
    spans, parent = session.spans, base.attribution.nesting.parent
    call = _call_of_box(base)
    boxes = np.flatnonzero(call >= 0)
    number = np.full(len(spans), -1, np.int64)
    number[boxes] = np.arange(len(boxes))
    edge = spans["end_ns"][call[boxes]]  # an annotation may reach beyond its call
    axis = Axis(spans["start_ns"][boxes], np.minimum(spans["end_ns"][boxes], edge))
    below, above = pairs(spans, parent, np.arange(len(spans)))
    inside = number[above] >= 0
    below, above = below[inside], above[inside]
    placed = axis.place(number[above], spans["start_ns"][below], spans["end_ns"][below])
    asleep = axis.place(*pauses(session, boxes))
    group, start, end = (np.concatenate(pair) for pair in zip(placed, asleep, strict=True))
    group, start, end = holes(axis.origin, axis.length_ns, group, start, end)
    shift = axis.start_ns[group] - axis.origin[group]

    waiting = (spans["kind"] == Kind.WAIT)[below]
    known = axis.covered(
        number[above[waiting]],
        spans["start_ns"][below[waiting]],
        spans["end_ns"][below[waiting]],
    )
    seen = totals(call[boxes], known, len(spans))
    sort, python, hidden = _sorts(base, seen)
    of = call[boxes[group]]
    return OwnTime(
        call=of,
        box=boxes[group],
        start_ns=start + shift,
        end_ns=end + shift,
        sort=sort[of],
        python_ns=python[of],
        wait_ns=hidden[of],
    )


def _call_of_box(base: Basis) -> Ints:
    """For each span, by row, the call whose own time shows in it: of a call itself, of an
    annotation the call directly around it; -1 for all else."""
    spans = base.session.spans
    clear = among(spans, (Kind.RANGE, Kind.STEP))
    call = spans["kind"] == Kind.CALL
    around = looking_through(base.attribution.nesting.parent, clear)
    boxed = clear & (around >= 0) & call[around] if len(spans) else clear
    return np.where(call, np.arange(len(spans)), np.where(boxed, around, -1))


def _sorts(base: Basis, seen: Ints) -> tuple[Ints, Ints, Ints]:
    """By row of the spans: what own time was, its Python, and waiting that no wait span shows."""
    attribution, count = base.attribution, len(seen)
    calls, place, parts = attribution.calls, attribution.place, attribution.parts
    wait, python = parts.wait[place], parts.python[place]
    hidden = np.maximum(wait - seen[calls], 0)
    sort = np.where(hidden > 0, int(Own.OWN), int(Own.PURE_PYTHON))
    sort = np.where(python == UNKNOWN, int(Own.UNTRACKED), sort)
    sort = np.where(parts.native[place] != UNKNOWN, int(Own.NATIVE), sort)
    answers = []
    for column in (sort, python, hidden):
        whole = np.zeros(count, np.int64)
        whole[calls] = column
        answers.append(whole)
    return answers[0], answers[1], answers[2]
