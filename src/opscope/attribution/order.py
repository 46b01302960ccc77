"""The order of the spans of each lane, outer ones first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.model import Kind

Ints = NDArray[np.int64]


def lane_order(spans: Table, end_ns: NDArray[Any]) -> Ints:
    """Rows by lane, start, the longer first, then the kind (calls around what they own), then id.

    `end_ns` is never before the start. What is still equal keeps the order of its rows.
    """
    start, lane = spans["start_ns"], spans["lane"]
    order = np.argsort(start)
    # Two sorts by one key cost less than one by both; of 16 bits numpy sorts by counting.
    narrow = len(lane) and np.abs(lane).max() < 2**15
    key = lane[order].astype(np.int16 if narrow else np.int64)
    order = order[np.argsort(key, kind="stable")].astype(np.int64, copy=False)
    start, lane = start[order], lane[order]
    same = (start[1:] == start[:-1]) & (lane[1:] == lane[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        rows = order[tied]
        group = np.cumsum(~np.append(False, same))[tied]
        rank = _rank(spans["kind"][rows])
        by = np.lexsort((rows, spans["id"][rows], rank, -end_ns[rows], group))
        order[tied] = rows[by]
    return order


def _rank(kind: NDArray[Any]) -> NDArray[Any]:
    """For spans of equal times: steps and ranges around calls, calls around the rest."""
    rank = np.full(16, 5, np.int8)
    for place, member in enumerate((Kind.STEP, Kind.RANGE, Kind.TASK, Kind.CALL, Kind.DISPATCH)):
        rank[member] = place
    rank[Kind.WAIT] = 6
    ranks: NDArray[Any] = rank[np.clip(kind, 0, 15)]
    return ranks
