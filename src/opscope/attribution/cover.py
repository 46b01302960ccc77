"""How much of many calls is covered by many intervals: one sweep over an axis, exact integers.

All groups (calls) are laid end to end on one axis, each with room for its own duration, so that one
sort and one running maximum answer for all of them at once. No Python loop over spans.
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
        length = self.length_ns[group]
        begin = np.clip(start_ns - self.start_ns[group], 0, length)
        finish = np.clip(end_ns - self.start_ns[group], 0, length)
        inside = finish > begin
        origin = self.origin[group][inside]
        return (
            group[inside].astype(np.int64),
            origin + begin[inside],
            origin + finish[inside],
        )

    def covered(self, group: Ints, start: Ints, end: Ints) -> Ints:
        """Length of the union of the placed intervals, for each group."""
        total = np.zeros(len(self), np.int64)
        if not len(group):
            return total
        order = np.argsort(start, kind="stable")
        group, start, end = group[order], start[order], end[order]
        reach = np.maximum.accumulate(end)
        before = np.concatenate(([np.int64(-1)], reach[:-1]))
        fresh = np.maximum(end - np.maximum(start, before), 0)
        # Groups follow each other on the axis, so equal groups are neighbours here.
        first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
        total[group[first]] = np.add.reduceat(fresh, first)
        return total


def layers(axis: Axis, *kinds: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]) -> list[Ints]:
    """What each layer (group, start, end) covers of each group that no earlier layer does.

    The answers and what is left of the group add up to its length, by construction.
    """
    so_far: list[Ints] = [np.empty(0, np.int64) for _ in range(3)]
    answers: list[Ints] = []
    known: Ints = np.zeros(len(axis), np.int64)
    for kind in kinds:
        placed = axis.place(*kind)
        so_far = [np.concatenate(pair) for pair in zip(so_far, placed, strict=True)]
        union = axis.covered(*so_far)
        answers.append(union - known)
        known = union
    return answers
