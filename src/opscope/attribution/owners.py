"""From owner ids to rows, and from a span to every call above it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.model import Kind

Ints = NDArray[np.int64]


def owner_rows(spans: Table) -> Ints:
    """The row of each span's owner, -1 where it has none or the owner is not in the session.

    Only calls own. A chain of owners that runs in a circle (a hand-made file) is cut: the spans on
    it count as having no owner, so that whoever climbs the chain always arrives.
    """
    n = len(spans)
    found = np.full(n, -1, np.int64)
    calls = np.flatnonzero(spans["kind"] == int(Kind.CALL))
    if not len(calls):
        return found
    ids = spans["id"][calls]
    order = np.argsort(ids, kind="stable")
    ids, calls = ids[order], calls[order]
    owned = np.flatnonzero(spans["owner"])
    owner = spans["owner"][owned]
    place = np.minimum(np.searchsorted(ids, owner), len(ids) - 1)
    found[owned] = np.where(ids[place] == owner, calls[place], -1)
    return _without_circles(found, calls)


def _without_circles(up: Ints, calls: Ints) -> Ints:
    """Cut every chain that never ends: climb in steps of 1, 2, 4 ... until all have arrived."""
    place = np.full(len(up), -1, np.int64)
    place[calls] = np.arange(len(calls))
    # Who never arrives has an owner that never does, so it is enough to follow the calls.
    climb = np.where(up[calls] >= 0, place[up[calls]], -1)
    for _ in range(len(calls).bit_length() + 1):
        if not (climb >= 0).any():
            return up
        climb = np.where(climb >= 0, climb[climb], -1)
    lost = np.zeros(len(up), bool)
    lost[calls] = climb >= 0
    return np.where((up >= 0) & lost[up], np.int64(-1), up)


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
