"""From owner ids to rows, and from a span to every call above it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.deep import Deep
from opscope.model import Kind

Ints = NDArray[np.int64]

#: Trees in which something has more calls above it are not taken by pairs.
DEEPEST = 64
#: So many calls may be above anything before that is asked.
_USUAL = 8


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
    below, above, _ = _climbed(up, rows, len(up))
    return below, above


def lineage(spans: Table, up: Ints, rows: NDArray[Any]) -> tuple[Ints, Ints, Deep | None]:
    """The pairs of `ancestors`. In trees of calls with more than `DEEPEST` above something only
    those that are near in time, and what else can be known of these trees."""
    below, above, left = _climbed(up, rows, min(_USUAL, DEEPEST))
    if not len(left):
        return below, above, None
    # Before the pairs are many: is anything deeper?
    left = np.unique(left)
    for _ in range(DEEPEST - _USUAL):
        left = np.unique(up[left])
        left = left[left >= 0]
    if not len(left):
        return *ancestors(up, rows), None
    calls = np.flatnonzero(spans["kind"] == int(Kind.CALL))
    top = _tops(up, calls)
    deep = np.zeros(len(up), bool)
    deep[top[left]] = True
    mine = deep[top[calls]]
    owned = rows[up[rows] >= 0]
    under = deep[top[up[owned]]]
    found = Deep(spans, up, calls[mine], owned[under])
    below, above = ancestors(up, owned[~under])
    row, number = found.near
    above = np.concatenate((above, found.walk.calls[number]))
    return np.concatenate((below, row)), above, found


def _climbed(up: Ints, rows: NDArray[Any], most: int) -> tuple[Ints, Ints, Ints]:
    """Pairs as from `ancestors` with up to `most` calls above each, and the calls above those."""
    below: list[Ints] = [np.empty(0, np.int64)]
    above: list[Ints] = [np.empty(0, np.int64)]
    row = rows.astype(np.int64)
    call = up[row]
    while True:
        keep = call >= 0
        row, call = row[keep], call[keep]
        if not len(row) or len(below) > most:
            return np.concatenate(below), np.concatenate(above), call
        below.append(row)
        above.append(call)
        call = up[call]


def _tops(up: Ints, calls: Ints) -> Ints:
    """For each of `calls` the outermost call above it, or itself; a column over all spans."""
    top = np.arange(len(up))
    top[calls] = np.where(up[calls] >= 0, up[calls], calls)
    while not np.array_equal(further := top[top[calls]], top[calls]):
        top[calls] = further
    return top
