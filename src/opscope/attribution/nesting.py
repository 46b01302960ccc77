"""Who lies inside whom on one lane, by time alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.order import lane_order

Ints = NDArray[np.int64]

#: Times on all lanes together below this many nanoseconds (73 years) can be laid end to end.
_ROOM = 2**61


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """For each span, by row: the row of the innermost span around it on its lane (-1: none), how
    deep it lies, and whether it crosses the end of the span it starts in."""

    parent: Ints
    depth: Ints
    crosses: NDArray[np.bool_]


def nest(spans: Table) -> Nesting:
    """Nesting of every lane at once.

    Order on a lane: by start, then the longer first, then the kind (calls around what they own),
    then the id. A span that starts inside another and ends after it counts as inside, and
    `crosses`.
    All lanes together cost a few sorts. Only those on which spans cross cost a pass with a stack.
    """
    n = len(spans)
    found = Nesting(np.full(n, -1, np.int64), np.zeros(n, np.int64), np.zeros(n, bool))
    if not n:
        return found
    end = np.maximum(spans["end_ns"], spans["start_ns"])
    order = lane_order(spans, end)
    start, end, lane = spans["start_ns"][order], end[order], spans["lane"][order]
    first = np.flatnonzero(np.append(True, lane[1:] != lane[:-1]))
    size = np.diff(np.append(first, n))
    last = np.maximum.reduceat(end, first)
    room = [high - low + 1 for high, low in zip(last.tolist(), start[first].tolist(), strict=True)]
    crossed = range(len(first))
    if sum(room) < _ROOM:
        shift = np.cumsum([0, *room[:-1]]) - start[first]
        shift = np.repeat(shift, size)
        depth, parent = _nest_all(start + shift, end + shift)
        crosses = (end > end[parent]) & (parent >= 0)
        found.depth[order] = depth
        found.parent[order] = np.where(parent >= 0, order[parent], -1)
        # Up to the first crossing of a lane all is right, so that one is always seen.
        crossed = np.flatnonzero(np.logical_or.reduceat(crosses, first)).tolist()
    for number in crossed:
        some = slice(first[number], first[number] + size[number])
        _nest_lane(order[some], start[some], end[some], found)
    return found


def _nest_all(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """(depth, place of the parent or -1) of spans sorted as `nest` says, lanes end to end in time.

    Right on every lane where no spans cross. A span lies in all that began before it and have not
    ended: the depth is a difference of two counts.
    """
    place = np.arange(len(start))
    # Twice the time leaves room between moments. One of no length lies inside what ends at that
    # very moment, unless a longer one begins there, which closes what has ended.
    empty = start == end
    moment = 2 * start + 1
    if empty.any():
        fresh = np.append(True, start[1:] != start[:-1])
        longest = np.maximum.accumulate(np.where(fresh, place, 0))
        moment -= empty[longest]
    ended = np.searchsorted(np.sort(2 * end + empty), moment)
    depth = place - ended
    # The first child of a span stands right behind it; its sisters follow at the same depth.
    deepest = int(depth.max())
    level = np.argsort(depth.astype(np.int16 if deepest < 2**15 else np.int64), kind="stable")
    eldest = np.append(False, depth[1:] > depth[:-1])
    by_level = depth[level] * len(place)
    known = np.maximum.accumulate(by_level + np.where(eldest, place - 1, 0)[level]) - by_level
    parent = np.empty_like(place)
    parent[level] = known
    parent[depth == 0] = -1
    return depth, parent


def _nest_lane(rows: NDArray[Any], start: NDArray[Any], end: NDArray[Any], found: Nesting) -> None:
    """A stack in one pass over the spans of one lane, sorted as `nest` says.

    Fills in what is found of these rows."""
    parents: list[int] = []
    depths: list[int] = []
    crossings: list[bool] = []
    # (end, row), ends falling from the bottom up except at crossings
    stack: list[tuple[int, int]] = []
    for row, begin, finish in zip(rows.tolist(), start.tolist(), end.tolist(), strict=True):
        # A span of no length at the very end of another still lies inside it.
        while stack and (stack[-1][0] < begin or (stack[-1][0] == begin and finish > begin)):
            stack.pop()
        parents.append(stack[-1][1] if stack else -1)
        depths.append(len(stack))
        crossings.append(bool(stack) and finish > stack[-1][0])
        stack.append((finish, row))
    found.parent[rows], found.depth[rows], found.crosses[rows] = parents, depths, crossings
