"""Generic Chrome JSON traces, by whatever program, and those of viztracer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late import Customs, Events, Role
from opscope.importers.building import Builder
from opscope.importers.chrome.arrows import Ends, links
from opscope.importers.chrome.lanes import Lanes, Told
from opscope.importers.chrome.slices import Marks, paired
from opscope.importers.documents import Document
from opscope.importers.quality import PLACES, Quality
from opscope.importers.stamps import EXACT_US, known_floats, known_texts
from opscope.model import Flag, Kind, Op, Rows, Session

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNTIMED = "events without a time (left out)"
NEGATIVE = "negative durations (taken as 0)"
NO_LENGTH = "whole events (phase X) without a duration (taken as 0)"
STRAY = "ends of events that never began (left out)"
OPEN = "events that never end (taken to end with the last moment of their lane)"
EARLY = "ends of events that are not the innermost of their thread (the events cross)"

_Id = int | str | float | bool | None


class Id2(msgspec.Struct, gc=False):
    """The newer form of an id."""

    local: _Id = None
    shared: _Id = msgspec.field(name="global", default=None)


class Event(msgspec.Struct, gc=False):
    """One event."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: _Id = None
    tid: _Id = None
    ts: float = float("nan")
    dur: float = float("nan")
    id: _Id = None
    id2: Id2 | None = None
    scope: str = ""
    bp: str = ""
    args: msgspec.Raw = msgspec.Raw(b"")


class Stamps(msgspec.Struct, gc=False):
    """The times of an event as they are written."""

    ts: msgspec.Raw = msgspec.Raw(b"null")
    dur: msgspec.Raw = msgspec.Raw(b"0")


# What becomes of each phase.
_SLICE, _BEGIN, _END, _RUN_BEGIN, _RUN_END, _RUN_POINT, _POINT, _TAIL, _BODY, _HEAD = range(10)
_PHASES = {
    **{"X": _SLICE, "B": _BEGIN, "E": _END, "b": _RUN_BEGIN, "e": _RUN_END, "n": _RUN_POINT},
    **{"S": _RUN_BEGIN, "F": _RUN_END, "T": _RUN_POINT, "p": _RUN_POINT},
    **{"i": _POINT, "I": _POINT, "R": _POINT, "s": _TAIL, "t": _BODY, "f": _HEAD},
}
_OTHERS = {
    **{"C": "counters", "P": "samples", "N": "objects", "O": "objects", "D": "objects"},
    **{"V": "memory dumps", "v": "memory dumps", "c": "clock marks", "(": "contexts"},
    **{")": "contexts", "a": "aborted events", "": "objects without a phase"},
}
_ANNOTATION = "user_annotation"


def read(stream: BinaryIO, builder: Builder) -> Session:
    """The session of one trace. Never raises for content."""
    document = Document(stream, builder.quality)
    columns = _Columns(builder)
    for batch in document.batches(Event):
        columns.take(batch, document)
    rows, arrows = columns.rows()
    base = document.other.get("baseTimeNanoseconds")
    return builder.session(
        rows,
        sees=("calls", "sub-operators", "ranges"),
        misses={
            "cpu": "the file holds no CPU time: what an operator did itself is untracked",
            "device": "the file does not say what is device work",
            "dispatch": "the file does not tell an operator's function from the wrapper around it",
            "tasks": "the file does not say which call handed work to another thread",
        },
        version=_version(document.other),
        wall_ns=base if isinstance(base, int) and 0 <= base < 2**62 else None,
        damage=document.damage,
        notes=_notes(document.other),
        links=arrows,
    )


def _version(other: dict[str, Any]) -> str:
    told = other.get("viztracer_metadata")
    return str(told.get("version", "")) if isinstance(told, dict) else ""


def _notes(other: dict[str, Any]) -> list[str]:
    told = other.get("viztracer_metadata")
    if isinstance(told, dict) and told.get("overflow"):
        return ["viztracer had no room for all events: the oldest are missing"]
    return []


class _Columns:
    """Columns of all events that have a time, in the order of the file."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.lanes = Lanes()
        self.flows: dict[Hashable, int] = {}
        self.left_out: Counter[str] = Counter()
        self.parts: list[list[Ints]] = [[] for _ in range(7)]
        self.seen = 0

    def take(self, batch: list[Event], document: Document) -> None:
        """Add one batch; of `document` it is the last."""
        code = np.array([_PHASES.get(event.ph, -1) for event in batch], np.int64)
        ts, dur = self._times(batch, code, document)
        timed = ts != _NEVER
        wanted = code >= 0
        self._count(UNTIMED, np.flatnonzero(wanted & ~timed))
        if not wanted.all():
            for place in np.flatnonzero(~wanted).tolist():
                self._other(batch[place])
        place = np.flatnonzero(wanted & timed)
        chosen = batch if len(place) == len(batch) else [batch[one] for one in place.tolist()]
        code = code[place]
        name = self.builder.name
        lane = self.lanes.of_thread
        part = (
            code,
            np.array([name(event.name) for event in chosen], np.int64),
            np.array([lane(event.pid, event.tid) for event in chosen], np.int64),
            ts[place],
            ts[place] + np.maximum(dur[place], 0),
            np.array([event.cat == _ANNOTATION for event in chosen], np.int64),
            np.full(len(chosen), -1, np.int64),
        )
        for one in np.flatnonzero((code >= _RUN_BEGIN) & (code != _POINT)).tolist():
            event = chosen[one]
            if code[one] < _POINT:
                part[2][one] = self.lanes.of_run(event.pid, event.cat, _run(event), event.scope)
            else:
                key = (event.cat, _run(event), event.scope)
                part[5][one] = event.bp != "e" and code[one] == _HEAD
                part[6][one] = self.flows.setdefault(key, len(self.flows))
        for parts, column in zip(self.parts, part, strict=True):
            parts.append(column)
        self.seen += len(batch)

    def _times(self, batch: list[Event], code: Ints, document: Document) -> tuple[Ints, Ints]:
        us = np.array([event.ts for event in batch], np.float64)
        length = np.array([event.dur for event in batch], np.float64)
        whole = code == _SLICE
        missing = whole & np.isnan(length)
        self._count(NO_LENGTH, np.flatnonzero(missing))
        largest = np.nanmax(np.abs(us), initial=0, where=~np.isnan(us))
        texts = document.again(Stamps) if largest >= EXACT_US else []
        if texts and len(texts) == len(batch):
            ts, timed = known_texts([event.ts for event in texts])
            dur, _ = known_texts([event.dur for event in texts])
        else:
            ts, timed = known_floats(us)
            dur, _ = known_floats(np.where(whole, length, 0.0))
        self._count(NEGATIVE, np.flatnonzero(whole & (dur < 0)))
        return np.where(timed, ts, _NEVER), np.where(whole, dur, 0)

    def _count(self, what: str, places: Ints) -> None:
        if len(places):
            first = (places[:PLACES] + self.seen).tolist()
            self.builder.quality.count(what, len(places), [f"event {place}" for place in first])

    def _other(self, event: Event) -> None:
        if event.ph != "M":
            what = _OTHERS.get(event.ph, f"phase {event.ph[:8]}")
            self.left_out[what] += 1
            return
        try:
            told = msgspec.json.decode(event.args or b"{}", type=Told, strict=False)
        except (msgspec.DecodeError, RecursionError):
            return
        self.lanes.tell(event.name, event.pid, event.tid, told)

    def rows(self) -> tuple[Rows, Rows]:
        """The spans and the arrows between them. What was left out is counted."""
        builder, quality = self.builder, self.builder.quality
        for what, number in self.left_out.items():
            quality.count(f"events left out: {what}", number)
        entries = self.lanes.build(builder)
        empty = [np.empty(0, np.int64)]
        code, name, lane, start, end, special, flow = (
            np.concatenate(part or empty) for part in self.parts
        )
        self.parts.clear()
        lane = entries[lane]
        chosen = [
            number for number, text in enumerate(builder.names) if builder.options.chosen(text)
        ]
        customs = Customs(forward={number: builder.op(_op(builder, number)) for number in chosen})
        marked = np.flatnonzero((code >= _BEGIN) & (code <= _RUN_END))
        arrow = code >= _TAIL
        point = ((code == _RUN_POINT) | (code == _POINT)) & ~arrow
        begin, stop, open_ = self._slices(code, name, lane, start, end, marked)
        end[begin] = stop
        kept = np.sort(np.concatenate((np.flatnonzero((code == _SLICE) | point), begin)))
        range_ = (special > 0) & ~np.isin(name, np.array(chosen, np.int64))
        role = np.where(range_ | point, int(Role.RANGE), int(Role.OP))[kept]
        none = np.full(len(kept), -1, np.int64)
        events = Events(
            name=name[kept],
            lane=lane[kept],
            start_ns=start[kept],
            end_ns=end[kept],
            role=role,
            thread=lane[kept],
            forward_thread=none,
            sequence=none,
            correlation=none * 0,
            external=none * 0,
        )
        rows = builder.joined(events, customs)
        if len(open_):
            _flag(rows, lane[open_], start[open_], end[open_])
        ends = Ends(
            flow[arrow],
            lane[arrow],
            start[arrow],
            code[arrow] == _TAIL,
            code[arrow] == _HEAD,
            special[arrow] > 0,
        )
        return rows, links(ends, rows, quality)

    def _slices(
        self, code: Ints, name: Ints, lane: Ints, start: Ints, end: Ints, marked: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Of events that are told as two: their beginnings and when they end; which are open."""
        begins = (code[marked] == _BEGIN) | (code[marked] == _RUN_BEGIN)
        unnamed = np.array([not text for text in self.builder.names], bool)[name[marked]] & ~begins
        names = np.where(unnamed, -1, name[marked])
        pairs = paired(Marks(lane[marked], start[marked], names, begins))
        stray, early, open_ = (marked[part] for part in (pairs.stray, pairs.early, pairs.open))
        quality: Quality = self.builder.quality
        for what, some in ((STRAY, stray), (EARLY, early), (OPEN, open_)):
            quality.count(what, len(some), [self.builder.names[name[one]] for one in some[:PLACES]])
        last = np.full(int(lane.max(initial=-1)) + 1, np.iinfo(np.int64).min)
        np.maximum.at(last, lane, end)
        begin = np.append(marked[pairs.begin], open_)
        stop = np.append(start[marked[pairs.end]], last[lane[open_]])
        return begin, np.maximum(stop, start[begin]), open_


_NEVER = np.iinfo(np.int64).min


def _run(event: Event) -> Hashable:
    """What tells apart the runs of asynchronous events, and the flows, of one category."""
    if event.id2 is not None:
        if event.id2.local is not None:
            return event.pid, event.id2.local
        return event.id2.shared
    return event.id


def _op(builder: Builder, name: int) -> Op:
    return Op(builder.format, "event", builder.names[name])


def _flag(rows: Rows, lane: Ints, start: Ints, end: Ints) -> None:
    """Mark the rows that are events which never end."""
    some = np.stack((lane, start, end), axis=1)
    all_ = np.stack((rows["lane"].astype(np.int64), rows["start_ns"], rows["end_ns"]), axis=1)
    _, number = np.unique(np.concatenate((some, all_)), axis=0, return_inverse=True)
    number = number.reshape(-1)
    found = np.isin(number[len(some) :], number[: len(some)]) & (rows["kind"] != Kind.DEVICE)
    rows["flags"][found] |= int(Flag.INCOMPLETE)
