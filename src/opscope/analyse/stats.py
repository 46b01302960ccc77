"""Mean, percentiles and largest of many groups at once, in whole nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.totals import totals

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one group, in nanoseconds; all `None` where it has no values.

    The mean is rounded to the nearest; percentiles are nearest-rank: values that occurred.
    """

    mean_ns: int | None = None
    p50_ns: int | None = None
    p95_ns: int | None = None
    max_ns: int | None = None


def spread(group: Ints, values: Ints, count: int) -> list[Spread]:
    """The spread of the values of each of `count` groups."""
    order = np.lexsort((values, group))
    group, values = group[order], values[order]
    first = np.searchsorted(group, np.arange(count), side="left").tolist()
    last = np.searchsorted(group, np.arange(count), side="right").tolist()
    total = totals(group, values, count)
    answers = []
    for low, high, whole in zip(first, last, total.tolist(), strict=True):
        n = high - low
        if not n:
            answers.append(Spread())
            continue
        answers.append(
            Spread(
                mean_ns=(2 * whole + n) // (2 * n),
                p50_ns=int(values[low + _rank(50, n)]),
                p95_ns=int(values[low + _rank(95, n)]),
                max_ns=int(values[high - 1]),
            )
        )
    return answers


def _rank(percent: int, n: int) -> int:
    return max(-(-percent * n // 100) - 1, 0)
