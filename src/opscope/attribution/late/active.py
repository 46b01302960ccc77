"""The stretches of a lane in which each call or task was running, suspensions left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.model import Flag, Kind, Rows

Ints = NDArray[np.int64]


def active(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """(row, start_ns, end_ns) of each stretch in which a call or task of `rows` ran.

    A generator or coroutine has a suspended wait for each stretch in which it did not, and what
    runs then is not inside it, though it lies within its time.
    """
    kind = rows["kind"]
    holders = np.flatnonzero((kind == Kind.CALL) | (kind == Kind.TASK)).astype(np.int64)
    start = rows["start_ns"][holders].astype(np.int64)
    end = np.maximum(rows["end_ns"][holders], start)
    asleep = np.flatnonzero((kind == Kind.WAIT) & (rows["flags"] & Flag.SUSPENDED != 0))
    asleep = asleep[np.isin(rows["owner"][asleep], rows["id"][holders])]
    if not len(asleep):
        return holders, start, end
    order = np.argsort(rows["id"][holders], kind="stable")
    place = order[np.searchsorted(rows["id"][holders][order], rows["owner"][asleep])]
    # Each call's beginning and the end of each of its waits open a stretch; its next wait, or its
    # own end, closes it.
    opens = np.concatenate((start, rows["end_ns"][asleep]))
    closes = np.concatenate((rows["start_ns"][asleep], end))
    whose_open = np.concatenate((np.arange(len(holders)), place))
    whose_close = np.concatenate((place, np.arange(len(holders))))
    first, last = np.lexsort((opens, whose_open)), np.lexsort((closes, whose_close))
    whose, begin, finish = whose_open[first], opens[first], closes[last]
    # The first stretch stays even if empty: it is where the call or task began.
    ran = (finish > begin) | np.append(True, whose[1:] != whose[:-1])
    return holders[whose[ran]], begin[ran], np.maximum(finish[ran], begin[ran])
