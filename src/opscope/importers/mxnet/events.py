"""The events of an MXNet profile as columns, each begin joined to its end."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, fields
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from opscope.attribution.totals import distinct
from opscope.importers.quality import Quality
from opscope.importers.stamps import from_floats, from_texts

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Phases of events that begin or end something: (it is an end, it is a task and no slice of a row).
_PHASES = {
    "B": (0, 0),
    "E": (1, 0),
    "b": (0, 1),
    "e": (1, 1),
    "(": (0, 1),
    ")": (1, 1),
}
#: Stamps beyond this many microseconds are none: two of them, in nanoseconds, need 64 bits.
_MOST_US = 2**61 // 1000

UNTIMED = "events without a time that can be read (left out)"
UNBEGUN = "ends without a beginning (left out)"
UNENDED = "events that never ended (kept without length, as incomplete)"
BACKWARDS = "events that end before they begin (kept without length)"


class Args(msgspec.Struct, frozen=True):
    """What of an event's arguments is read: the name that a row is given."""

    name: Any = ""


class Event(msgspec.Struct):
    """One event. Process and thread are hashes of 64 bits and more than a double can tell apart."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: Args = Args()


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """One entry for each thing that took time. `name`, `cat`, `row` and `thread` are entries of the
    tables in `Table`; `task` tells the copy that MXNet writes of it as a task."""

    name: Ints
    cat: Ints
    row: Ints
    thread: Ints
    start_ns: Ints
    end_ns: Ints
    task: Bools
    incomplete: Bools
    place: Ints  #: number of the event that begins it, in the order of the file

    def __len__(self) -> int:
        return len(self.name)

    def take(self, which: NDArray[Any]) -> Slices:
        """The chosen ones, by mask or by index."""
        return Slices(*(getattr(self, column.name)[which] for column in fields(self)))


class Texts:
    """Things by number, each once, in the order in which they came."""

    def __init__(self) -> None:
        self.number: defaultdict[Any, int] = defaultdict(lambda: len(self.number))

    def of(self, things: list[Any]) -> Ints:
        """The number of each."""
        return np.array([self.number[thing] for thing in things], np.int64)

    def all(self) -> list[Any]:
        """The things, by number."""
        return list(self.number)


class Table:
    """The columns of all batches, and what the other events told.

    `titles` are the names of the rows of a process, by number; `others` counts the events that
    take no time, by phase.
    """

    def __init__(self, quality: Quality) -> None:
        self.quality = quality
        self.names, self.cats, self.rows, self.threads = Texts(), Texts(), Texts(), Texts()
        self.titles: dict[Any, str] = {}
        self.others: Counter[str] = Counter()
        self._parts: list[tuple[Ints, ...]] = []
        self._seen = 0

    def take(self, batch: list[Event]) -> None:
        """Add one batch."""
        place = range(self._seen, self._seen + len(batch))
        self._seen += len(batch)
        kept = [(at, e) for at, e in zip(place, batch, strict=True) if e.ph in _PHASES]
        if len(kept) != len(batch):
            for at, event in zip(place, batch, strict=True):
                if event.ph == "X":
                    kept.extend(self._in_two(at, event))
                elif event.ph not in _PHASES:
                    self._other(event)
        if not kept:
            return
        events = [event for _, event in kept]
        phase = np.array([_PHASES[event.ph] for event in events], np.int64)
        ns, timed = _nanoseconds([event.ts for event in events])
        number = np.array([at for at, _ in kept], np.int64)
        gone = np.flatnonzero(~timed)
        self.quality.count(UNTIMED, len(gone), number[gone[:5]].tolist())
        columns = (
            self.names.of([event.name for event in events]),
            self.cats.of([event.cat for event in events]),
            self.rows.of([event.pid for event in events]),
            self.threads.of([event.tid for event in events]),
            ns,
            phase[:, 0],
            phase[:, 1],
            number,
        )
        self._parts.append(tuple(column[timed] for column in columns))

    def _in_two(self, at: int, event: Event) -> list[tuple[int, Event]]:
        """A complete event, which is not MXNet's own way, as its begin and its end."""
        both, timed = _nanoseconds([event.ts, 0 if event.dur is None else event.dur])
        if not timed.all():
            self.quality.count(UNTIMED, 1, [at])
            return []
        end_ns = int(both.sum())
        end = f"{'-' if end_ns < 0 else ''}{abs(end_ns) // 1000}.{abs(end_ns) % 1000:03}"
        begin = msgspec.structs.replace(event, ph="B")
        return [(at, begin), (at, msgspec.structs.replace(event, ph="E", ts=end))]

    def _other(self, event: Event) -> None:
        if event.ph == "M":
            if event.name == "process_name":
                self.titles[event.pid] = str(event.args.name)
        else:
            self.others[event.ph] += 1

    def slices(self) -> Slices:
        """All that took time, in no order."""
        if not self._parts:
            none, no = np.empty(0, np.int64), np.empty(0, bool)
            return Slices(none, none, none, none, none, none, no, no, none)
        name, cat, row, thread, ns, ends, task, place = (
            np.concatenate(column) for column in zip(*self._parts, strict=True)
        )
        self._parts.clear()
        begin, end = self._joined(distinct(name, row, thread, task)[1], ends == 1, place)
        open_ = end < 0
        finish = np.where(open_, ns[begin], ns[end])
        back = finish < ns[begin]
        self.quality.count(UNENDED, int(open_.sum()), place[begin[open_][:5]].tolist())
        self.quality.count(BACKWARDS, int(back.sum()), place[begin[back][:5]].tolist())
        return Slices(
            name[begin],
            cat[begin],
            row[begin],
            thread[begin],
            ns[begin],
            np.maximum(finish, ns[begin]),
            task[begin] == 1,
            open_,
            place[begin],
        )

    def _joined(self, key: Ints, ends: Bools, place: Ints) -> tuple[Ints, Ints]:
        """(beginnings, the end of each or -1), as places in the columns.

        MXNet writes the end of a thing right behind its beginning, whatever else ran meanwhile, so
        neither the order in time nor a stack is asked. Only what stands apart is joined as other
        files are: an end to the last open beginning of the same name, row and thread.
        """
        close = ~ends[:-1] & ends[1:] & (key[1:] == key[:-1])
        begin = np.flatnonzero(close)
        left = np.ones(len(key), bool)
        left[begin] = left[begin + 1] = False
        apart = np.flatnonzero(left)
        opened: defaultdict[int, list[int]] = defaultdict(list)
        pairs: dict[int, int] = {}
        lost = []
        for at, whose, is_end in zip(
            apart.tolist(), key[apart].tolist(), ends[apart].tolist(), strict=True
        ):
            if not is_end:
                pairs[at] = -1
                opened[whose].append(at)
            elif opened[whose]:
                pairs[opened[whose].pop()] = at
            else:
                lost.append(at)
        self.quality.count(UNBEGUN, len(lost), place[lost[:5]].tolist())
        more = np.array(list(pairs.items()), np.int64).reshape(-1, 2)
        return np.concatenate((begin, more[:, 0])), np.concatenate((begin + 1, more[:, 1]))


def _nanoseconds(stamps: list[Any]) -> tuple[Ints, Bools]:
    """Microseconds as they stand in the file in whole nanoseconds, and which could be read."""
    if set(map(type, stamps)) == {int}:
        try:
            us = np.array(stamps, np.int64)
        except OverflowError:
            pass
        else:
            fits = (us > -_MOST_US) & (us < _MOST_US)
            return np.where(fits, us, 0) * 1000, fits
    ns = np.zeros(len(stamps), np.int64)
    read = np.zeros(len(stamps), bool)
    for place, stamp in enumerate(stamps):
        try:
            if abs(float(stamp)) >= _MOST_US:
                continue
            if isinstance(stamp, float):
                ns[place] = from_floats(np.array([stamp]))[0]
            else:
                ns[place] = from_texts([str(stamp)])[0]
            read[place] = True
        except (TypeError, ValueError, OverflowError):
            continue
    return ns, read
