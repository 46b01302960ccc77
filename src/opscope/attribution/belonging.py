"""Which span counts towards which call or task on that one's own lane."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.nesting import Nesting
from opscope.attribution.owners import lineage
from opscope.model import Flag, Kind

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: (group, start_ns, end_ns) of intervals that count towards groups.
Intervals = tuple[Ints, NDArray[Any], NDArray[Any]]

#: Kinds that count as sub-operators where they lie inside a call on its own lane.
SUB_KINDS = (Kind.OP, Kind.CALL, Kind.TASK, Kind.DEVICE)
#: Kinds that only annotate: what is inside them belongs to what is around them.
CLEAR_KINDS = (Kind.RANGE, Kind.STEP)


def among(spans: Table, kinds: tuple[Kind, ...]) -> Bools:
    """Which spans are of one of the kinds."""
    kind = spans["kind"]
    mask: Bools = np.zeros(len(kind), bool)
    for one in kinds:
        mask |= kind == int(one)
    return mask


class Belonging:
    """The calls and tasks of a session as groups, and who belongs to them.

    `rows` are their rows, `group` the inverse (-1 for other spans), `up` each span's owner row and
    `around` the row of the span around each on its lane, looking through annotations. `below` and
    `above` are pairs of the row of a sub-operator and that of a call above it: all of them, but in
    a `deep` tree only what started before the call ended, and a little more.
    """

    def __init__(self, spans: Table, nesting: Nesting, up: Ints) -> None:
        self.spans = spans
        self.up = up
        self.rows: Ints = np.flatnonzero(among(spans, (Kind.CALL, Kind.TASK))).astype(np.int64)
        self.group: Ints = np.full(len(spans), -1, np.int64)
        self.group[self.rows] = np.arange(len(self.rows))
        self._parent = nesting.parent
        self.around = looking_through(nesting.parent, among(spans, CLEAR_KINDS))
        subs = np.flatnonzero(among(spans, SUB_KINDS))
        self.below, self.above, self.deep = lineage(spans, up, subs)

    @cached_property
    def home(self) -> Ints:
        """The group each span directly belongs to on that group's own lane, -1 for none.

        The task around it where there is one; else the owning call, when on the same lane; chores,
        which nobody owns, belong to whatever is around them, also inside its wrapper or a wait.
        """
        kind, lane = self.spans["kind"], self.spans["lane"]
        chore = kind == int(Kind.RUNTIME)
        owner, inner = self.up, self.around
        if chore.any():
            # They come before the wrapper and known waits. Of a call that is suspended they are
            # none: what runs on its lane meanwhile is its consumer's.
            clear = among(self.spans, (*CLEAR_KINDS, Kind.DISPATCH, Kind.WAIT))
            clear &= (self.spans["flags"] & int(Flag.SUSPENDED)) == 0
            inner = np.where(chore, looking_through(self._parent, clear), inner)
        # Row -1 stands for none here: what it reads is the last row, and is not used.
        home = np.where((owner >= 0) & (lane[owner] == lane), self.group[owner], -1)
        box = self.group[inner]
        by_time = (inner >= 0) & (box >= 0)
        by_time &= chore | (kind[inner] == int(Kind.TASK))
        answer: Ints = np.where(by_time, box, home)
        return answer

    def own(self, mask: Bools) -> Intervals:
        """The masked spans that directly belong to a group."""
        child = np.flatnonzero(mask)
        if len(child):
            child = child[self.home[child] >= 0]
        group = self.home[child] if len(child) else np.empty(0, np.int64)
        return group, self.spans["start_ns"][child], self.spans["end_ns"][child]

    def subs(self) -> Intervals:
        """Everything a call owns, however deep, on its own lane; and what lies in a task."""
        spans, kind, lane = self.spans, self.spans["kind"], self.spans["lane"]
        here = np.flatnonzero(lane[self.below] == lane[self.above])
        below, above = self.below[here], self.above[here]
        inner = self.around
        boxed = (inner >= 0) & (kind[inner] == int(Kind.TASK)) & among(spans, SUB_KINDS)
        rows = np.flatnonzero(boxed)
        child = np.concatenate((below, rows))
        group = np.concatenate((self.group[above], self.group[inner[rows]]))
        return group, spans["start_ns"][child], spans["end_ns"][child]

    def outermost(self) -> tuple[Ints, Ints]:
        """(row, group) of what belongs to a group, runs while it does, and lies in nothing such."""
        spans, start = self.spans, self.spans["start_ns"]
        counted = among(spans, (*SUB_KINDS, Kind.DISPATCH, Kind.RUNTIME))
        home, inner = self.home, self.around
        nested = (inner >= 0) & counted[inner] & (home[inner] == home)
        child = np.flatnonzero(counted & (home >= 0) & ~nested)
        group = home[child]
        # On an engine's worker what a call owns may run on the call's own lane, but after it.
        row = self.rows[group]
        meanwhile = (start[child] >= start[row]) & (start[child] < spans["end_ns"][row])
        return child[meanwhile], group[meanwhile]


def looking_through(parent: Ints, clear: Bools) -> Ints:
    """The nearest span around each that is not `clear`; -1: none."""
    if not clear.any():
        return parent
    around: Ints = parent.copy()
    left = np.flatnonzero((parent >= 0) & clear[parent])
    while len(left):
        outer = parent[around[left]]
        around[left] = outer
        left = left[(outer >= 0) & clear[outer]]
    return around
