"""`join`: events and recorded rows together, as spans with owners, phases and links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.belonging import looking_through
from opscope.attribution.late.backward import Forward, forward_table
from opscope.attribution.late.device import launchers
from opscope.attribution.late.events import Customs, Events, Role, looked_up
from opscope.attribution.late.match import match
from opscope.attribution.late.nodes import Nodes, nodes
from opscope.attribution.late.scene import Causes, Scene
from opscope.attribution.late.widen import widen
from opscope.model import SPAN, Flag, Kind, LinkKind, Phase, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Link = tuple[int, int, int]

_KINDS = np.full(len(Role), Kind.OP, np.int8)
_KINDS[Role.RANGE] = Kind.RANGE
_KINDS[Role.STEP] = Kind.STEP
_KINDS[Role.WAIT] = Kind.WAIT
_KINDS[Role.DEVICE] = Kind.DEVICE


@dataclass(frozen=True, slots=True)
class Context:
    """What `join` needs besides events and rows.

    `new_ids(n)` gives n ids; `dispatch` is the name of a wrapper's time; `linked` are the ids of
    backward calls whose forward call is known already; `earlier` comes from the joins before.
    """

    customs: Customs
    new_ids: Callable[[int], Ints]
    dispatch: int = 0
    linked: frozenset[int] = frozenset()
    earlier: Forward = field(default_factory=Forward)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """New rows, and recorded ones that are to be told again under their id, as `model.SPAN`.

    `links` are (kind, source, target). `unattributed` counts device spans that nothing launched,
    `outside` those that a runtime call outside any operator launched. `forward` is what the next
    join has to know of this one's forward operators.
    """

    rows: Rows
    links: tuple[Link, ...]
    unattributed: int
    outside: int
    forward: Forward


def join(events: Events, recorded: Rows, context: Context) -> Joined:
    """Make spans of the events and give them owners.

    `recorded` are the rows the recorder took in the same time, open calls among them with the end
    they have so far. A hook's record wins over the events of the same call, and they become one
    span. Otherwise the owner of an event is the innermost call or task around it on its lane that
    was running then; a node of the backward graph belongs to the call that made it.
    """
    # Of events that begin together the longer is outside; else they stay as they came.
    events = events.take(np.lexsort((-events.end_ns, events.start_ns)))
    return _Join(events, recorded, context).done()


class _Join:
    """The steps of `join`. `folded` is the row of the recorded call that an event is part of."""

    def __init__(self, events: Events, recorded: Rows, context: Context) -> None:
        self.events = events
        self.told = recorded
        self.recorded = recorded.copy()
        self.context = context
        self.calls = np.flatnonzero(recorded["kind"] == Kind.CALL).astype(np.int64)
        found = match(events, recorded[self.calls], context.customs)
        self.outer = found.outer
        self.folded = np.full(len(events), -1, np.int64)
        self.folded[found.call >= 0] = self.calls[found.call[found.call >= 0]]
        self.wrapped = widen(
            events, self.recorded, self.calls, found.outer, context.new_ids, context.dispatch
        )
        self.scene = Scene(events, self.recorded, self.folded >= 0)
        self.ids = context.new_ids(len(events))
        self.outside = 0

    def done(self) -> Joined:
        scene, events = self.scene, self.events
        op = self._forward_ops()
        free = self.folded < 0
        scene.holder[scene.of_events] = op >= 0
        near = scene.near()
        # Tasks first: what ran in those of such a call may have made nodes.
        phase = self._call_phases()
        Causes(scene, self.recorded, self.ids, phase).settle_tasks(self.recorded, near)
        holder_id, holder_op = self._holders(op)
        table = self._forward_table(op, near, holder_id, holder_op)
        made = self.context.earlier.joined(table)
        named = looked_up(events.name, self.context.customs.backward)
        hooked = np.isin(events.name, np.array(sorted(self.context.customs.recorded), np.int64))
        back = nodes(events, named, free & ~hooked, made, scene, holder_id, near)
        runs = self._run_rows(back)

        scene.holder[scene.of_events] |= back.op >= 0
        near = scene.near()
        phase[back.op >= 0] = Phase.BACKWARD
        held = np.where(back.run >= 0, runs["id"][back.run] if len(runs) else 0, self.ids)
        causes = Causes(scene, self.recorded, held, phase)
        causes.settle_tasks(self.recorded, near)
        causes.settle_rows(self.recorded, near)
        rows = self._rows(op, back, phase, causes, near)
        self._place_runs(rows, runs, back)
        links = self._backward_links(back, held, made)
        launches, orphans = self._launch(rows, causes, near)
        changed = self.recorded[_differ(self.recorded, self.told)]
        return Joined(
            np.concatenate((changed, self.wrapped, rows[free], runs)),
            tuple(dict.fromkeys((*links, *launches))),
            orphans,
            self.outside,
            self.context.earlier.kept().joined(table),
        )

    def _forward_ops(self) -> Ints:
        """The operator that each event is a forward call of, by its name; -1: none.

        An operator that is entered again on the way to its function is one call, wrappers included.
        """
        events = self.events
        op = looked_up(events.name, self.context.customs.forward)
        op = np.where((events.role == Role.OP) & (self.folded < 0), op, -1)
        around = self._around(np.arange(len(events)))
        above = self._around(around)
        wrapper = events.role == Role.WRAPPER
        same = (around >= 0) & (op >= 0) & (op[around] == op)
        # The same operator again, on the other side of a wrapper.
        through = (above >= 0) & wrapper[around] & (events.name[above] == events.name)
        through &= (events.role == Role.OP) & (self.folded < 0)
        opened = np.zeros(len(events), bool)
        opened[around[through]] = True
        again = same | through | (wrapper & (opened | ((around >= 0) & (op[around] >= 0))))
        self.folded[again & (self.folded < 0)] = len(self.recorded)  # of no recorded row
        return np.where(again, -1, op)

    def _around(self, events: Ints) -> Ints:
        """The event right around each event, -1 where there is none or something recorded is."""
        scene = self.scene
        place = np.where(events >= 0, scene.parent[scene.stretches + events], -1)
        inside = (place >= scene.stretches) & (place < scene.first_mark)
        return np.where(inside, place - scene.stretches, -1)

    def _holders(self, op: Ints) -> tuple[Ints, Ints]:
        """For each place that holds: the id of its call and that call's operator; 0 and -1."""
        scene, recorded = self.scene, self.recorded
        row = scene.row[: scene.stretches]
        is_call = recorded["kind"][row] == Kind.CALL
        ids = np.zeros(len(scene.row), np.int64)
        ops = np.full(len(scene.row), -1, np.int64)
        ids[: scene.stretches] = np.where(is_call, recorded["id"][row], recorded["owner"][row])
        known = dict(
            zip(
                recorded["id"][self.calls].tolist(),
                recorded["name"][self.calls].tolist(),
                strict=True,
            )
        )
        own = op >= 0
        known.update(zip(self.ids[own].tolist(), op[own].tolist(), strict=True))
        ops[: scene.stretches] = looked_up(ids[: scene.stretches], known)
        ids[scene.of_events] = np.where(op >= 0, self.ids, 0)
        ops[scene.of_events] = op
        return ids, ops

    def _forward_table(self, op: Ints, near: Ints, ids: Ints, ops: Ints) -> Forward:
        """Every forward operator with the call it belongs to: itself, what it is part of, or the
        innermost call around it."""
        place = near[self.scene.of_events]
        call = np.where(place >= 0, ids[place], 0) if len(ids) else np.zeros(len(op), np.int64)
        whose = np.where(place >= 0, ops[place], -1) if len(ops) else call - 1
        call, whose = np.where(op >= 0, self.ids, call), np.where(op >= 0, op, whose)
        part = self._recorded_part()
        row = self.folded[part]
        call[part], whose[part] = self.recorded["id"][row], self.recorded["name"][row]
        return forward_table(self.events, call, whose)

    def _run_rows(self, back: Nodes) -> Rows:
        """One call for each run of nodes; owners come later."""
        member = np.flatnonzero(back.run >= 0)
        count = int(back.run.max(initial=-1)) + 1
        rows = np.zeros(count, SPAN)
        rows["id"] = self.context.new_ids(count)
        rows["kind"], rows["phase"], rows["flags"] = Kind.CALL, Phase.BACKWARD, Flag.INFERRED
        rows["cpu_ns"] = -1
        run = back.run[member]
        rows["name"][run] = back.op[member]
        rows["lane"][run] = rows["submitted_lane"][run] = self.events.lane[member]
        rows["start_ns"] = np.iinfo(np.int64).max
        # From the beginning to the end of what the backward engine did for its nodes.
        around = self.scene.parent[self.scene.stretches + member] - self.scene.stretches
        engine = (around >= 0) & (self.events.role[np.maximum(around, 0)] == Role.ENGINE)
        outer = np.where(engine, around, member)
        np.minimum.at(rows["start_ns"], run, self.events.start_ns[outer])
        np.maximum.at(rows["end_ns"], run, self.events.end_ns[outer])
        return rows

    def _place_runs(self, rows: Rows, runs: Rows, back: Nodes) -> None:
        """Put each run where its first node was, and the nodes into it."""
        member = np.flatnonzero(back.run >= 0)[::-1]
        runs["owner"][back.run[member]] = rows["owner"][member]
        rows["owner"][member] = runs["id"][back.run[member]]
        rows["flags"][member] |= Flag.INFERRED
        # What the engine did between the nodes, and for parameters, is the run's as well.
        host = rows["kind"] == Kind.OP
        for lane in np.unique(runs["lane"]).tolist():
            mine = np.sort(runs[runs["lane"] == lane], order="start_ns")
            event = np.flatnonzero(host & (rows["lane"] == lane))
            place = np.searchsorted(mine["start_ns"], rows["start_ns"][event], "right") - 1
            inside = (place >= 0) & (rows["end_ns"][event] <= mine["end_ns"][place])
            inside &= rows["owner"][event] == mine["owner"][place]
            rows["owner"][event[inside]] = mine["id"][place[inside]]
            rows["flags"][event[inside]] |= Flag.INFERRED

    def _call_phases(self) -> Ints:
        """The phase of each event if it is a forward call."""
        scene, events = self.scene, self.events
        again = np.zeros(len(scene.row), bool)
        row = scene.row[: scene.stretches]
        again[: scene.stretches] = self.recorded["phase"][row] == Phase.RECOMPUTE
        names = np.array(sorted(self.context.customs.again), np.int64)
        able = np.isin(events.role, (int(Role.NODE), int(Role.RANGE)))
        again[scene.of_events] = np.isin(events.name, names) & able
        phase = np.full(len(events), int(Phase.FORWARD), np.int64)
        if again.any():
            within = looking_through(scene.parent, ~again) >= 0
            phase[within[scene.of_events]] = Phase.RECOMPUTE
            # Marked functions know no phases of their own.
            plain = row[within[: scene.stretches]]
            plain = plain[self.recorded["kind"][plain] == Kind.CALL]
            plain = plain[self.recorded["phase"][plain] == Phase.NONE]
            self.recorded["phase"][plain] = Phase.RECOMPUTE
        return phase

    def _rows(self, op: Ints, back: Nodes, phase: Ints, causes: Causes, near: Ints) -> Rows:
        """A row for each event."""
        events, scene = self.events, self.scene
        rows = np.zeros(len(events), SPAN)
        rows["id"] = self.ids
        for column in ("name", "lane", "start_ns", "end_ns"):
            rows[column] = getattr(events, column)
        rows["submitted_lane"] = events.lane
        rows["cpu_ns"] = -1
        rows["kind"] = _KINDS[events.role]
        engine = np.isin(events.role, (int(Role.NODE), int(Role.ENGINE)))
        also = np.zeros(len(scene.row), bool)
        also[scene.of_events] = engine
        around = near[scene.of_events]
        nearest = scene.near(also)[scene.of_events]
        rows["owner"] = np.where(around >= 0, causes.id[around], 0)
        held = (nearest >= 0) & scene.holder[nearest]
        rows["phase"] = np.where(
            held, causes.phase[nearest], np.where(nearest >= 0, Phase.BACKWARD, Phase.NONE)
        )
        rows["phase"][engine] = Phase.BACKWARD
        rows["owner"][events.role == Role.STEP] = 0
        single = (op >= 0) | ((back.op >= 0) & (back.run < 0))
        rows["kind"][single] = Kind.CALL
        rows["name"][single] = np.where(op >= 0, op, back.op)[single]
        rows["phase"][single] = phase[single]
        rows["flags"] = np.where((rows["owner"] != 0) | single, int(Flag.INFERRED), 0)
        return rows

    def _backward_links(self, back: Nodes, held: Ints, made: Forward) -> list[Link]:
        """From backward calls to their forward calls, where it is not known already."""
        kind = int(LinkKind.BACKWARD)
        some = np.flatnonzero((back.op >= 0) & (back.forward > 0))
        pairs = zip(held[some].tolist(), back.forward[some].tolist(), strict=True)
        links = [(kind, source, target) for source, target in pairs]
        ids = self.recorded["id"][self.calls]
        backward = self.recorded["phase"][self.calls] == Phase.BACKWARD
        known = np.isin(ids, np.array(sorted(self.context.linked), np.int64))
        open_ = np.flatnonzero(backward & (self.outer >= 0) & ~known)
        entry = made.made(self.events, self.outer[open_])
        for call, found in zip(ids[open_].tolist(), entry.tolist(), strict=True):
            if found >= 0 and made.call[found]:
                links.append((kind, call, int(made.call[found])))
        return links

    def _launch(self, rows: Rows, causes: Causes, near: Ints) -> tuple[list[Link], int]:
        """Give device work to whoever owns what launched it."""
        device, host = launchers(self.events)
        rows["owner"][device] = 0
        rows["phase"][device] = Phase.NONE
        rows["flags"][device] = 0
        have = host >= 0
        work, by = device[have], host[have]
        place = self.scene.stretches + by
        holds = self.scene.holder[place]
        rows["owner"][work] = np.where(holds, causes.id[place], rows["owner"][by])
        rows["phase"][work] = rows["phase"][by]
        part = self._recorded_part()[by]
        rows["owner"][work[part]] = self.recorded["id"][self.folded[by[part]]]
        rows["phase"][work[part]] = self.recorded["phase"][self.folded[by[part]]]
        rows["flags"][work] = np.where(rows["owner"][work] != 0, int(Flag.INFERRED), 0)
        rows["submitted_ns"][work] = rows["start_ns"][by]
        rows["submitted_lane"][work] = rows["lane"][by]
        # The link starts at the operator that made the runtime call, where there is one.
        api = np.isin(self.events.role, (int(Role.API), int(Role.WAIT)))
        clear = api | np.isin(self.events.role, (int(Role.RANGE), int(Role.STEP)))
        through = np.zeros(len(self.scene.parent), bool)
        through[self.scene.of_events] = clear
        around = looking_through(self.scene.parent, through)[place] - self.scene.stretches
        event = (around >= 0) & (around < len(rows))
        self.outside = int((api[by] & ~event).sum())
        source = np.where(event & api[by], around, by)
        ids = self._shown_ids(near, causes)[source]
        kind = int(LinkKind.LAUNCH)
        pairs = zip(ids.tolist(), rows["id"][work].tolist(), strict=True)
        return [(kind, s, t) for s, t in pairs], int((~have).sum())

    def _shown_ids(self, near: Ints, causes: Causes) -> Ints:
        """The id under which each event is shown: its own, or that of the call it is part of."""
        part = self._recorded_part()
        ids: Ints = self.ids.copy()
        ids[part] = self.recorded["id"][self.folded[part]]
        again = np.flatnonzero((self.folded >= 0) & ~part)
        ids[again] = causes.id[near[self.scene.stretches + again]]
        return ids

    def _recorded_part(self) -> Bools:
        """Which events are part of a recorded call."""
        return (self.folded >= 0) & (self.folded < len(self.recorded))


def _differ(left: Rows, right: Rows) -> Bools:
    differ = np.zeros(len(left), bool)
    for column in ("owner", "phase", "flags", "start_ns", "end_ns"):
        differ |= left[column] != right[column]
    return differ
