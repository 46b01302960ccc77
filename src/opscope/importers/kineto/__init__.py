"""PyTorch's traces (Kineto's JSON), of every vintage and vendor."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import compress
from operator import attrgetter
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late import Events, Role
from opscope.importers.building import Builder
from opscope.importers.documents import Document
from opscope.importers.kineto.names import DEVICE_RANGE, finer_roles, roles_of, told_by_names
from opscope.importers.opening import LOOK
from opscope.importers.quality import PLACES
from opscope.importers.stamps import EXACT_US, MOST_US, known_floats, known_texts
from opscope.model import Session

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Stamp = Annotated[float, msgspec.Meta(ge=-MOST_US, le=MOST_US)]

UNTIMED = "events without a time (left out)"
ENDLESS = "durations that are none (taken as 0)"
TWICE = "duplicate ids (the first counts)"
NEGATIVE = "negative durations (taken as 0)"

# None of these can be part of a cycle, and the garbage collector would go through them block by
# block: without it decoding takes a third less.


class Args(msgspec.Struct, frozen=True, gc=False):
    """What of an event's arguments tables and joins need."""

    external: _Number = msgspec.field(name="External id", default=0)
    older: _Number = msgspec.field(name="external id", default=0)
    correlation: _Number = 0
    sequence: _Number = msgspec.field(name="Sequence number", default=-1)
    forward: _Number = msgspec.field(name="Fwd thread id", default=-1)
    name: str = ""


_NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event with its stamps as doubles."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: _Stamp = float("nan")
    dur: _Stamp = 0.0
    id: int | str = 0
    args: Args = _NO_ARGS


class Exact(msgspec.Struct, gc=False):
    """The same with its stamps as text: they count from 1970, or are strings."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"0")
    id: int | str = 0
    args: Args = _NO_ARGS


def read(stream: BinaryIO, builder: Builder, head: bytes = b"") -> Session:
    """The session of one trace; `head` is the beginning of the file. Never raises for content."""
    kind: Any = Exact if _needs_text(head) else Event
    document = Document(stream, builder.quality)
    columns = _Columns(builder)
    for batch in document.batches(kind):
        columns.take(batch)
    events = columns.events()
    customs = told_by_names(builder, events)
    rows = builder.joined(events, customs)
    first_ns = int(rows["start_ns"].min()) if len(rows) else 0
    return builder.session(
        rows,
        sees=("calls", "sub-operators", "ranges", "backward", "device"),
        misses={
            "cpu": "the file holds no CPU time: what an operator did itself is untracked",
            "dispatch": "the file does not tell an operator's function from the wrapper around it",
            "tasks": "the file does not say which call handed work to another thread",
        },
        version=_version(document.other),
        wall_ns=_base(document.other.get("baseTimeNanoseconds"), first_ns),
        damage=document.damage,
        notes=_notes(document.other),
    )


_STAMP = re.compile(rb'"ts"\s*:\s*("?)(\d+)')
_SLICE = re.compile(rb'"ph"\s*:\s*"X"')


def _needs_text(head: bytes) -> bool:
    """Whether doubles would lose digits of the stamps; also where the head tells of none yet."""
    found = _STAMP.findall(head)
    large = any(quote or len(digits) > 15 or int(digits) >= EXACT_US for quote, digits in found)
    return large or (len(head) >= LOOK and _SLICE.search(head) is None)


def _base(told: Any, first_ns: int) -> int | None:
    """The wall-clock time of the stamps' zero, in ns; None where the file does not say."""
    if isinstance(told, str) and told.isascii() and told.isdigit():
        told = int(told)
    if isinstance(told, int) and not isinstance(told, bool) and 0 < told < 2**62:
        return told
    # Without a base large stamps count from 1970.
    return 0 if told is None and first_ns >= EXACT_US * 1000 else None


def _version(other: dict[str, Any]) -> str:
    schema = other.get("schemaVersion")
    return f"schema {schema}" if schema is not None else ""


def _notes(other: dict[str, Any]) -> list[str]:
    info = other.get("distributedInfo")
    if isinstance(info, dict) and "rank" in info:
        return [f"rank {info['rank']} of {info.get('world_size', '?')}"]
    return []


class _Numbers(dict[Any, int]):
    """A number for each key, found by `find` when a key is met first."""

    def __init__(self, find: Callable[[Any], int]) -> None:
        self._find = find

    def __missing__(self, key: Any) -> int:
        number = self[key] = self._find(key)
        return number

    def of(self, keys: Iterable[Any], count: int) -> Ints:
        return np.fromiter(map(self.__getitem__, keys), np.int64, count)


class _Column:
    """Numbers that become more. They stay where they are: a copy at the end would need as much
    memory again, and to touch that takes longer than to fill it."""

    def __init__(self) -> None:
        self._numbers = np.empty(1 << 14, np.int64)
        self._count = 0

    def add(self, numbers: Ints) -> None:
        count = self._count + len(numbers)
        if count > len(self._numbers):
            self._numbers.resize(count + (count >> 3), refcheck=False)
        self._numbers[self._count : count] = numbers
        self._count = count

    def taken(self) -> Ints:
        """All of them, which are let go."""
        numbers, self._numbers = self._numbers, np.empty(0, np.int64)
        numbers.resize(self._count, refcheck=False)
        self._count = 0
        return numbers


#: Name, lane, start, end, role, and the five of `_NUMBERS` as four.
_COLUMNS = 9
_NUMBERS = tuple(map(attrgetter, ("forward", "sequence", "correlation", "external", "older")))
_ARGS, _NAME, _CATEGORY = map(attrgetter, ("args", "name", "cat"))
_TS, _DUR, _THREAD = attrgetter("ts"), attrgetter("dur"), attrgetter("pid", "tid")
#: Arrows are looked at by category; they are no events by themselves.
_ARROWS = frozenset("stf")


class _Columns:
    """Columns of the slices of all batches."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.columns = [_Column() for _ in range(_COLUMNS)]
        self.flows: list[tuple[Ints, ...]] = []
        self.names = _Numbers(builder.name)
        self.roles = _Numbers(roles_of)
        self.threads = _Numbers(self._lane)
        self.titles: dict[tuple[Any, Any], str] = {}
        self.left_out: dict[str, int] = {}
        self.seen = 0

    def take(self, batch: list[Any]) -> None:
        """Add one batch."""
        slices = [event for event in batch if event.ph == "X"]
        if len(slices) != len(batch):
            self._others([event for event in batch if event.ph != "X"])
        role = self.roles.of(map(_CATEGORY, slices), len(slices))
        if (gone := role < 0).any():
            for place in np.flatnonzero(gone).tolist():
                self._leave_out(slices[place].cat)
            slices, role = _chosen(slices, ~gone), role[~gone]
        start, timed = _nanoseconds(slices, _TS)
        if not timed.all():
            self._tell(UNTIMED, batch, _chosen(slices, ~timed))
            slices, role, start = _chosen(slices, timed), role[timed], start[timed]
        if slices:
            self._add(batch, slices, role, start)
        self.seen += len(batch)

    def _add(self, batch: list[Any], slices: list[Any], role: Ints, start: Ints) -> None:
        count = len(slices)
        length, known = _nanoseconds(slices, _DUR)
        if not known.all():
            self._tell(ENDLESS, batch, _chosen(slices, ~known))
        if (negative := length < 0).any():
            self._tell(NEGATIVE, batch, _chosen(slices, negative))
        args = list(map(_ARGS, slices))
        forward, sequence, correlation, external, older = (
            np.fromiter(map(number, args), np.int64, count) for number in _NUMBERS
        )
        part = (
            self.names.of(map(_NAME, slices), count),
            self.threads.of(map(_THREAD, slices), count),
            start,
            start + np.maximum(length, 0),
            role,
            forward,
            sequence,
            correlation,
            np.where(external == 0, older, external),
        )
        for column, numbers in zip(self.columns, part, strict=True):
            column.add(numbers)

    def _tell(self, what: str, batch: list[Any], odd: list[Any]) -> None:
        """The place of an event is its number in the file."""
        first = {id(event) for event in odd[:PLACES]}
        places = [self.seen + at for at, event in enumerate(batch) if id(event) in first]
        self.builder.quality.count(what, len(odd), places)

    def _leave_out(self, what: str) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def _lane(self, key: tuple[Any, Any]) -> int:
        _, tid = key
        number = tid if isinstance(tid, int) and 0 <= tid < 2**31 else 0
        return self.builder.lane(key, f"thread {tid}", thread=number)

    def _others(self, events: list[Any]) -> None:
        flows = [event for event in events if event.cat == "fwdbwd" and event.ph in "sf"]
        if flows:
            start, timed = _nanoseconds(flows, _TS)
            flows, start = _chosen(flows, timed), start[timed]
            self.flows.append(
                (
                    np.array([hash(event.id) for event in flows], np.int64),
                    np.array([event.ph == "s" for event in flows], np.int64),
                    self.threads.of(map(_THREAD, flows), len(flows)),
                    start,
                )
            )
        for event in [event for event in events if event.ph not in _ARROWS]:
            if event.ph != "M":
                self._leave_out(event.cat or f"events of phase {event.ph or '?'}")
            elif event.name == "thread_name" and event.args.name:
                self.titles[event.pid, event.tid] = event.args.name

    def events(self) -> Events:
        """All of them. What was left out is counted."""
        builder = self.builder
        for what, number in self.left_out.items():
            builder.quality.count(f"events left out: {what}", number)
        for key, title in self.titles.items():
            if key in self.threads:
                builder.rename_lane(self.threads[key], title)
        name, lane, start, end, role, forward, sequence, correlation, external = (
            column.taken() for column in self.columns
        )
        if not len(name):
            return Events(*(np.empty(0, np.int64) for _ in range(10)))
        role = _finer(role, name, builder, forward)
        for stream in np.unique(lane[role == Role.DEVICE]).tolist():
            old = builder.lanes[stream]
            builder.lanes[stream] = type(old)(
                old.name.replace("thread", "stream"), "stream", old.process, old.thread
            )
        host = ~np.isin(role, (int(Role.DEVICE), int(Role.API), int(Role.WAIT)))
        api = np.isin(role, (int(Role.API), int(Role.WAIT)))
        self._count_twice(name, correlation, api)
        self._count_twice(name, external, host & (role != Role.RANGE) & (role != Role.STEP))
        return Events(
            name=name,
            lane=lane,
            start_ns=start,
            end_ns=end,
            role=role,
            thread=lane,
            forward_thread=self._forward_lanes(lane, start, role, forward, sequence),
            sequence=sequence,
            correlation=np.where(host, 0, correlation),
            external=external,
        )

    def _count_twice(self, name: Ints, number: Ints, among: Bools) -> None:
        """Count the numbers that several of those events have."""
        rows = np.flatnonzero(among & (number != 0))
        order = rows[np.argsort(number[rows], kind="stable")]
        again = order[1:][number[order[1:]] == number[order[:-1]]]
        places = [self.builder.names[entry] for entry in name[again[:PLACES]].tolist()]
        self.builder.quality.count(TWICE, len(again), places)

    def _forward_lanes(
        self, lane: Ints, start: Ints, role: Ints, forward: Ints, sequence: Ints
    ) -> Ints:
        """The lane on which each node's forward operator ran.

        Nodes name their forward thread by a number of torch's own; arrows from forward to backward
        tell which lane that is, else it is the lane with most numbered operators.
        """
        lanes = np.full(len(lane), -1, np.int64)
        numbered = (sequence >= 0) & (role == Role.OP)
        usual = int(np.bincount(lane[numbered]).argmax()) if numbered.any() else -1
        nodes = np.flatnonzero(role == Role.NODE)
        lanes[nodes] = usual
        if not self.flows:
            return lanes
        key, begins, at, when = (np.concatenate(part) for part in zip(*self.flows, strict=True))
        tails, heads = np.flatnonzero(begins), np.flatnonzero(begins == 0)
        tail = _last(key[tails], key[heads])
        # Of nodes and heads of arrows alike: one number for each lane and time.
        moment = np.unique(np.concatenate((start[nodes], when[heads])), return_inverse=True)[1]
        place = moment.reshape(-1) * len(self.builder.lanes)
        place += np.concatenate((lane[nodes], at[heads]))
        head = _last(place[len(nodes) :], place[: len(nodes)])
        led = (head >= 0) & (tail[head] >= 0) if len(heads) else np.zeros(len(nodes), bool)
        number = forward[nodes]
        known, first = np.unique(number[led], return_index=True)
        mine = _last(known, number)
        came = at[tails[tail[head[led][first]]]]
        lanes[nodes[mine >= 0]] = came[mine[mine >= 0]]
        return lanes


def _last(keys: Ints, wanted: Ints) -> Ints:
    """The place of the last of `keys` that is the wanted one, -1 where there is none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    place = order[np.maximum(np.searchsorted(keys[order], wanted, "right") - 1, 0)]
    found: Ints = np.where(keys[place] == wanted, place, -1)
    return found


def _chosen(events: list[Any], which: Bools) -> list[Any]:
    return list(compress(events, which.tolist()))


def _nanoseconds(events: list[Any], stamp: Callable[[Any], Any]) -> tuple[Ints, Bools]:
    """One stamp of each event, and which of them there are; 0 for the others."""
    if events and isinstance(events[0], Exact):
        return known_texts(list(map(stamp, events)))
    return known_floats(np.fromiter(map(stamp, events), np.float64, len(events)))


def _finer(role: Ints, name: Ints, builder: Builder, forward: Ints) -> Ints:
    """Roles of operators by their names: nodes, engine, wrappers, steps, waits."""
    of_op, of_range, of_api = np.array([finer_roles(text) for text in builder.names], np.int64).T
    wanted = np.array([builder.options.chosen(text) for text in builder.names])
    chosen = wanted[name]
    role = np.where(role == Role.OP, of_op[name], role)
    role = np.where((role == Role.RANGE) & ~chosen, of_range[name], role)
    role = np.where(chosen & (role == Role.RANGE), int(Role.OP), role)
    role = np.where(role == Role.API, of_api[name], role)
    role = np.where(role == DEVICE_RANGE, int(Role.RANGE), role)
    told = (role == Role.OP) & (forward > 0)
    return np.where(told, int(Role.NODE), role)
