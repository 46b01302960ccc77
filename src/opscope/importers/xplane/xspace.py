"""XSpace, XPlane, XLine, XEvent, XStat: the messages of an `*.xplane.pb` as columns.

The numbers are those of tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opscope.importers.xplane.protobuf import BYTES, FIXED64, VARINT, Field, Ints, Wire

# Fields of XSpace.
_PLANES, _ERRORS, _WARNINGS, _HOSTNAMES = 1, 2, 3, 4
# Fields of XPlane.
_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _STATS = 2, 3, 4, 5, 6
# Fields of XStat that hold a value.
DOUBLE, UINT64, INT64, STR, RAW, REF = 2, 3, 4, 5, 6, 7

Value = int | float | str | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What all events of one kind share. Of stats that are bytes the place is told."""

    name: str
    display: str = ""
    stats: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """A timeline. Its events count from `timestamp_ns`."""

    id: int
    name: str
    timestamp_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """One entry a stat: the event it is of, what it is called (an entry of `stat_names`), how it
    is written (`DOUBLE` ... `REF`), and the value, as `protobuf.Field` says."""

    event: Ints
    name: Ints
    kind: Ints
    value: Ints
    end: Ints


@dataclass(eq=False)
class Plane:
    """One plane. The event columns have one entry an event, in the order of the file.

    `line` is an index into `lines`; times are picoseconds; an event that is not `timed` is a sum
    over many and has no time of its own.
    """

    wire: Wire
    name: str = ""
    lines: list[Line] = field(default_factory=list)
    metadata: dict[int, Metadata] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: dict[str, Value] = field(default_factory=dict)
    line: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    kind: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    offset_ps: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    duration_ps: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    timed: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    event_stats: Stats = field(default_factory=lambda: Stats(*(np.empty(0, np.int64),) * 5))

    def __len__(self) -> int:
        return len(self.kind)

    def stat_ids(self, *names: str) -> Ints:
        """The entries of the stats that are called so."""
        found = [number for number, name in self.stat_names.items() if name in names]
        return np.array(found, np.int64)

    def integers(self, name: str) -> tuple[Ints, NDArray[np.bool_]]:
        """The whole-number stat of that name of each event, and which events have it."""
        stats = self.event_stats
        value, have = np.zeros(len(self), np.int64), np.zeros(len(self), bool)
        mine = np.isin(stats.name, self.stat_ids(name))
        mine &= (stats.kind == UINT64) | (stats.kind == INT64)
        value[stats.event[mine]] = stats.value[mine]
        have[stats.event[mine]] = True
        return value, have

    def texts(self, name: str) -> tuple[Ints, list[str]]:
        """For each event which text its stat of that name is (-1: it has none), and the texts."""
        stats, texts = self.event_stats, dict[str, int]()
        found = np.full(len(self), -1, np.int64)
        mine = np.isin(stats.name, self.stat_ids(name))
        refs = np.flatnonzero(mine & (stats.kind == REF))
        distinct, place = np.unique(stats.value[refs], return_inverse=True)
        entry = [
            texts.setdefault(self.stat_names.get(ref, ""), len(texts)) for ref in distinct.tolist()
        ]
        found[stats.event[refs]] = np.array(entry, np.int64)[place.reshape(-1)]
        plain = np.flatnonzero(mine & (stats.kind == STR))
        triples = zip(
            *(column[plain].tolist() for column in (stats.event, stats.value, stats.end)),
            strict=True,
        )
        for event, start, end in triples:
            found[event] = texts.setdefault(self.wire.text(start, end), len(texts))
        return found, list(texts)

    def have(self, *names: str) -> NDArray[np.bool_]:
        """Which events have a stat of one of the names."""
        found = np.zeros(len(self), bool)
        found[self.event_stats.event[np.isin(self.event_stats.name, self.stat_ids(*names))]] = True
        return found

    def read_stats(self, places: list[tuple[int, int]]) -> dict[str, Value]:
        """The stats at those places, of a plane or of metadata, by their names."""
        found: dict[str, Value] = {}
        for start, stop in places:
            told = {number: one for number, *one in self.wire.fields(start, stop)}
            for kind, (wire, value, end) in told.items():
                name = self.stat_names.get(told[1][1] if 1 in told else 0)
                if name is None or kind == 1:
                    continue
                if wire == VARINT and kind in (UINT64, INT64):
                    found[name] = value
                elif wire == VARINT and kind == REF:
                    found[name] = self.stat_names.get(value, "")
                elif wire == BYTES and kind == STR:
                    found[name] = self.wire.text(value, end)
                elif wire == BYTES and kind == RAW:
                    found[name] = (value, end)
                elif wire == FIXED64 and kind == DOUBLE:
                    found[name] = float(np.int64(value).view(np.float64))
        return found


@dataclass(frozen=True, slots=True)
class Space:
    """All planes, and what the recording said went wrong."""

    wire: Wire
    planes: list[Plane]
    errors: list[str]
    warnings: list[str]
    hosts: list[str]


def read_space(wire: Wire) -> Space:
    """The whole file. Of a plane that is cut what there is of it."""
    space = Space(wire, [], [], [], [])
    texts = {_ERRORS: space.errors, _WARNINGS: space.warnings, _HOSTNAMES: space.hosts}
    for number, how, value, end in wire.fields(0, len(wire.data), cut=(_PLANES,)):
        if number == _PLANES and how == BYTES:
            space.planes.append(_read_plane(wire, value, end))
        elif number in texts and how == BYTES:
            texts[number].append(wire.text(value, end))
    return space


def _read_plane(wire: Wire, start: int, stop: int) -> Plane:
    plane = Plane(wire)
    lines: list[tuple[int, int]] = []
    kinds: list[tuple[int, int]] = []
    stats: list[tuple[int, int]] = []
    wanted = {_LINES: lines, _EVENT_METADATA: kinds, _STATS: stats}
    for number, how, value, end in wire.fields(start, stop, cut=(_LINES,)):
        if how != BYTES:
            continue
        if number == _NAME:
            plane.name = wire.text(value, end)
        elif number == _STAT_METADATA:
            key, name, _, _ = _entry(wire, value, end)
            plane.stat_names[key] = name
        elif number in wanted:
            wanted[number].append((value, end))
    plane.stats = plane.read_stats(stats)
    for value, end in kinds:
        key, name, display, of_kind = _entry(wire, value, end)
        plane.metadata[key] = Metadata(name, display, plane.read_stats(of_kind) if of_kind else {})
    _read_events(plane, lines)
    return plane


def _entry(wire: Wire, start: int, stop: int) -> tuple[int, str, str, list[tuple[int, int]]]:
    """(key, name, display name, places of stats) of an entry of a table of metadata."""
    key, name, display = 0, "", ""
    stats: list[tuple[int, int]] = []
    for number, how, value, end in wire.fields(start, stop):
        if number == 1 and how == VARINT:
            key = value
        elif number == 2 and how == BYTES:
            for inner, inner_how, begin, finish in wire.fields(value, end):
                if inner == 2 and inner_how == BYTES:
                    name = wire.text(begin, finish)
                elif inner == 4 and inner_how == BYTES:
                    display = wire.text(begin, finish)
                elif inner == 5 and inner_how == BYTES:
                    stats.append((begin, finish))
    return key, name, display, stats


def _read_events(plane: Plane, lines: list[tuple[int, int]]) -> None:
    """The lines of a plane, and the events of all of them at once."""
    begins: list[Ints] = [np.empty(0, np.int64)]
    ends: list[Ints] = [np.empty(0, np.int64)]
    for start, stop in lines:
        first, last, rest = plane.wire.split(start, stop, 4)
        plane.lines.append(_line(plane.wire, rest))
        begins.append(np.array(first, np.int64))
        ends.append(np.array(last, np.int64))
    sizes = [len(some) for some in begins[1:]]
    begin, end = np.concatenate(begins), np.concatenate(ends)
    plane.line = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    plane.kind, plane.offset_ps, plane.duration_ps = (np.zeros(len(begin), np.int64) for _ in "123")
    plane.timed = np.ones(len(begin), bool)
    columns = {1: plane.kind, 2: plane.offset_ps, 3: plane.duration_ps}
    stats: list[tuple[Ints, Ints, Ints]] = []
    for some in plane.wire.rounds(begin, end):
        number = np.where(some.wire == VARINT, some.number, 0)
        for one, column in columns.items():
            mine = number == one
            if mine.any():
                column[some.which[mine]] = some.value[mine]
        plane.timed[some.which[number == 5]] = False
        mine = (some.number == 4) & (some.wire == BYTES)
        if mine.any():
            stats.append((some.which[mine], some.value[mine], some.end[mine]))
    plane.event_stats = _read_event_stats(plane.wire, stats)


def _line(wire: Wire, rest: list[Field]) -> Line:
    number, name, display, timestamp = 0, "", "", 0
    for one, how, value, end in rest:
        if how == BYTES and one == 2:
            name = wire.text(value, end)
        elif how == BYTES and one == 11:
            display = wire.text(value, end)
        elif how == VARINT and one == 1:
            number = value
        elif how == VARINT and one == 3:
            timestamp = value
    return Line(number, display or name, timestamp)


def _read_event_stats(wire: Wire, found: list[tuple[Ints, Ints, Ints]]) -> Stats:
    if not found:
        return Stats(*(np.empty(0, np.int64) for _ in range(5)))
    event, begin, end = (np.concatenate(parts) for parts in zip(*found, strict=True))
    name, kind, value, stop = (np.zeros(len(event), np.int64) for _ in range(4))
    for some in wire.rounds(begin, end):
        mine = (some.number == 1) & (some.wire == VARINT)
        name[some.which[mine]] = some.value[mine]
        fits = ((some.wire == VARINT) & np.isin(some.number, (UINT64, INT64, REF))) | (
            (some.wire == BYTES) & np.isin(some.number, (STR, RAW))
        )
        mine = fits | ((some.wire == FIXED64) & (some.number == DOUBLE))
        which = some.which[mine]
        kind[which], value[which], stop[which] = (
            some.number[mine],
            some.value[mine],
            some.end[mine],
        )
    return Stats(event, name, kind, value, stop)


def walk(wire: Wire, start: int, stop: int, number: int) -> Iterator[tuple[int, int]]:
    """Where the messages of field `number` of a message lie."""
    for one, how, value, end in wire.fields(start, stop):
        if one == number and how == BYTES:
            yield value, end
