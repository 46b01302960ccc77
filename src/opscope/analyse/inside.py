"""Who covers whose time on a lane, spans that cross included."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.model import Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def pairs(spans: Rows, around: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Pairs (row, row of a span around it) of all spans whose direct content each of `rows` is.

    That is the one around it; and where it ends after that one, the next one up as well, and so on.
    """
    end = spans["end_ns"]
    below: list[Ints] = [np.empty(0, np.int64)]
    above: list[Ints] = [np.empty(0, np.int64)]
    inner, outer = rows, around[rows]
    while True:
        keep = outer >= 0
        inner, outer = inner[keep], outer[keep]
        if not len(inner):
            return np.concatenate(below), np.concatenate(above)
        below.append(inner)
        above.append(outer)
        over = end[inner] > end[outer]
        inner, outer = inner[over], around[outer[over]]


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
