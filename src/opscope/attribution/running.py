"""Who ran inside whom on one lane: nesting in which nobody who is suspended is around anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.active import active, suspensions
from opscope.attribution.columns import Columns, Table
from opscope.attribution.nesting import Nesting, nest
from opscope.model import Flag, Kind

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """Places in time: first one for each span, then what generators and coroutines ran later.

    The first place of one that was suspended ends where it was suspended first; it has one more for
    each later stretch. `places` has the columns `start_ns`, `end_ns`, `kind` and `lane`; `row` is
    the span of each, `parent` the place around it (-1: none), which has a lower `depth`. `asleep`
    and `whose` are pairs, by row, of a suspended wait, which is around nothing and in nothing, and
    a call that was suspended meanwhile. `sleeper` tells, by row, who ever was.
    """

    places: Table
    row: Ints
    parent: Ints
    depth: Ints
    asleep: Ints
    whose: Ints
    sleeper: Bools

    @property
    def any(self) -> bool:
        """Whether anybody was suspended: else every span has one place, its own."""
        return len(self.asleep) > 0

    def up_to(self, at: Ints, stop: Bools) -> Ints:
        """Of each of the places `at` the nearest that `stop` marks, itself or around it, or -1."""
        at = at.copy()
        left = np.flatnonzero(at >= 0)
        while len(left := left[~stop[at[left]]]):
            at[left] = self.parent[at[left]]
            left = left[at[left] >= 0]
        return at


def running(spans: Table, nesting: Nesting, up: Ints) -> Running:
    """The places of all spans; `nesting` is theirs by time alone, `up` each one's owner by row."""
    count = len(spans)
    asleep, whose = suspensions(spans)
    sleeper = np.zeros(count, bool)
    if not len(asleep):
        return Running(
            spans, np.arange(count), nesting.parent, nesting.depth, asleep, whose, sleeper
        )
    sleeper[whose] = True
    more, block = _of_blocks(spans, up, asleep, whose, sleeper)
    asleep, whose = np.append(asleep, more), np.append(whose, block)
    sleeper[block] = True
    ran = active(spans, np.flatnonzero(sleeper).astype(np.int64), asleep, whose)
    fresh = np.append(True, ran.row[1:] != ran.row[:-1])
    first, later = np.flatnonzero(fresh), np.flatnonzero(~fresh)
    row: Ints = np.concatenate((np.arange(count), ran.row[later]))
    columns = {key: spans[key][row] for key in ("start_ns", "end_ns", "kind", "lane", "id")}
    place = np.concatenate((ran.row[first], np.arange(count, len(row))))
    stretch = np.concatenate((first, later))
    columns["start_ns"][place] = ran.start_ns[stretch]
    columns["end_ns"][place] = ran.end_ns[stretch]
    # Of stretches of the very same time the one that was woken first is around the other; of a
    # generator and a block in it, the one that began first.
    begun = columns["id"].copy()
    columns["id"][place] = ran.opener[stretch]
    order = np.lexsort((begun, columns["id"]))
    columns["id"][order] = np.arange(len(row))

    here = np.isin(columns["lane"], spans["lane"][asleep])
    parent = np.append(nesting.parent, np.full(len(later), -1))
    parent[:count][here[:count]] = -1
    here[asleep] = False
    chosen = np.flatnonzero(here)
    found = nest(Columns.made({key: column[chosen] for key, column in columns.items()}))
    parent[chosen] = np.where(found.parent >= 0, chosen[found.parent], -1)
    depth = np.append(nesting.depth, np.zeros(len(later), np.int64))
    depth[chosen] = found.depth
    # A step that took no time may seem to lie in the next one of the same call.
    while len(inner := place[(parent[place] >= 0) & (row[parent[place]] == row[place])]):
        parent[inner] = parent[parent[inner]]
    depth[parent < 0] = 0
    return Running(Columns.made(columns), row, parent, depth, asleep, whose, sleeper)


def _of_blocks(
    spans: Table, up: Ints, asleep: Ints, whose: Ints, sleeper: Bools
) -> tuple[Ints, Ints]:
    """The same pairs for `with` blocks: one that a `yield` crosses stands still with its owner."""
    crossed = spans["kind"] == int(Kind.CALL)
    crossed &= (spans["flags"] & int(Flag.CROSSED) != 0) & ~sleeper
    block = np.flatnonzero(crossed).astype(np.int64)
    owner = up[block]
    while (inner := (owner >= 0) & crossed[owner]).any():
        owner = np.where(inner, up[owner], owner)
    kept = (owner >= 0) & sleeper[owner] & (spans["lane"][owner] == spans["lane"][block])
    block, owner = block[kept], owner[kept]
    if not len(block):
        return block, block
    start, end = spans["start_ns"], spans["end_ns"]
    order = np.lexsort((start[asleep], whose))
    asleep, whose = asleep[order], whose[order]
    # Owner and time as one number: owners one after the other, times by their rank.
    times = np.unique(np.concatenate((start[asleep], end[asleep], start[block], end[block])))

    def key(call: Ints, time_ns: NDArray[Any]) -> Ints:
        return call * len(times) + np.searchsorted(times, time_ns)

    first = np.searchsorted(key(whose, end[asleep]), key(owner, start[block]), side="right")
    last = np.searchsorted(key(whose, start[asleep]), key(owner, end[block]))
    number = np.maximum(last - first, 0)
    offset = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    return asleep[np.repeat(first, number) + offset], np.repeat(block, number)
