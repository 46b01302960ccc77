"""The CPU time that was not a call's own: that of what it caused, on its own lane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.belonging import SUB_KINDS, Belonging, among
from opscope.attribution.totals import distinct, totals
from opscope.model import Flag, Kind

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def child_cpu(belonging: Belonging) -> tuple[Ints, Bools]:
    """CPU time of each group's outermost children, and where one had to be guessed.

    A child whose CPU time is not known is taken to have been busy all the time it ran. One that was
    suspended and ran only in part here is taken to have been as busy here as elsewhere.
    """
    spans, count = belonging.spans, len(belonging.rows)
    guessed = np.zeros(count, bool)
    if not (spans["cpu_ns"][belonging.rows] >= 0).any():
        return np.zeros(count, np.int64), guessed  # nobody will ask
    child, group, length, ran = _outermost(belonging)
    cpu = spans["cpu_ns"][child]
    # While a block stands still its thread works for others, and nobody took that out.
    blocks = belonging.running.sleeper[child] & (spans["flags"][child] & int(Flag.CROSSED) != 0)
    cpu = np.where(blocks, np.minimum(cpu, ran), cpu)
    part = length != ran
    guessed[group[(cpu < 0) | part]] = True
    busy = np.where(cpu >= 0, cpu, length)
    some = np.flatnonzero(part & (cpu >= 0))
    if len(some):
        busy[some] = np.rint(cpu[some] * (length[some] / ran[some])).astype(np.int64)
    return totals(group, busy, count), guessed


def _outermost(belonging: Belonging) -> tuple[Ints, Ints, Ints, Ints]:
    """(row, group, length, length of all that it ran) of what belongs to a group, runs while
    that does, and lies in nothing such. Lengths in ns, suspensions left out."""
    spans, start = belonging.spans, belonging.spans["start_ns"]
    counted = among(spans, (*SUB_KINDS, Kind.DISPATCH, Kind.RUNTIME))
    home, inner = belonging.home, belonging.around
    if belonging.running.any:
        return _outermost_places(belonging, counted)
    nested = (inner >= 0) & counted[inner] & (home[inner] == home)
    child = np.flatnonzero(counted & (home >= 0) & ~nested)
    group = home[child]
    # On an engine's worker what a call owns may run on the call's own lane, but after it.
    row = belonging.rows[group]
    meanwhile = (start[child] >= start[row]) & (start[child] < spans["end_ns"][row])
    child, group = child[meanwhile], group[meanwhile]
    length = np.maximum(spans["end_ns"][child] - start[child], 0)
    return child, group, length, length


def _outermost_places(belonging: Belonging, counted: Bools) -> tuple[Ints, Ints, Ints, Ints]:
    """The same by places: of one that was suspended some steps may lie in another child, or in
    a call it does not belong to, which used that CPU time all the same."""
    running, spans = belonging.running, belonging.spans
    places, row, home = running.places, running.row, belonging.home
    place = np.flatnonzero(counted[row] & (home[row] >= 0))
    step, holder = belonging.steps
    foreign = (holder >= 0) & (holder != home[row[step]])
    place = np.concatenate((place, step[foreign]))
    group = np.concatenate((home[row[place[: len(place) - foreign.sum()]]], holder[foreign]))
    start, end = places["start_ns"], np.maximum(places["end_ns"], places["start_ns"])
    around, length = belonging.inner[place], end[place] - start[place]

    nested = (around >= 0) & counted[row[around]] & (home[row[around]] == group)
    box = belonging.rows[group]
    begun = start[place]
    meanwhile = (begun >= spans["start_ns"][box]) & (begun < spans["end_ns"][box])
    # Where somebody was suspended, look further out: for another child or the group itself.
    unsure = running.sleeper[row[place]] | running.sleeper[box]
    left = np.flatnonzero(unsure & ~nested & (around >= 0))
    at = around.copy()
    while len(left := left[(row[at[left]] != box[left]) & ~nested[left]]):
        at[left] = belonging.inner[at[left]]
        left = left[at[left] >= 0]
        above = at[left]  # which may have ended: lanes may cross
        nested[left] = counted[row[above]] & (home[row[above]] == group[left])
        nested[left] &= end[above] > begun[left]
    arrived = (at >= 0) & (row[at] == box)
    ran = totals(row, np.where(counted[row], end - start, 0), len(spans))
    kept = ~nested & meanwhile & (arrived | ~running.sleeper[box])
    kept = np.flatnonzero(kept & ((length > 0) | (ran[row[place]] == 0)))

    child = row[place[kept]]
    pairs, which = distinct(child, group[kept])
    return pairs[:, 0], pairs[:, 1], totals(which, length[kept], len(pairs)), ran[pairs[:, 0]]
