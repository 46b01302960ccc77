"""A recorded bracket and the framework's event around it as one call with its wrapper's time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late.events import Events
from opscope.model import SPAN, Flag, Kind, Rows, no_rows

Ints = NDArray[np.int64]


def widen(
    events: Events,
    recorded: Rows,
    calls: Ints,
    outer: Ints,
    new_ids: Callable[[int], Ints],
    dispatch: int,
) -> Rows:
    """Let each of the rows `calls` reach over its event `outer` (-1: none), in place.

    Returns rows of the wrapper's time, before and after the bracket. How much CPU time that took
    was not measured; it is taken to have been busy, and flagged as estimated.
    """
    have = np.flatnonzero(outer >= 0)
    if not len(have):
        return no_rows(SPAN)
    rows, event = calls[have], outer[have]
    start, end = recorded["start_ns"][rows], recorded["end_ns"][rows]
    begin = np.minimum(events.start_ns[event], start)
    # A call that was still on when its event was cut off ends where it was seen last.
    cut = recorded["flags"][rows] & Flag.INCOMPLETE != 0
    finish = np.where(cut, end, np.maximum(events.end_ns[event], end))
    recorded["start_ns"][rows], recorded["end_ns"][rows] = begin, finish
    known = recorded["cpu_ns"][rows] >= 0
    recorded["cpu_ns"][rows] += np.where(known, start - begin + finish - end, 0)
    low, high = np.concatenate((begin, end)), np.concatenate((start, finish))
    rows = np.concatenate((rows, rows))[high > low]
    low, high = low[high > low], high[high > low]
    parts: Rows = recorded[rows]
    parts["id"] = new_ids(len(rows))
    parts["owner"] = recorded["id"][rows]
    parts["name"] = dispatch
    parts["kind"] = Kind.DISPATCH
    parts["flags"] = Flag.ESTIMATED
    parts["submitted_ns"] = 0
    parts["submitted_lane"] = parts["lane"]
    parts["start_ns"], parts["end_ns"] = low, high
    parts["cpu_ns"] = high - low
    return parts
