"""Sums by group, and groups by several columns: exact and quick."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Below this the floats that `np.bincount` adds in are exact.
_EXACT = 2.0**53


def totals(group: NDArray[Any], values: NDArray[Any], count: int) -> Ints:
    """The sum of the values in each of `count` groups; `group` names the group of each value."""
    if np.abs(values).sum(dtype=np.float64) < _EXACT:
        sums: Ints = np.bincount(group, values, count).astype(np.int64)
        return sums
    total = np.zeros(count, np.int64)
    np.add.at(total, group, values)
    return total


def distinct(*columns: NDArray[Any]) -> tuple[Ints, Ints]:
    """(the distinct rows that the columns make, sorted; for each entry which of them it is)."""
    wide = [column.astype(np.int64) for column in columns]
    n = len(wide[0])
    if not n:
        return np.empty((0, len(wide)), np.int64), np.empty(0, np.int64)
    low = [int(column.min()) for column in wide]
    size = [int(column.max()) - least + 1 for column, least in zip(wide, low, strict=True)]
    room = prod(size)
    if room >= 2**62:
        rows, which = np.unique(np.stack(wide, 1), axis=0, return_inverse=True)
        return rows, which.reshape(-1)
    # One number for a row: numpy is slow at sorting whole rows.
    key: Ints = np.zeros(n, np.int64)
    for column, least, many in zip(wide, low, size, strict=True):
        key = key * many + (column - least)
    if room <= 4 * n:
        seen = np.bincount(key, minlength=room) > 0
        found, which = np.flatnonzero(seen), (np.cumsum(seen) - 1)[key]
    else:
        found, which = np.unique(key, return_inverse=True)
    parts = []
    for least, many in zip(reversed(low), reversed(size), strict=True):
        parts.append(found % many + least)
        found = found // many
    return np.stack(parts[::-1], 1), which.reshape(-1)
