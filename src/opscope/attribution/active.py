"""The stretches of a lane in which calls and tasks were running, suspensions left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.model import Flag, Kind

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """One entry for each stretch, those of one row together and in order. `opener` is the id of
    what it began with: the call or task itself, or the suspension before it."""

    row: Ints
    start_ns: Ints
    end_ns: Ints
    opener: Ints


def suspensions(rows: Table) -> tuple[Ints, Ints]:
    """(row, row of the call or task that was suspended) of each suspended wait at its home."""
    none = np.empty(0, np.int64)
    kind = rows["kind"]
    asleep = np.flatnonzero((kind == int(Kind.WAIT)) & (rows["flags"] & int(Flag.SUSPENDED) != 0))
    holders = np.flatnonzero((kind == int(Kind.CALL)) | (kind == int(Kind.TASK)))
    if not len(asleep) or not len(holders):
        return none, none
    ids, owner = rows["id"][holders], rows["owner"][asleep]
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], owner), len(ids) - 1)
    whose = holders[order[place]].astype(np.int64)
    known = (rows["id"][whose] == owner) & (rows["lane"][whose] == rows["lane"][asleep])
    return asleep[known].astype(np.int64), whose[known]


def active(rows: Table, holders: Ints, asleep: Ints, whose: Ints) -> Stretches:
    """Each stretch in which one of `holders`, calls and tasks by row in order, ran.

    `asleep` and `whose` are from `suspensions`, and `holders` has all of `whose`. A generator or
    coroutine has a suspended wait for each stretch in which it did not run, and what runs then is
    not inside it, though it lies within its time.
    """
    start = rows["start_ns"][holders].astype(np.int64)
    end = np.maximum(rows["end_ns"][holders], start)
    begun = rows["id"][holders]
    if not len(asleep):
        return Stretches(holders, start, end, begun)
    place = np.searchsorted(holders, whose)
    # Each call's beginning and the end of each of its waits open a stretch; its next wait, or its
    # own end, closes it.
    opens = np.concatenate((start, rows["end_ns"][asleep]))
    closes = np.concatenate((rows["start_ns"][asleep], end))
    opener = np.concatenate((begun, rows["id"][asleep]))
    whose_open = np.concatenate((np.arange(len(holders)), place))
    whose_close = np.concatenate((place, np.arange(len(holders))))
    first, last = np.lexsort((opens, whose_open)), np.lexsort((closes, whose_close))
    holder, begin, finish = whose_open[first], opens[first], closes[last]
    # The first stretch stays even if empty: it is where the call or task began.
    ran = (finish > begin) | np.append(True, holder[1:] != holder[:-1])
    return Stretches(
        holders[holder[ran]],
        begin[ran],
        np.maximum(finish[ran], begin[ran]),
        opener[first][ran],
    )
