"""Flow events of a Chrome trace as links between the slices at their ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import nest
from opscope.importers.quality import Quality
from opscope.model import LINK, SPAN, Kind, LinkKind, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_SLICE = "ends of arrows outside of any slice (left out)"
NO_TAIL = "ends of arrows that begin nowhere (left out)"


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Ends of arrows. `flow` is the same for those that belong together; a flow begins, goes on any
    number of times and is finished. `following`: if in no slice, the next one is meant."""

    flow: Ints
    lane: Ints
    time: Ints
    begins: Bools
    finishes: Bools
    following: Bools


def links(ends: Ends, rows: Rows, quality: Quality) -> Rows:
    """From the slice around each end to the slice around the next one of its flow."""
    if not len(ends.flow):
        return np.empty(0, LINK)
    order = np.lexsort((~ends.begins, ends.time, ends.flow))
    flow, begins, finishes = ends.flow[order], ends.begins[order], ends.finishes[order]
    place = np.arange(len(order))
    tail = np.maximum.accumulate(np.where(finishes, -1, place))
    tail = np.append(-1, tail[:-1])
    known = (tail >= 0) & (flow[tail] == flow) & ~begins
    quality.count(NO_TAIL, int((~known & ~begins).sum()))
    slice_ = _slices(ends, rows)[order]
    quality.count(NO_SLICE, int((slice_ < 0).sum()))
    head = np.flatnonzero(known)
    source, target = slice_[tail[head]], slice_[head]
    whole = (source >= 0) & (target >= 0) & (source != target)
    made = np.zeros(int(whole.sum()), LINK)
    made["kind"] = LinkKind.SPAWN
    made["source"], made["target"] = rows["id"][source[whole]], rows["id"][target[whole]]
    return np.unique(made)


def _slices(ends: Ends, rows: Rows) -> Ints:
    """The row of the innermost slice around each end, -1 for none."""
    points = np.zeros(len(ends.flow), SPAN)
    points["lane"] = ends.lane
    points["start_ns"] = points["end_ns"] = ends.time
    points["kind"] = Kind.STEP  # behind the slices that begin with it
    points["id"] = np.iinfo(np.int64).max
    table = np.concatenate((rows, points))
    parent = nest(table).parent
    found = parent[len(rows) :]
    # Two ends may stand at one moment: one lies in the other.
    while (inside := found >= len(rows)).any():
        found = np.where(inside, parent[found], found)
    return np.where((found < 0) & ends.following, _next(ends, rows), found)


def _next(ends: Ends, rows: Rows) -> Ints:
    """The row that begins next on the lane of each end."""
    if not len(rows):
        return np.full(len(ends.flow), -1, np.int64)
    lane = np.concatenate((rows["lane"].astype(np.int64), ends.lane))
    time = np.concatenate((rows["start_ns"], ends.time))
    is_end = np.arange(len(lane)) >= len(rows)
    order = np.lexsort((~is_end, time, lane))
    place = np.where(is_end[order], len(lane), np.arange(len(lane)))
    after = np.minimum.accumulate(place[::-1])[::-1]
    after = np.append(order, -1)[np.minimum(after, len(lane))]
    found = np.full(len(lane), -1, np.int64)
    found[order] = after
    mine = found[len(rows) :]
    return np.where((mine >= 0) & (lane[mine] == ends.lane), mine, -1)
