"""What stands beside the sum: the work of a call's whole subtree on other lanes and on devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.belonging import among
from opscope.attribution.cover import Axis
from opscope.attribution.owners import ancestors
from opscope.attribution.parts import UNKNOWN, Parts
from opscope.model import Kind, Session

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Columns in nanoseconds, one entry for each call; -1: not measured.

    `elsewhere` is busy time added up over other lanes (and the call's own lane after its end),
    `elsewhere_union` the time at least one of them was busy; `device` and `device_union` likewise.
    `span` reaches from the start of the call to the end of the last thing it caused. `subs` counts
    what the call itself owns, without tasks.
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


def beside(session: Session, calls: Ints, parts: Parts, up: Ints) -> Beside:
    """The columns for each of the rows `calls`; `up` as from `owner_rows`."""
    spans = session.spans
    below = _Below(session, calls, up)
    length = np.maximum(spans["end_ns"] - spans["start_ns"], 0)
    device_ns = below.summed(length, below.device)
    device_union = below.union(below.device)
    if not any("device" in sight.sees for sight in session.sight) and not below.device.any():
        device_ns[:] = device_union[:] = UNKNOWN
    python, wait, sub = (_by_row(session, parts, which) for which in ("python", "wait", "sub"))
    submitted = spans["submitted_ns"][calls]
    waited = np.maximum(spans["start_ns"][calls] - submitted, 0)
    here = (below.kind == Kind.CALL) & ~below.away
    return Beside(
        sub_wait=np.minimum(below.known_sum(wait, here), sub[calls]),
        elsewhere=below.lane_sum(below.away),
        elsewhere_union=below.union(below.away),
        elsewhere_python=below.known_sum(python, (below.kind == Kind.TASK) & below.away),
        device=device_ns,
        device_union=device_union,
        queue=np.where(submitted > 0, waited, UNKNOWN),
        span=below.reach.length_ns,
        subs=below.direct(up),
    )


class _Below:
    """Pairs of a span and each call above it: `row` the span, `call` the call's place in `calls`.

    `away` marks those that ran elsewhere: on another lane, or on the call's own lane after the call
    had left it (an engine's worker goes on to what the call pushed).
    """

    def __init__(self, session: Session, calls: Ints, up: Ints) -> None:
        spans = self.spans = session.spans
        self.number = np.full(len(spans), -1, np.int64)
        self.number[calls] = np.arange(len(calls))
        self.caused = np.flatnonzero(
            among(spans, (Kind.OP, Kind.CALL, Kind.TASK, Kind.DEVICE))
        ).astype(np.int64)
        self.row, above = ancestors(up, self.caused)
        self.call = self.number[above]
        self.kind = spans["kind"][self.row]
        self.device = self.kind == Kind.DEVICE
        start, end, lane = spans["start_ns"], spans["end_ns"], spans["lane"]
        other_lane = lane[self.row] != lane[above]
        self.away = ~self.device & (other_lane | (start[self.row] >= end[above]))
        last = end[calls].astype(np.int64)
        np.maximum.at(last, self.call, end[self.row])
        #: Each call from its start to the end of the last thing it caused.
        self.reach = Axis(start[calls], last)

    def union(self, which: Bools) -> Ints:
        """For each call the time in which at least one of the spans ran."""
        row = self.row[which]
        start, end = self.spans["start_ns"][row], self.spans["end_ns"][row]
        return self.reach.covered(*self.reach.place(self.call[which], start, end))

    def lane_sum(self, which: Bools) -> Ints:
        """For each call the union on each lane, added up over the lanes."""
        total = np.zeros(len(self.reach), np.int64)
        row = self.row[which]
        if len(row):
            lane = self.spans["lane"][row].astype(np.int64)
            rooms, room = np.unique(
                np.stack((self.call[which], lane), 1), axis=0, return_inverse=True
            )
            first = self.reach.start_ns[rooms[:, 0]]
            axis = Axis(first, first + self.reach.length_ns[rooms[:, 0]])
            start, end = self.spans["start_ns"][row], self.spans["end_ns"][row]
            busy = axis.covered(*axis.place(room.reshape(-1).astype(np.int64), start, end))
            np.add.at(total, rooms[:, 0], busy)
        return total

    def summed(self, value: Ints, which: Bools) -> Ints:
        """For each call the sum of `value`, a column over all spans."""
        total = np.zeros(len(self.reach), np.int64)
        np.add.at(total, self.call[which], value[self.row[which]])
        return total

    def known_sum(self, value: Ints, which: Bools) -> Ints:
        """The same without unknown values; -1 where there were values and all were unknown."""
        total = self.summed(np.maximum(value, 0), which)
        some = self.summed(np.ones(len(value), np.int64), which)
        known = self.summed((value >= 0).astype(np.int64), which)
        return np.where((some > 0) & (known == 0), UNKNOWN, total)

    def direct(self, up: Ints) -> Ints:
        """How many operators, calls and device spans each call itself owns."""
        owner = up[self.caused][self.spans["kind"][self.caused] != Kind.TASK]
        count = np.bincount(self.number[owner[owner >= 0]], minlength=len(self.reach))
        return count.astype(np.int64)


def _by_row(session: Session, parts: Parts, which: str) -> Ints:
    """A column of the parts as a column over all spans; -1 for what has no parts."""
    column = np.full(len(session.spans), UNKNOWN, np.int64)
    column[parts.rows] = getattr(parts, which)
    return column
