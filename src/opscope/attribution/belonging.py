"""Which span counts towards which call or task on that one's own lane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.nesting import Nesting
from opscope.attribution.owners import ancestors
from opscope.model import Kind, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: (group, start_ns, end_ns) of intervals that count towards groups.
Intervals = tuple[Ints, NDArray[Any], NDArray[Any]]

#: Kinds that count as sub-operators where they lie inside a call on its own lane.
SUB_KINDS = (Kind.OP, Kind.CALL, Kind.TASK, Kind.DEVICE)
#: Kinds that only annotate: what is inside them belongs to what is around them.
CLEAR_KINDS = (Kind.RANGE, Kind.STEP)


def among(spans: Rows, kinds: tuple[Kind, ...]) -> Bools:
    """Which spans are of one of the kinds."""
    return np.isin(spans["kind"], [int(kind) for kind in kinds])


class Belonging:
    """The calls and tasks of a session as groups, and who belongs to them.

    `rows` are their rows, `group` the inverse (-1 for other spans), `up` each span's owner row and
    `around` the row of the span around each on its lane, looking through annotations.
    """

    def __init__(self, spans: Rows, nesting: Nesting, up: Ints) -> None:
        self.spans = spans
        self.up = up
        self.rows: Ints = np.flatnonzero(among(spans, (Kind.CALL, Kind.TASK))).astype(np.int64)
        self.group: Ints = np.full(len(spans), -1, np.int64)
        self.group[self.rows] = np.arange(len(self.rows))
        self.around = looking_through(nesting.parent, among(spans, CLEAR_KINDS))

    def home(self, child: Ints) -> Ints:
        """The group each span directly belongs to on that group's own lane, -1 for none.

        The task around it where there is one; else the owning call, when on the same lane; chores,
        which nobody owns, belong to whatever is around them. `child` may hold -1.
        """
        kind, lane = self.spans["kind"], self.spans["lane"]
        owner, inner = self.up[child], self.around[child]
        at_home = (owner >= 0) & (lane[owner] == lane[child])
        boxed = (inner >= 0) & (self.group[inner] >= 0)
        by_time = boxed & ((kind[inner] == Kind.TASK) | (kind[child] == Kind.RUNTIME))
        home = np.where(at_home, self.group[owner], -1)
        return np.where(child < 0, -1, np.where(by_time, self.group[inner], home))

    def own(self, mask: Bools) -> Intervals:
        """The masked spans that directly belong to a group."""
        child = np.flatnonzero(mask).astype(np.int64)
        group = self.home(child)
        child, group = child[group >= 0], group[group >= 0]
        return group, self.spans["start_ns"][child], self.spans["end_ns"][child]

    def subs(self) -> Intervals:
        """Everything a call owns, however deep, on its own lane; and what lies in a task."""
        spans, lane = self.spans, self.spans["lane"]
        rows = np.flatnonzero(among(spans, SUB_KINDS)).astype(np.int64)
        below, above = ancestors(self.up, rows)
        here = lane[below] == lane[above]
        below, above = below[here], above[here]
        inner = self.around[rows]
        boxed = (inner >= 0) & (spans["kind"][inner] == Kind.TASK)
        child = np.concatenate((below, rows[boxed]))
        group = np.concatenate((self.group[above], self.group[inner[boxed]]))
        return group, spans["start_ns"][child], spans["end_ns"][child]

    def outermost(self) -> tuple[Ints, Ints]:
        """(row, group) of what belongs to a group, runs while it does, and lies in nothing such."""
        spans, start = self.spans, self.spans["start_ns"]
        counted = among(spans, (*SUB_KINDS, Kind.DISPATCH, Kind.RUNTIME))
        child = np.flatnonzero(counted).astype(np.int64)
        group = self.home(child)
        child, group = child[group >= 0], group[group >= 0]
        inner = self.around[child]
        nested = (inner >= 0) & counted[inner] & (self.home(inner) == group)
        # On an engine's worker what a call owns may run on the call's own lane, but after it.
        row = self.rows[group]
        meanwhile = (start[child] >= start[row]) & (start[child] < spans["end_ns"][row])
        keep = meanwhile & ~nested
        return child[keep], group[keep]


def looking_through(parent: Ints, clear: Bools) -> Ints:
    """The nearest span around each that is not `clear`; -1: none."""
    around = parent
    while True:
        through = (around >= 0) & clear[around]
        if not through.any():
            return around
        around = np.where(through, parent[around], around)
