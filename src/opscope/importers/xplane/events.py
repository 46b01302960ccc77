"""The events of one plane of an XLA trace, with the part that each plays; see `xplane`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import looking_through, nest
from opscope.attribution.late import Events, Role
from opscope.importers.building import Builder
from opscope.importers.xplane.hlo import target_in
from opscope.importers.xplane.names import (
    HOSTS,
    INSTRUCTIONS,
    MODULES,
    Operators,
    is_device,
    meaning,
    work_lines,
)
from opscope.importers.xplane.protobuf import Ints
from opscope.importers.xplane.xspace import Plane
from opscope.model import SPAN

Bools = NDArray[np.bool_]

#: Times beyond this are no times. Nanoseconds since 1970 are below it until 2043.
FAR = 2**61
#: Stats that XLA writes and a user's annotation has not.
_XLAS = (
    *("_src", "_p", "_c", "_pt", "_ct", "hlo_op", "hlo_module", "program_id", "run_id"),
    *("device_ordinal", "correlation_id", "context_id"),
)


class Table:
    """The events of one plane on their way to columns."""

    def __init__(
        self, plane: Plane, number: int, builder: Builder, operators: Operators, chores: set[int]
    ) -> None:
        self.plane = plane
        self.builder = builder
        self.operators = operators
        self.chores = chores
        self.device = is_device(plane.name)
        self.lane = self._lanes(number)
        distinct, place, many = np.unique(plane.kind, return_inverse=True, return_counts=True)
        self.place: Ints = place.reshape(-1).astype(np.int64)
        self.kinds: list[int] = distinct.tolist()
        self.texts = [self._text(*one) for one in zip(self.kinds, many.tolist(), strict=True)]
        self.name = np.array([builder.name(text) for text in self.texts], np.int64)[self.place]
        self.duration = plane.duration_ps.copy()
        self.external: Ints = plane.integers("run_id")[0]
        self.correlation: Ints = plane.integers("correlation_id")[0]

    def events(self) -> Events:
        """The columns, by line and start; of events that begin together the longer first."""
        plane, builder = self.plane, self.builder
        if self.device:
            role = self._on_device()
        elif plane.name in HOSTS:
            role = self._on_threads()
        else:
            role = np.full(len(plane), int(Role.RANGE), np.int64)
            builder.quality.count(
                "events on planes of an unknown kind (kept as annotations)",
                len(plane),
                [plane.name],
            )
        start, end = self._times()
        order = _order(plane.line, plane.offset_ps, self.duration)
        order = order[plane.timed[order]]
        builder.quality.count(
            "sums over many events, which have no time of their own (left out)",
            len(plane) - len(order),
        )
        none = np.zeros(len(order), np.int64)
        lane = self.lane[plane.line[order]]
        return Events(
            name=self.name[order],
            lane=lane,
            start_ns=start[order],
            end_ns=end[order],
            role=role[order],
            thread=lane,
            forward_thread=none,
            sequence=none - 1,
            correlation=self.correlation[order],
            external=self.external[order],
        )

    def _lanes(self, number: int) -> Ints:
        lanes = []
        for line in self.plane.lines:
            name = line.name or f"line {line.id}"
            if self.plane.name not in HOSTS:
                name = f"{self.plane.name} {name}"
            # Newer files have hashes where there were the system's numbers of threads.
            thread = line.id if 0 < line.id < 2**31 and not self.device else 0
            kind = "stream" if self.device else "thread"
            lanes.append(self.builder.lane((number, line.id, name), name, kind, thread=thread))
        return np.array(lanes, np.int64)

    def _text(self, kind: int, count: int) -> str:
        known = self.plane.metadata.get(kind)
        if known is None or not (known.name or known.display):
            self.builder.quality.count("events whose name the file does not hold", count, [kind])
            return f"event {kind}"
        return known.display or known.name

    def _times(self) -> tuple[Ints, Ints]:
        plane, quality = self.plane, self.builder.quality
        quality.count("events that end before they begin (taken to end at once)",
                      int((plane.duration_ps < 0).sum()))  # fmt: skip
        stamp = np.array([line.timestamp_ns for line in plane.lines], np.int64)
        wild = (stamp > FAR) | (stamp < -FAR)
        stamp[wild] = 0
        offset = np.clip(plane.offset_ps, -FAR, FAR)
        duration = np.clip(self.duration, 0, FAR)
        odd = wild[plane.line] | (offset != plane.offset_ps) | (self.duration > FAR)
        quality.count("events at impossible times (moved)", int(odd.sum()))
        base = stamp[plane.line]
        return base + _whole_ns(offset), base + _whole_ns(offset + duration)

    # ---- threads

    def _on_threads(self) -> Ints:
        plane = self.plane
        meanings = [meaning(text) for text in self.texts]

        def told(what: str) -> Bools:
            flags: Bools = np.array([getattr(one, what) for one in meanings], bool)[self.place]
            return flags

        for text, one in zip(self.texts, meanings, strict=True):
            if one.chore:
                self.chores.add(self.builder.name(text))
        role = np.array([one.role for one in meanings], np.int64)[self.place]
        self._stretch_awaits(told("awaits"))
        role[self._repeated(told("jitted"))] = Role.RANGE
        role[(role == Role.OP) & plane.have("correlation_id") & ~told("chore")] = Role.API
        calls = self._custom()
        steps, number = self._steps()
        role[steps] = Role.STEP
        maybe = told("maybe") & ~steps & (calls < 0) & ~plane.have(*_XLAS)
        pool = np.array([line.name.startswith("tf_") for line in plane.lines], bool)
        maybe &= ~pool[plane.line]
        python = np.isin(calls, np.array(sorted(self.operators.python), np.int64))
        clear = maybe | steps | (role == Role.RANGE)
        role[self._where_python_runs(maybe, clear, told("open") | python)] = Role.RANGE
        role[calls >= 0] = Role.OP
        self.name = np.where(calls >= 0, calls, self.name)
        self._name_steps(np.flatnonzero(steps), number)
        return role

    def _stretch_awaits(self, awaits: Bools) -> None:
        """A wait is two marks, joined by a number: let the first reach to the end of the second."""
        plane = self.plane
        if not awaits.any():
            return
        given, gives = plane.integers("_p")
        taken, takes = plane.integers("_c")
        first, second = np.flatnonzero(awaits & gives), np.flatnonzero(awaits & takes)
        first = first[np.argsort(given[first], kind="stable")]
        place = np.searchsorted(given[first], taken[second])
        inside = place < len(first)
        second, place = second[inside], place[inside]
        first = first[place]
        same = (given[first] == taken[second]) & (plane.line[first] == plane.line[second])
        same &= plane.offset_ps[second] >= plane.offset_ps[first]
        first, second = first[same], second[same]
        end = plane.offset_ps[second] + plane.duration_ps[second]
        self.duration[first] = end - plane.offset_ps[first]

    def _repeated(self, jitted: Bools) -> Ints:
        """Calls of jitted functions are told twice, one event right inside the other: the second
        of each two."""
        plane = self.plane
        order = _order(plane.line, plane.offset_ps, self.duration)
        end = plane.offset_ps + self.duration
        one, two = order[:-1], order[1:]
        again = np.zeros(len(order), bool)
        again[1:] = (
            jitted[two]
            & (plane.kind[one] == plane.kind[two])
            & (plane.line[one] == plane.line[two])
            & (end[one] >= end[two])
        )
        since = np.arange(len(order)) - np.maximum.accumulate(
            np.where(again, 0, np.arange(len(order)))
        )
        repeated: Ints = order[since % 2 == 1]
        return repeated

    def _custom(self) -> Ints:
        """The entry of the operator that each event is a call of, -1: none."""
        plane, operators = self.plane, self.operators
        by_kind = [operators.chosen(text) for text in self.texts]
        calls = np.array(by_kind, np.int64)[self.place]
        found, texts = plane.texts("hlo_op")
        inside = found >= 0
        wanted = operators.instructions()
        may = [text in wanted or operators.looks_custom(text) for text in texts]
        may_be = np.append(np.array(may, bool), False)[found]
        if may_be.any():
            module, modules = plane.texts("hlo_module")
            program, _ = plane.integers("program_id")
            event = np.flatnonzero(may_be & (calls < 0))
            keys = np.stack((program[event], found[event], module[event]), 1)
            distinct, place = np.unique(keys, axis=0, return_inverse=True)
            ops = [
                operators.of_instruction(one, texts[op], modules[which] if which >= 0 else "")
                for one, op, which in distinct.tolist()
            ]
            calls[event] = np.array(ops, np.int64)[place.reshape(-1)]
        bare = np.array([operators.looks_custom(text) for text in self.texts], bool)[self.place]
        bare &= (calls < 0) & ~inside
        for place in np.unique(self.place[bare]).tolist():
            calls[bare & (self.place == place)] = operators.of_name(self.texts[place])
        return calls

    def _steps(self) -> tuple[Bools, Ints]:
        number, have = self.plane.integers("step_num")
        return have, number

    def _name_steps(self, steps: Ints, number: Ints) -> None:
        keys = np.stack((self.name[steps], number[steps]), 1)
        distinct, place = np.unique(keys, axis=0, return_inverse=True)
        names = [
            self.builder.name(f"{self.builder.names[name]} {step}")
            for name, step in distinct.tolist()
        ]
        self.name[steps] = np.array(names, np.int64)[place.reshape(-1)]

    def _where_python_runs(self, maybe: Bools, clear: Bools, open_: Bools) -> Ints:
        """Of the events that may be annotations those that lie in nothing, or in what is open."""
        plane = self.plane
        if not maybe.any():
            return np.empty(0, np.int64)
        lines = np.zeros(len(plane.lines), bool)
        lines[plane.line[maybe]] = True
        event = np.flatnonzero(lines[plane.line])
        around = looking_through(self._parents(event), clear[event])
        runs = (around < 0) | open_[event[around]]
        return event[maybe[event] & runs]

    def _parents(self, event: Ints) -> Ints:
        """For each of the events which of them is right around it, -1: none."""
        table = np.zeros(len(event), SPAN)
        table["id"] = np.arange(len(event))
        table["lane"] = self.plane.line[event]
        table["start_ns"] = np.clip(self.plane.offset_ps[event], -FAR, FAR)
        table["end_ns"] = table["start_ns"] + np.clip(self.duration[event], 0, FAR)
        return nest(table).parent

    # ---- devices

    def _on_device(self) -> Ints:
        plane = self.plane
        names = [line.name for line in plane.lines]
        work = np.array(work_lines(names), bool)[plane.line]
        role = np.where(work, int(Role.DEVICE), int(Role.RANGE)).astype(np.int64)
        layered = work & np.array([name in INSTRUCTIONS for name in names], bool)[plane.line]
        if layered.any():
            role[layered & self._contains(layered)] = Role.RANGE
            self._runs_of_modules(names, layered)
            calls = self._custom_instructions()
            called = layered & (calls >= 0)
            role[called] = Role.OP
            self.name = np.where(called, calls, self.name)
        return role

    def _contains(self, layered: Bools) -> Bools:
        """Which instructions lie around others: loops, conditions, calls."""
        event = np.flatnonzero(layered)
        parent = self._parents(event)
        found = np.zeros(len(self.plane), bool)
        found[event[parent[parent >= 0]]] = True
        return found

    def _runs_of_modules(self, names: list[str], layered: Bools) -> None:
        """Instructions have the number of the run of the program around them."""
        plane = self.plane
        modules = np.array([name in MODULES for name in names], bool)[plane.line]
        module = np.flatnonzero(modules & (self.external != 0))
        event = np.flatnonzero(layered & (self.external == 0))
        if not len(module) or not len(event):
            return
        stamp = np.array([line.timestamp_ns for line in plane.lines], np.int64)[plane.line]
        start = stamp + _whole_ns(plane.offset_ps)
        end = stamp + _whole_ns(plane.offset_ps + self.duration)
        module = module[np.argsort(start[module], kind="stable")]
        place = np.searchsorted(start[module], start[event], "right") - 1
        around = module[np.maximum(place, 0)]
        inside = (place >= 0) & (end[around] >= end[event])
        self.external[event[inside]] = self.external[around[inside]]

    def _custom_instructions(self) -> Ints:
        plane, operators = self.plane, self.operators
        found = []
        for kind, text in zip(self.kinds, self.texts, strict=True):
            known = plane.metadata.get(kind)
            entry = operators.chosen(text)
            if known is not None and entry < 0:
                program = known.stats.get("program_id", -1)
                program = program if isinstance(program, int) else -1
                target = target_in(known.name)
                entry = operators.of_instruction(program, text, target=target)
            found.append(entry)
        return np.array(found, np.int64)[self.place]


def _order(line: Ints, start: Ints, duration: Ints) -> Ints:
    """By line, start, and the longer first. Files are usually in this order already."""
    if not len(line):
        return np.empty(0, np.int64)
    step, later = np.diff(line), np.diff(start)
    tie = (step == 0) & (later == 0) & (np.diff(duration) > 0)
    if (step >= 0).all() and not (((step == 0) & (later < 0)) | tie).any():
        return np.arange(len(line), dtype=np.int64)
    order: Ints = np.lexsort((-duration, start, line)).astype(np.int64)
    return order


def _whole_ns(ps: Ints) -> Ints:
    """Picoseconds to nanoseconds, half to even: what began first still does."""
    ns, rest = np.divmod(ps, 1000)
    whole: Ints = ns + ((rest > 500) | ((rest == 500) & (ns % 2 == 1)))
    return whole
