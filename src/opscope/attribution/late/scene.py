"""Events and recorded calls on one stage: who was running around whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.active import active, suspensions
from opscope.attribution.belonging import looking_through
from opscope.attribution.late.events import Events, Role
from opscope.attribution.nesting import nest
from opscope.model import SPAN, Flag, Kind, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Scene:
    """Places: first the stretches in which recorded calls and tasks ran, then the events, then the
    beginnings of recorded rows that are neither call nor task, and the submissions of tasks.

    `parent` is the place of whatever is around each place (-1: nothing), `row` the recorded row of
    a stretch or beginning, `holder` which places hold what is inside them. Events that were folded
    into a recorded call, and device work, are no places' parents.
    """

    def __init__(self, events: Events, recorded: Rows, folded: Bools) -> None:
        self.events = events
        kind = recorded["kind"]
        holders = np.flatnonzero((kind == Kind.CALL) | (kind == Kind.TASK)).astype(np.int64)
        ran = active(recorded, holders, *suspensions(recorded))
        stretch_row, begin, finish = ran.row, ran.start_ns, ran.end_ns
        marks = np.flatnonzero((kind != Kind.CALL) & (kind != Kind.TASK)).astype(np.int64)
        tasks = np.flatnonzero((kind == Kind.TASK) & (recorded["submitted_ns"] > 0))
        self.stretches = len(stretch_row)
        self.first_mark = self.stretches + len(events)
        self.first_task = self.first_mark + len(marks)
        self.row: Ints = np.concatenate(
            (stretch_row, np.full(len(events), -1, np.int64), marks, tasks)
        )
        points = np.concatenate((recorded["start_ns"][marks], recorded["submitted_ns"][tasks]))
        lanes = np.concatenate((recorded["lane"][marks], recorded["submitted_lane"][tasks]))
        table = np.zeros(len(self.row), SPAN)
        table["id"] = np.arange(len(table))
        table["kind"] = Kind.OP
        table["kind"][: self.stretches] = recorded["kind"][stretch_row]
        table["kind"][self.first_mark :] = Kind.WAIT
        table["lane"] = np.concatenate((recorded["lane"][stretch_row], events.lane, lanes))
        table["start_ns"] = np.concatenate((begin, events.start_ns, points))
        table["end_ns"] = np.concatenate((finish, events.end_ns, points))
        # What cannot be around anything stays out: work on a device's streams may overlap.
        here = np.ones(len(table), bool)
        here[self.of_events] = ~folded & (events.role != Role.DEVICE)
        places = np.flatnonzero(here)
        parent = nest(table[here]).parent
        self.parent: Ints = np.full(len(table), -1, np.int64)
        self.parent[places] = np.where(parent >= 0, places[parent], -1)
        self.holder: Bools = np.zeros(len(table), bool)
        self.holder[: self.stretches] = True

    @property
    def of_events(self) -> slice:
        """The places of the events."""
        return slice(self.stretches, self.first_mark)

    def near(self, also: Bools | None = None) -> Ints:
        """The nearest holder around each place, or place of `also`; -1 for none."""
        stop = self.holder if also is None else self.holder | also
        return looking_through(self.parent, ~stop)


class Causes:
    """Whose each holder's inside is: an owner id and a phase for every place, 0 where it is none.

    A call owns what is inside it; in a task that is its owner's. `changed` are the places whose
    inside has another owner than the recorder knew.
    """

    def __init__(self, scene: Scene, recorded: Rows, event_ids: Ints, event_phase: Ints) -> None:
        self.scene = scene
        self.id: Ints = np.zeros(len(scene.row), np.int64)
        self.phase: Ints = np.zeros(len(scene.row), np.int64)
        self.changed: Bools = np.zeros(len(scene.row), bool)
        rows = scene.row[: scene.stretches]
        is_call = recorded["kind"][rows] == Kind.CALL
        self.id[: scene.stretches] = np.where(
            is_call, recorded["id"][rows], recorded["owner"][rows]
        )
        self.phase[: scene.stretches] = recorded["phase"][rows]
        inside = scene.of_events
        held = scene.holder[inside]
        self.id[inside] = np.where(held, event_ids, 0)
        self.phase[inside] = np.where(held, event_phase, 0)
        self.changed[inside] = held

    def settle_tasks(self, recorded: Rows, near: Ints) -> None:
        """Give tasks that were submitted inside a call which nobody recorded to that call.

        A task may have been submitted inside another such task: as many rounds as they are deep.
        """
        scene = self.scene
        places = np.arange(scene.first_task, len(scene.row))
        stretch_of = np.full(len(recorded), -1, np.int64)
        stretch_of[scene.row[: scene.stretches]] = np.arange(scene.stretches)
        for _ in range(len(places) + 1):
            around = near[places]
            mend = (around >= 0) & self.changed[around]
            rows = scene.row[places[mend]]
            if not len(rows):
                return
            recorded["owner"][rows] = self.id[around[mend]]
            recorded["phase"][rows] = self.phase[around[mend]]
            recorded["flags"][rows] |= Flag.INFERRED
            target = stretch_of[rows]
            self.id[target] = self.id[around[mend]]
            self.phase[target] = self.phase[around[mend]]
            self.changed[target] = True
            places = places[~mend]

    def settle_rows(self, recorded: Rows, near: Ints) -> None:
        """The same for what was recorded inside such calls and tasks: calls, waits, dispatch.

        Chores and steps are nobody's, and a suspension is the suspended call's.
        """
        scene = self.scene
        first = np.full(len(recorded), -1, np.int64)
        upto = scene.stretches
        first[scene.row[:upto][::-1]] = np.arange(upto)[::-1]
        first[scene.row[scene.first_mark : scene.first_task]] = np.arange(
            scene.first_mark, scene.first_task
        )
        fixed = np.isin(recorded["kind"], (Kind.TASK, Kind.RUNTIME, Kind.STEP))
        fixed |= (recorded["kind"] == Kind.WAIT) & (recorded["flags"] & Flag.SUSPENDED != 0)
        mine = np.flatnonzero(~fixed & (first >= 0))
        around = near[first[mine]]
        mend = (around >= 0) & self.changed[around]
        rows, around = mine[mend], around[mend]
        recorded["owner"][rows] = self.id[around]
        recorded["flags"][rows] |= Flag.INFERRED
        waits = recorded["kind"][rows] != Kind.CALL
        recorded["phase"][rows[waits]] = self.phase[around[waits]]
