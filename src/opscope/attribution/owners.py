"""From owner ids to rows, and from a span to every call above it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.model import Kind, Rows

Ints = NDArray[np.int64]


def owner_rows(spans: Rows) -> Ints:
    """The row of each span's owner, -1 where it has none or the owner is not in the session.

    Only calls own. A chain of owners that runs in a circle (a hand-made file) is cut: the spans on
    it count as having no owner, so that whoever climbs the chain always arrives.
    """
    n = len(spans)
    found = np.full(n, -1, np.int64)
    calls = np.flatnonzero(spans["kind"] == Kind.CALL)
    if not len(calls):
        return found
    ids = spans["id"][calls]
    order = np.argsort(ids, kind="stable")
    ids, calls = ids[order], calls[order]
    place = np.minimum(np.searchsorted(ids, spans["owner"]), len(ids) - 1)
    known = (ids[place] == spans["owner"]) & (spans["owner"] != 0)
    found[known] = calls[place[known]]
    return _without_circles(found)


def _without_circles(up: Ints) -> Ints:
    """Cut every chain that never ends: climb in steps of 1, 2, 4 ... until all have arrived."""
    climb = up
    for _ in range(len(up).bit_length() + 1):
        if not (climb >= 0).any():
            return up
        climb = np.where(climb >= 0, climb[climb], -1)
    return np.where(climb >= 0, np.int64(-1), up)


def ancestors(up: Ints, rows: NDArray[Any]) -> tuple[Ints, Ints]:
    """Pairs (row, row of a call above it) for each of `rows` and every call above."""
    below: list[Ints] = [np.empty(0, np.int64)]
    above: list[Ints] = [np.empty(0, np.int64)]
    row = rows.astype(np.int64)
    call = up[row]
    while True:
        keep = call >= 0
        row, call = row[keep], call[keep]
        if not len(row):
            return np.concatenate(below), np.concatenate(above)
        below.append(row)
        above.append(call)
        call = up[call]
