"""How much of many calls is covered by many intervals: one sweep over an axis, exact integers.

All groups (calls) are laid end to end on one axis, each with room for its own duration, so that one
sort answers for all of them at once. No Python loop over spans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Axis:
    """Groups with a start and an end, laid end to end. `group` below is an index into them."""

    def __init__(self, start_ns: NDArray[Any], end_ns: NDArray[Any]) -> None:
        self.start_ns: Ints = start_ns.astype(np.int64)
        self.length_ns: Ints = np.maximum(end_ns.astype(np.int64) - self.start_ns, 0)
        self.origin: Ints = np.cumsum(self.length_ns) - self.length_ns

    def __len__(self) -> int:
        return len(self.start_ns)

    def place(
        self, group: NDArray[Any], start_ns: NDArray[Any], end_ns: NDArray[Any]
    ) -> tuple[Ints, Ints, Ints]:
        """Clip each interval to its group and move it onto the axis; what lies outside is left out.

        Returns (group, start, end), in axis units.
        """
        zero, length = self.start_ns[group], self.length_ns[group]
        begin = np.clip(start_ns - zero, 0, length)
        finish = np.clip(end_ns - zero, 0, length)
        inside = finish > begin
        if not inside.all():
            some = np.flatnonzero(inside)
            group, begin, finish = group[some], begin[some], finish[some]
        origin = self.origin[group]
        return group.astype(np.int64), origin + begin, origin + finish

    def covered(self, group: NDArray[Any], start_ns: NDArray[Any], end_ns: NDArray[Any]) -> Ints:
        """Length of the union of the intervals within each group, in nanoseconds."""
        _, start, end = self.place(group, start_ns, end_ns)
        return self.lengths(*united(start, end))

    def lengths(self, start: Ints, end: Ints) -> Ints:
        """What each group has of stretches on the axis, as `united` returns them."""
        total = np.zeros(len(self), np.int64)
        if len(start):
            # Of groups at one place all but the last are of no length.
            group = np.searchsorted(self.origin, start, side="right") - 1
            first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
            total[group[first]] = np.add.reduceat(end - start, first)
        return total


def united(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The union of intervals as (start, end) of stretches that share no time, in order.

    What only touches stays apart, so no stretch on an axis is in two groups.
    """
    start, end = np.sort(start), np.sort(end)
    # Nothing is open where as many have ended as have begun.
    apart = start[1:] >= end[:-1]
    return start[np.append(True, apart)[: len(start)]], end[np.append(apart, True)[: len(end)]]


def layers(axis: Axis, *kinds: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]) -> list[Ints]:
    """What each layer (group, start, end) covers of each group that no earlier layer does.

    The answers and what is left of the group add up to its length, by construction.
    """
    start: Ints = np.empty(0, np.int64)
    end: Ints = start
    answers: list[Ints] = []
    known: Ints = np.zeros(len(axis), np.int64)
    for kind in kinds:
        _, begin, finish = axis.place(*kind)
        if len(begin):
            start, end = united(np.append(start, begin), np.append(end, finish))
        union = axis.lengths(start, end)
        answers.append(union - known)
        known = union
    return answers
