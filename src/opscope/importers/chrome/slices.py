"""Beginnings and ends on one lane to slices: the last one begun ends first, if names agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: An end before its beginning, both at one moment, is looked for among so many marks.
_TOGETHER = 64


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Beginnings and ends in the order of the file. An end may have no name (-1)."""

    lane: Ints
    time: Ints
    name: Ints
    begins: Bools

    def __len__(self) -> int:
        return len(self.lane)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """`begin` and `end` are marks that belong together. The rest are marks as well: `open` begin
    what never ends, `stray` end what never began, `early` are the ends that do not end the
    innermost slice (slices cross there)."""

    begin: Ints
    end: Ints
    open: Ints
    stray: Ints
    early: Ints


def paired(marks: Marks) -> Pairs:
    """Beginnings with their ends, lane by lane in the order of time, then of the file.

    An end is that of the innermost open slice of its name; one without a name ends the innermost of
    all. Lanes on which all comes out even cost two sorts together, the others a pass with a stack.
    """
    order = np.lexsort((marks.time, marks.lane))
    begins, lane = marks.begins[order], marks.lane[order]
    level = np.cumsum(np.where(begins, 1, -1))
    first = np.flatnonzero(np.append(True, lane[1:] != lane[:-1])) if len(lane) else lane[:0]
    size = np.diff(np.append(first, len(lane)))
    before = np.repeat(np.append(0, level)[first], size)
    depth = level - before - begins  # of both marks of a slice the same
    odd: Bools = np.zeros(len(first), bool)
    if len(first):
        odd = np.minimum.reduceat(depth, first) < 0
        odd |= level[first + size - 1] != before[first]
    even = np.flatnonzero(~np.repeat(odd, size))
    # On a lane and level, marks now come as beginning, end, beginning, end ...
    even = even[np.lexsort((even, depth[even], lane[even]))]
    begin, end = order[even[0::2]], order[even[1::2]]
    agree = (marks.name[end] == marks.name[begin]) | (marks.name[end] < 0)
    if not agree.all():
        wrong = np.unique(marks.lane[begin[~agree]])
        good = ~np.isin(marks.lane[begin], wrong)
        begin, end = begin[good], end[good]
        odd |= np.isin(lane[first], wrong)
    slow = [
        _stacked(marks, order[first[number] : first[number] + size[number]])
        for number in np.flatnonzero(odd).tolist()
    ]
    told = [np.array(part, np.int64) for part in _joined(slow)]
    return Pairs(np.append(begin, told[0]), np.append(end, told[1]), *told[2:])


_Lists = tuple[list[int], list[int], list[int], list[int], list[int]]


def _joined(parts: Sequence[_Lists]) -> _Lists:
    all_: _Lists = ([], [], [], [], [])
    for part in parts:
        for whole, some in zip(all_, part, strict=True):
            whole += some
    return all_


def _stacked(marks: Marks, order: Ints) -> _Lists:
    """The same for one lane, with a stack."""
    rows = order.tolist()
    time, name = marks.time[order].tolist(), marks.name[order].tolist()
    begins = marks.begins[order].tolist()
    pairs: dict[int, int] = {}
    stack: list[int] = []
    of_name: dict[int, list[int]] = {}
    ended: set[int] = set()
    stray: list[int] = []
    early: list[int] = []
    for place, begin in enumerate(begins):
        if begin:
            if place not in ended:
                stack.append(place)
                of_name.setdefault(name[place], []).append(place)
            continue
        while stack and stack[-1] in ended:
            stack.pop()
        mine = of_name.get(name[place], [])
        if name[place] < 0 and stack:
            of_name[name[stack[-1]]].pop()
            other = stack[-1]
        elif mine:
            other = mine.pop()
            if other != stack[-1]:
                early.append(rows[place])
        else:
            other = _at_once(place, time, name, begins, ended)
        if other < 0:
            stray.append(rows[place])
        else:
            ended.add(other)
            pairs[other] = place
    open_ = [rows[place] for place in stack if place not in ended]
    ends = [rows[place] for place in pairs.values()]
    return [rows[place] for place in pairs], ends, open_, stray, early


def _at_once(
    place: int, time: list[int], name: list[int], begins: list[bool], ended: set[int]
) -> int:
    """The beginning at the same moment that the file tells after its end; -1 for none."""
    for later in range(place + 1, min(place + _TOGETHER, len(time))):
        if time[later] != time[place]:
            break
        if begins[later] and name[later] == name[place] and later not in ended:
            return later
    return -1
