"""What stands beside the sum: the work of a call's whole subtree on other lanes and on devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.belonging import SUB_KINDS, Belonging, among
from opscope.attribution.cover import Axis
from opscope.attribution.far import Far
from opscope.attribution.parts import UNKNOWN, Parts
from opscope.attribution.ranges import awake
from opscope.attribution.totals import distinct, totals
from opscope.model import Kind, Session

Ints = NDArray[np.int64]
Kinds = tuple[Kind, ...]

#: What runs on a lane of the host.
_HOSTED = tuple(kind for kind in SUB_KINDS if kind != Kind.DEVICE)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Columns in nanoseconds, one entry for each call; -1: not measured.

    `elsewhere` is busy time added up over other lanes (and the call's own lane after its end),
    `elsewhere_union` the time at least one of them was busy; `device` and `device_union` likewise.
    Paused time counts in none of them. `span` reaches from the start of the call to the end of the
    last thing it caused, `queue` from submission to start, pauses and all. `subs` counts what the
    call itself owns, without tasks.
    """

    sub_wait: Ints
    elsewhere: Ints
    elsewhere_union: Ints
    elsewhere_python: Ints
    device: Ints
    device_union: Ints
    queue: Ints
    span: Ints
    subs: Ints


def beside(session: Session, calls: Ints, parts: Parts, belonging: Belonging) -> Beside:
    """The columns for each of the rows `calls`."""
    spans = belonging.spans
    below = _Below(session, calls, belonging)
    device = np.flatnonzero(below.device)
    on_device = (Kind.DEVICE,)
    device_ns, device_union = below.length(device, on_device), below.union(device, on_device)
    seen = any("device" in sight.sees for sight in session.sight)
    if not seen and not (among(spans, on_device) & (belonging.up >= 0)).any():
        device_ns[:] = device_union[:] = UNKNOWN
    python, wait = _by_row(session, parts, parts.python), _by_row(session, parts, _waited(parts))
    sub, asleep = (
        _by_row(session, parts, which)[calls] for which in (parts.sub, parts.sub_suspended)
    )
    submitted = spans["submitted_ns"][calls]
    waited = np.maximum(spans["start_ns"][calls] - submitted, 0)
    away = np.flatnonzero(below.away)
    here = np.flatnonzero((below.kind == int(Kind.CALL)) & ~below.away)
    tasks = away[below.kind[away] == int(Kind.TASK)]
    idle = below.known_sum(wait, here)
    return Beside(
        sub_wait=np.minimum(np.where(asleep > 0, np.maximum(idle, 0) + asleep, idle), sub),
        elsewhere=below.lane_sum(away, _HOSTED),
        elsewhere_union=below.union(away, _HOSTED),
        elsewhere_python=below.known_sum(python, tasks, (Kind.TASK,)),
        device=device_ns,
        device_union=device_union,
        queue=np.where(submitted > 0, waited, UNKNOWN),
        span=below.span,
        subs=below.direct(),
    )


class _Below:
    """Pairs of a span and each call above it: `row` the span, `call` the call's place in `calls`.

    `away` marks those that ran elsewhere: on another lane, or on the call's own lane after the call
    had left it (an engine's worker goes on to what the call pushed). `some` below are pairs. What a
    deep tree has no pairs of is far from the call and away: that of the `kinds` is added.
    """

    def __init__(self, session: Session, calls: Ints, belonging: Belonging) -> None:
        spans = self.spans = belonging.spans
        self.up = belonging.up
        self.number = np.full(len(spans), -1, np.int64)
        self.number[calls] = np.arange(len(calls))
        self.row, above = belonging.below, belonging.above
        self.call = self.number[above]
        self.kind = spans["kind"][self.row]
        self.device = self.kind == int(Kind.DEVICE)
        start, end, lane = spans["start_ns"], spans["end_ns"], spans["lane"]
        other_lane = lane[self.row] != lane[above]
        self.away = ~self.device & (other_lane | (start[self.row] >= end[above]))
        last = end[calls].astype(np.int64)
        over = np.flatnonzero(end[self.row] > end[above])
        np.maximum.at(last, self.call[over], end[self.row[over]])
        self.start, self.end, moved = awake(session, spans)
        self.far, until, deep = None, last, belonging.deep
        if deep is not None:
            walked = deep.walk.calls
            self.of_far = self.number[walked]
            first, near = (moved(lane[walked], moment) for moment in (deep.first, deep.until))
            self.far = Far(deep, self.start, self.end, first, near)
            until = last.copy()
            last[self.of_far], until[self.of_far] = deep.last, deep.until
        self.span = np.maximum(last - start[calls], 0)
        #: Each call from its start to the end of the last thing it caused that there are pairs of,
        #: in recorded time.
        self.reach = Axis(self.start[calls], moved(lane[calls], until))

    def _times(self, some: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        row = self.row[some]
        return self.start[row], self.end[row]

    def length(self, some: Ints, kinds: Kinds) -> Ints:
        """For each call the durations of the spans added up."""
        start, end = self._times(some)
        sums = totals(self.call[some], np.maximum(end - start, 0), len(self.reach))
        if self.far is not None:
            length = np.maximum(self.end - self.start, 0)
            sums[self.of_far] += self.far.total(length, among(self.spans, kinds))
        return sums

    def union(self, some: Ints, kinds: Kinds) -> Ints:
        """For each call the time in which at least one of the spans ran."""
        covered = self.reach.covered(self.call[some], *self._times(some))
        if self.far is not None:
            one = np.zeros(len(self.spans), np.int8)
            covered[self.of_far] += self.far.union(among(self.spans, kinds), one)
        return covered

    def lane_sum(self, some: Ints, kinds: Kinds) -> Ints:
        """For each call the union on each lane, added up over the lanes."""
        lane = self.spans["lane"]
        rooms, room = distinct(self.call[some], lane[self.row[some]])
        call = rooms[:, 0]
        first = self.reach.start_ns[call]
        axis = Axis(first, first + self.reach.length_ns[call])
        sums = totals(call, axis.covered(room, *self._times(some)), len(self.reach))
        if self.far is not None:
            sums[self.of_far] += self.far.union(among(self.spans, kinds), lane)
        return sums

    def known_sum(self, value: Ints, some: Ints, kinds: Kinds = ()) -> Ints:
        """For each call the sum of `value`, a column over all spans, without unknown ones.

        -1 where there were values and all were unknown.
        """
        count = len(self.reach)
        values, call = value[self.row[some]], self.call[some]
        known = values >= 0
        total = totals(call[known], values[known], count)
        at_all = np.bincount(call, minlength=count)
        measured = np.bincount(call[known], minlength=count)
        if self.far is not None and kinds:
            mine, one = among(self.spans, kinds), np.ones(len(value), np.int64)
            known = mine & (value >= 0)
            total[self.of_far] += self.far.total(value, known)
            at_all[self.of_far] += self.far.total(one, mine)
            measured[self.of_far] += self.far.total(one, known)
        return np.where((at_all > 0) & (measured == 0), UNKNOWN, total)

    def direct(self) -> Ints:
        """How many operators, calls and device spans each call itself owns."""
        counted = among(self.spans, (Kind.OP, Kind.CALL, Kind.DEVICE)) & (self.up >= 0)
        owner = self.number[self.up[np.flatnonzero(counted)]]
        return np.bincount(owner, minlength=len(self.reach)).astype(np.int64)


def _waited(parts: Parts) -> Ints:
    """What calls and tasks waited while they were not suspended."""
    return np.where(parts.wait == UNKNOWN, UNKNOWN, parts.wait - parts.suspended)


def _by_row(session: Session, parts: Parts, values: Ints) -> Ints:
    """A column of the parts as a column over all spans; -1 for what has no parts."""
    column = np.full(len(session.spans), UNKNOWN, np.int64)
    column[parts.rows] = values
    return column
