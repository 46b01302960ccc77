"""Trees of calls too deep for pairs: a timer that sets itself anew owns all that follows.

A chain of n such calls has n²/2 pairs of a call and one above it. Of those only few matter, the
ones that share time; the rest is a union or a sum over a whole subtree, which needs no pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.totals import totals

Ints = NDArray[np.int64]

#: So many pairs are looked at in one go.
_PORTION = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Trees of calls gone through from the top, each call before those it owns, one tree after the
    other: what call number `n` owns, however deep, has the numbers from n + 1 up to `stop[n]`."""

    calls: Ints  #: rows
    up: Ints  #: the number of each one's owner, -1: none
    depth: Ints
    stop: Ints


def walk(up: Ints, calls: Ints) -> Walk:
    """The walk through `calls`, which hold every owner of theirs; `up` as from `owner_rows`."""
    count = len(calls)
    place = np.full(len(up), -1, np.int64)
    place[calls] = np.arange(count)
    owner = np.where(up[calls] >= 0, place[up[calls]], -1)
    order = np.argsort(owner, kind="stable")
    edges = np.searchsorted(owner[order], np.arange(-1, count + 1)).tolist()
    kids = order.tolist()
    stack, visited, depths = kids[edges[0] : edges[1]][::-1], [], []
    above, levels = owner.tolist(), [0] * count
    while stack:
        call = stack.pop()
        level = levels[above[call]] + 1 if above[call] >= 0 else 0
        levels[call] = level
        visited.append(call)
        depths.append(level)
        stack.extend(kids[edges[call + 1] : edges[call + 2]][::-1])
    went = np.array(visited, np.int64)
    number = np.empty(count, np.int64)
    number[went] = np.arange(count)
    size = [1] * count
    for call in reversed(visited):
        if above[call] >= 0:
            size[above[call]] += size[call]
    outer = owner[went]
    return Walk(
        calls=calls[went],
        up=np.where(outer >= 0, number[outer], -1),
        depth=np.array(depths, np.int64),
        stop=np.arange(count) + np.array(size, np.int64)[went],
    )


class Deep:
    """What calls of deep trees own. `rows` are the spans below them and `at` the number of each
    one's owner. Columns it takes and gives have an entry for each span or each call of the walk.

    Pairs of a span and a call above it are given by `near` where the span starts before `until` of
    the call: before the call ended, or the last of what it owns that began on its lane till then.
    """

    def __init__(self, spans: Table, up: Ints, calls: Ints, rows: Ints) -> None:
        self.spans, self.walk = spans, walk(up, calls)
        number = np.full(len(spans), -1, np.int64)
        number[self.walk.calls] = np.arange(len(calls))
        at = number[up[rows]]
        order = np.argsort(at, kind="stable")
        self.rows, self.at = rows[order], at[order]
        start, end, lane = (spans[key] for key in ("start_ns", "end_ns", "lane"))
        self.first = self._outermost(start[self.rows], start[self.walk.calls], -1)
        self.last = self._outermost(end[self.rows], end[self.walk.calls], 1)
        left = np.maximum(start, end)[self.walk.calls]
        self.until = left.copy()
        below, above = self._pairs(self.first, left)
        here = lane[self.rows[below]] == lane[self.walk.calls[above]]
        here &= start[self.rows[below]] < end[self.walk.calls[above]]
        np.maximum.at(self.until, above[here], end[self.rows[below[here]]])
        late = self._pairs(left, self.until)
        #: Rows of spans, and for each the number of a call above it.
        self.near: tuple[Ints, Ints] = (
            self.rows[np.concatenate((below, late[0]))],
            np.concatenate((above, late[1])),
        )

    def _outermost(self, of_span: Ints, of_call: Ints, sign: int) -> Ints:
        """The largest (`sign` 1) or smallest value of a call and of all it owns."""
        best = sign * of_call.astype(np.int64)
        np.maximum.at(best, self.at, sign * of_span)
        found, above = best.tolist(), self.walk.up.tolist()
        for number in range(len(found) - 1, -1, -1):
            outer = above[number]
            if outer >= 0 and found[number] > found[outer]:
                found[outer] = found[number]
        return sign * np.array(found, np.int64)

    def _pairs(self, since: Ints, until: Ints) -> tuple[Ints, Ints]:
        """(index into `rows`, number of a call above) of what starts in [since, until) of it."""
        below: list[Ints] = [np.empty(0, np.int64)]
        above: list[Ints] = [np.empty(0, np.int64)]
        tree = np.cumsum(self.walk.up < 0) - 1
        start = self.spans["start_ns"][self.rows]
        # Tree by tree in order of start: both in one number, as moments alone may need all bits.
        moments = np.unique(np.concatenate((start, since, until)))
        size = len(moments)
        key = tree[self.at] * size + np.searchsorted(moments, start)
        order = np.argsort(key, kind="stable")
        key = key[order]
        low = np.searchsorted(key, tree * size + np.searchsorted(moments, since))
        high = np.searchsorted(key, tree * size + np.searchsorted(moments, until))
        # What a call owns may be less than what began in the tree meanwhile: take the fewer.
        edges = np.searchsorted(self.at, np.arange(len(tree) + 1))
        owned = edges[self.walk.stop] - edges[:-1]
        fewer = owned < high - low
        order = np.concatenate((order, np.arange(len(order))))
        low = np.where(fewer, edges[:-1] + len(key), low)
        count = np.where(until > since, np.where(fewer, owned, high - low), 0)
        for some in _portions(count):
            many = count[some]
            call = np.repeat(np.arange(some.start, some.stop), many)
            offset = np.arange(len(call)) - np.repeat(np.cumsum(many) - many, many)
            span = order[low[call] + offset]
            inside = (self.at[span] >= call) & (self.at[span] < self.walk.stop[call])
            inside &= (start[span] >= since[call]) & (start[span] < until[call])
            below.append(span[inside])
            above.append(call[inside])
        return np.concatenate(below), np.concatenate(above)

    def total(self, values: Ints, chosen: NDArray[Any]) -> Ints:
        """For each call the sum of `values`, a column over all spans, of the `chosen` it owns."""
        some = np.flatnonzero(chosen[self.rows])
        each = totals(self.at[some], values[self.rows[some]], len(self.walk.calls))
        return self._summed(each)

    def union(self, chosen: NDArray[Any], start: Ints, end: Ints, room: NDArray[Any]) -> Ints:
        """For each call the time in which at least one of the `chosen` spans it owns ran, for each
        `room` apart, added up. The columns have an entry for each span."""
        some = np.flatnonzero(chosen[self.rows] & (end > start)[self.rows])
        row = self.rows[some]
        return self._summed(_shares(self.walk, self.at[some], room[row], start[row], end[row]))

    def _summed(self, each: Ints) -> Ints:
        """For each call the sum of the values of it and of all calls it owns."""
        sums = np.append(0, np.cumsum(each))
        summed: Ints = sums[self.walk.stop] - sums[:-1]
        return summed


def _portions(count: Ints) -> Iterator[slice]:
    """Slices of the calls so that each has about `_PORTION` pairs, or is one call."""
    whole = np.cumsum(count)
    begin = 0
    while begin < len(count):
        before = int(whole[begin] - count[begin])
        stop = max(int(np.searchsorted(whole, before + _PORTION, side="right")), begin + 1)
        yield slice(begin, stop)
        begin = stop


def _shares(way: Walk, at: Ints, room: NDArray[Any], start: Ints, end: Ints) -> Ints:
    """Values of which the sum over a subtree is the length of the union of its intervals.

    Each interval counts at its call. Of those that run at one moment, in the order of the walk,
    each two neighbours are counted twice in all calls that own both: that is taken back at the
    innermost of them.
    """
    count = len(way.calls)
    value = totals(at, end - start, count)
    order = np.lexsort((start, room))
    at, room, start, end = (column[order] for column in (at, room, start, end))
    alone = _alone(room, start, end)
    at, room, start, end = (column[~alone] for column in (at, room, start, end))
    zero = int(start.min(initial=0))
    moment = np.concatenate((start, end)) - zero
    begins = np.repeat((True, False), len(start))
    order = np.lexsort((begins, moment, np.concatenate((room, room))))
    running: list[int] = []
    pairs: list[tuple[int, int, int]] = []  # two neighbours, and what they shared, in parts
    for number, when, begin in zip(
        np.concatenate((at, at))[order].tolist(),
        moment[order].tolist(),
        begins[order].tolist(),
        strict=True,
    ):
        place = bisect_left(running, number)
        if not begin:
            del running[place]
        if running:
            when = -when if begin else when
            before, after = place > 0, place < len(running)
            if before:
                pairs.append((running[place - 1], number, when))
            if after:
                pairs.append((number, running[place], when))
            if before and after:
                pairs.append((running[place - 1], running[place], -when))
        if begin:
            running.insert(place, number)
    if pairs:
        one, other, shared = np.array(pairs, np.int64).T
        common = _common(way, one, other)
        np.subtract.at(value, common[common >= 0], shared[common >= 0])
    return value


def _alone(room: NDArray[Any], start: Ints, end: Ints) -> NDArray[np.bool_]:
    """Which intervals, sorted by room and start, share no time with any other of their room."""
    first = np.append(True, room[1:] != room[:-1])[: len(room)]
    reach = np.empty_like(end)
    for some in np.split(np.arange(len(room)), np.flatnonzero(first)[1:]):
        reach[some] = np.maximum.accumulate(end[some])
    free: NDArray[np.bool_] = first.copy()
    free[1:] |= start[1:] >= reach[:-1]
    alone: NDArray[np.bool_] = free & np.append(free[1:], True)[: len(free)]
    return alone


def _common(way: Walk, one: Ints, other: Ints) -> Ints:
    """The innermost call that is or owns both, -1 for none; `one` has not the larger number.

    Between two calls of a walk the least deep one is owned by it.
    """
    least = np.arange(len(way.calls))  # of stretches of 1, 2, 4 ... calls the least deep call
    length = np.where(other > one, other - one, 1)
    level = np.frexp(length)[1] - 1
    common: Ints = one.copy()
    for power in range(int(level.max(initial=0)) + 1):
        some = np.flatnonzero((level == power) & (other > one))
        left, right = least[one[some] + 1], least[other[some] + 1 - 2**power]
        common[some] = way.up[np.where(way.depth[left] <= way.depth[right], left, right)]
        ahead = least[np.minimum(np.arange(len(least)) + 2**power, len(least) - 1)]
        least = np.where(way.depth[ahead] < way.depth[least], ahead, least)
    return common
