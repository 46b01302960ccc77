"""Who covers whose time on a lane, spans that cross included."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


#: From so many steps up on, those around that have ended are left out at once.
_STEPS = 8


def pairs(spans: Table, around: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Pairs (row, row of a span around it) of all spans whose direct content each of `rows` is.

    That is the one around it; and where it ends after that one, the next one up as well, and so on.
    Of those further up some that had ended when it began may be missing: they share no time.
    """
    start, end = spans["start_ns"], spans["end_ns"]
    below: list[Ints] = [np.empty(0, np.int64)]
    above: list[Ints] = [np.empty(0, np.int64)]
    inner, outer = rows, around[rows]
    later: Ints | None = None
    while True:
        keep = outer >= 0
        inner, outer = inner[keep], outer[keep]
        if not len(inner):
            return np.concatenate(below), np.concatenate(above)
        below.append(inner)
        above.append(outer)
        over = end[inner] > end[outer]
        inner, outer = inner[over], around[outer[over]]
        if len(below) > _STEPS:
            # Coroutines that each start the next one lie in each other, and most of them are over.
            later = ending_later(end, around) if later is None else later
            ended = np.flatnonzero((outer >= 0) & (end[outer] <= start[inner]))
            while len(ended):
                outer[ended] = later[outer[ended]]
                ended = ended[(outer[ended] >= 0) & (end[outer[ended]] <= start[inner[ended]])]


def ending_later(end: NDArray[Any], around: Ints) -> Ints:
    """For each span the nearest one around it that ends after it does; -1: none."""
    later: Ints = around.copy()
    left = np.flatnonzero(later >= 0)
    while len(left):
        left = left[end[later[left]] <= end[left]]
        later[left] = later[later[left]]
        left = left[later[left] >= 0]
    return later


def holes(
    origin: Ints, length: Ints, group: Ints, start: Ints, end: Ints
) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
    """(group, start, end) of what the intervals leave free of each group.

    All on one axis where the groups lie end to end, as `attribution.cover.Axis` places them.
    """
    finish = origin + length
    groups = np.concatenate((group, np.arange(len(origin))))
    starts = np.concatenate((start, finish))
    ends = np.concatenate((end, finish))
    order = np.lexsort((groups, starts))
    groups, starts, ends = groups[order], starts[order], ends[order]
    reach = np.concatenate((np.zeros(1, np.int64), np.maximum.accumulate(ends)[:-1]))
    free = starts > reach
    return groups[free], reach[free], starts[free]
