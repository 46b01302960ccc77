"""Who lies inside whom on one lane, by time alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.model import Kind, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """For each span, by row: the row of the innermost span around it on its lane (-1: none), how
    deep it lies, and whether it crosses the end of the span it starts in."""

    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    crosses: NDArray[np.bool_]


def nest(spans: Rows) -> Nesting:
    """Nesting of every lane at once.

    Order on a lane: by start, then the longer first, then the kind (calls around what they own),
    then the id. A span that starts inside another and ends after it counts as inside, and
    `crosses`.
    Lanes on which nothing overlaps cost one comparison; the others one pass with a stack.
    """
    n = len(spans)
    parent = np.full(n, -1, np.int64)
    depth = np.zeros(n, np.int64)
    crosses = np.zeros(n, bool)
    if not n:
        return Nesting(parent, depth, crosses)
    start, end = spans["start_ns"], np.maximum(spans["end_ns"], spans["start_ns"])
    order = np.lexsort((spans["id"], _rank(spans["kind"]), -end, start, spans["lane"]))
    lane = spans["lane"][order]
    for low, high in _runs(lane):
        rows = order[low:high]
        _nest_lane(rows, start[rows], end[rows], parent, depth, crosses)
    return Nesting(parent, depth, crosses)


def _nest_lane(
    rows: NDArray[Any],
    start: NDArray[Any],
    end: NDArray[Any],
    parent: NDArray[np.int64],
    depth: NDArray[np.int64],
    crosses: NDArray[np.bool_],
) -> None:
    """A stack in one pass over the spans of one lane, sorted as `nest` says."""
    if _flat(start, end):
        return
    stack: list[
        tuple[int, int]
    ] = []  # (end, row), ends falling from the bottom up except at crossings
    ends = end.tolist()
    starts = start.tolist()
    for i, row in enumerate(rows.tolist()):
        begin, finish = starts[i], ends[i]
        # A span of no length at the very end of another still lies inside it.
        while stack and (stack[-1][0] < begin or (stack[-1][0] == begin and finish > begin)):
            stack.pop()
        if stack:
            parent[row] = stack[-1][1]
            depth[row] = len(stack)
            crosses[row] = finish > stack[-1][0]
        stack.append((finish, row))


def _flat(start: NDArray[Any], end: NDArray[Any]) -> bool:
    """True when each span of the lane starts after the one before it has ended: nothing nests."""
    return bool((end[:-1] < start[1:]).all())


def _rank(kind: NDArray[Any]) -> NDArray[Any]:
    """For spans of equal times: steps and ranges around calls, calls around the rest."""
    rank = np.full(16, 5, np.int8)
    for place, member in enumerate((Kind.STEP, Kind.RANGE, Kind.TASK, Kind.CALL, Kind.DISPATCH)):
        rank[member] = place
    rank[Kind.WAIT] = 6
    ranks: NDArray[Any] = rank[np.clip(kind, 0, 15)]
    return ranks


def _runs(keys: NDArray[Any]) -> list[tuple[int, int]]:
    """(first, end) of each run of equal keys."""
    edges = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1], [True])))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
