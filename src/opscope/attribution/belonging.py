"""Which span counts towards which call or task on that one's own lane."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.owners import lineage
from opscope.attribution.running import Running
from opscope.model import Kind

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
    `around` the row of the span that ran around each on its lane, looking through annotations;
    `inner` is the same of places. `below` and `above` are pairs of the row of a sub-operator and
    that of a call above it: all of them, but in a `deep` tree only what started before the call
    ended, and a little more.
    """

    def __init__(self, spans: Table, running: Running, up: Ints) -> None:
        self.spans = spans
        self.running = running
        self.up = up
        self.rows: Ints = np.flatnonzero(among(spans, (Kind.CALL, Kind.TASK))).astype(np.int64)
        self.group: Ints = np.full(len(spans), -1, np.int64)
        self.group[self.rows] = np.arange(len(self.rows))
        self.inner = looking_through(running.parent, among(running.places, CLEAR_KINDS))
        self.around = self._rows_of(self.inner)
        subs = np.flatnonzero(among(spans, SUB_KINDS))
        self.below, self.above, self.deep = lineage(spans, up, subs)

    def _rows_of(self, inner: Ints) -> Ints:
        """From the places around to the rows of the spans around."""
        inner = inner[: len(self.spans)]
        return np.where(inner >= 0, self.running.row[inner], -1) if self.running.any else inner

    @cached_property
    def home(self) -> Ints:
        """The group each span directly belongs to on that group's own lane, -1 for none.

        The task around it where there is one; else the owning call, when on the same lane; chores,
        which nobody owns, belong to whatever is around them, also inside its wrapper or a wait. A
        suspension is the suspended call's.
        """
        kind, lane = self.spans["kind"], self.spans["lane"]
        chore = kind == int(Kind.RUNTIME)
        owner, inner = self.up, self.around
        if chore.any():  # they come before the wrapper and known waits
            clear = among(self.running.places, (*CLEAR_KINDS, Kind.DISPATCH, Kind.WAIT))
            outer = self._rows_of(looking_through(self.running.parent, clear))
            inner = np.where(chore, outer, inner)
        # Row -1 stands for none here: what it reads is the last row, and is not used.
        home = np.where((owner >= 0) & (lane[owner] == lane), self.group[owner], -1)
        box = self.group[inner]
        by_time = (inner >= 0) & (box >= 0)
        by_time &= chore | (kind[inner] == int(Kind.TASK))
        by_time[self.running.asleep] = False
        answer: Ints = np.where(by_time, box, home)
        return answer

    def own(self, mask: Bools) -> Intervals:
        """The masked spans that directly belong to a group."""
        child = np.flatnonzero(mask)
        if len(child):
            child = child[self.home[child] >= 0]
        group = self.home[child] if len(child) else np.empty(0, np.int64)
        return group, self.spans["start_ns"][child], self.spans["end_ns"][child]

    def suspensions(self) -> Intervals:
        """When those groups were suspended that ever were."""
        asleep = self.running.asleep
        group = self.group[self.running.whose]
        return group, self.spans["start_ns"][asleep], self.spans["end_ns"][asleep]

    def subs(self) -> Intervals:
        """While it ran: everything a call owns, however deep, on its own lane; what lies in a task;
        and what generators and coroutines do, in whatever call or task it is done."""
        child, group = self._members
        running = self.running
        if not running.any:
            return group, self.spans["start_ns"][child], self.spans["end_ns"][child]
        whole = ~running.sleeper[child]
        pair, place = self._steps_of(child)
        step, holder = self.steps
        woken = holder >= 0
        place = np.concatenate((child[whole], place, step[woken]))
        group = np.concatenate((group[whole], group[pair], holder[woken]))
        return group, running.places["start_ns"][place], running.places["end_ns"][place]

    def present(self) -> Intervals:
        """The same, suspensions included, of those groups that were suspended themselves."""
        child, group = self._members
        mine = self.running.sleeper[self.rows[group]]
        child, group = child[mine], group[mine]
        step, holder = self.steps
        step, holder = step[holder >= 0], holder[holder >= 0]
        places = self.running.places
        return (
            np.concatenate((group, holder)),
            np.concatenate((self.spans["start_ns"][child], places["start_ns"][step])),
            np.concatenate((self.spans["end_ns"][child], places["end_ns"][step])),
        )

    @cached_property
    def _members(self) -> tuple[Ints, Ints]:
        """(row, group) of everything a call owns on its own lane, and of what lies in a task."""
        spans, kind, lane = self.spans, self.spans["kind"], self.spans["lane"]
        here = np.flatnonzero(lane[self.below] == lane[self.above])
        below, above = self.below[here], self.above[here]
        inner = self.around
        boxed = (inner >= 0) & (kind[inner] == int(Kind.TASK)) & among(spans, SUB_KINDS)
        rows = np.flatnonzero(boxed)
        child = np.concatenate((below, rows))
        return child, np.concatenate((self.group[above], self.group[inner[rows]]))

    @cached_property
    def steps(self) -> tuple[Ints, Ints]:
        """(place, group) of each stretch of those that were ever suspended, and of what belongs to
        such: in which call or task it ran, -1 for none. That may be another than its own."""
        running, home, up = self.running, self.home, self.up
        mine = (home >= 0) & among(self.spans, SUB_KINDS) & running.sleeper[self.rows[home]]
        # A step on another thread than its own is a task there.
        mine |= (up >= 0) & among(self.spans, (Kind.TASK,)) & running.sleeper[up]
        mine |= running.sleeper
        step = np.flatnonzero(mine[running.row]).astype(np.int64)
        step = step[np.argsort(running.row[step], kind="stable")]
        holds = among(running.places, (Kind.CALL, Kind.TASK))
        holder = running.up_to(running.parent[step], holds)
        return step, np.where(holder >= 0, self.group[running.row[holder]], -1)

    def _steps_of(self, child: Ints) -> tuple[Ints, Ints]:
        """(index into `child`, place) of each stretch of those that were ever suspended."""
        step, _ = self.steps
        row = self.running.row[step]
        some = np.flatnonzero(self.running.sleeper[child])
        first = np.searchsorted(row, child[some])
        count = np.searchsorted(row, child[some], side="right") - first
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(some, count), step[np.repeat(first, count) + offset]


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
