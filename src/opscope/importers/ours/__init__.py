"""The Chrome JSON that `opscope export` writes, read back as the session it was made of.

Slices say in their `args` which span they are; own time is not a span and is worked out anew. What
an export leaves out is said in the session's sight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from opscope.importers.building import Builder
from opscope.importers.chrome import NEGATIVE, NO_LENGTH, UNTIMED, Stamps
from opscope.importers.documents import Document
from opscope.importers.ours.arrows import Drawn
from opscope.importers.ours.lanes import Tracks
from opscope.importers.ours.rows import Columns, Look, session_of
from opscope.importers.quality import PLACES
from opscope.importers.stamps import EXACT_US, known_floats, known_texts
from opscope.model import Session

Ints = NDArray[np.int64]

STRANGE = "slices that opscope did not write (left out)"
OTHERS = "events of other kinds than opscope's export has (left out)"

_Number = Annotated[int, msgspec.Meta(ge=-1, le=2**62)]


class Args(msgspec.Struct, gc=False):
    """Arguments of slices, and of the names of threads and processes."""

    id: _Number = 0
    call: _Number = 0
    owner: _Number | None = None
    kind: str = ""
    phase: str = ""
    op: str | None = None
    key: str | None = None
    flags: tuple[str, ...] = ()
    name: str | None = None
    cpu_ns: _Number = -1
    queue_ns: _Number = -1
    forward_call: _Number = -1
    lane: str | None = None
    thread: int = 0
    index: _Number = -1
    pid: int = 0


class Event(msgspec.Struct, gc=False):
    """One event."""

    ph: str = ""
    name: str = ""
    pid: _Number = -1
    tid: _Number = -1
    ts: float = float("nan")
    dur: float = float("nan")
    id: _Number = -1
    args: Args = msgspec.field(default_factory=Args)


def read(stream: BinaryIO, builder: Builder) -> Session:
    """The session of one trace. Never raises for content."""
    document = Document(stream, builder.quality)
    found = _Reading(builder)
    for batch in document.batches(Event):
        found.take(batch, document)
    return session_of(
        builder, document.other, document.damage, found.columns(), found.tracks, found.drawn
    )


class _Reading:
    """Columns of all spans, in the order of the file; what else there is, by what it is."""

    def __init__(self, builder: Builder) -> None:
        self.tracks = Tracks()
        self.drawn = Drawn()
        self._quality = builder.quality
        self._looks: dict[Look, int] = {}
        self._parts: list[list[Ints]] = [[] for _ in range(10)]
        self._seen = 0

    def take(self, batch: list[Event], document: Document) -> None:
        """Add one batch; of `document` it is the last."""
        slice_ = np.array([event.ph == "X" for event in batch], bool)
        ts, dur, timed = self._times(batch, slice_, document)
        for place in np.flatnonzero(~slice_).tolist():
            event = batch[place]
            if event.ph == "M":
                self.tracks.tell(event.name, event.pid, event.tid, event.args)
            elif event.ph not in ("s", "f"):
                self._count(OTHERS, [place])
            elif timed[place]:
                track = self.tracks.of(event.pid, event.tid)
                self.drawn.add(event.ph == "s", event.id, event.name, track, int(ts[place]))
        self._spans(batch, np.flatnonzero(slice_ & timed), ts, dur)
        self._count(UNTIMED, np.flatnonzero(slice_ & ~timed).tolist())
        self._seen += len(batch)

    def _spans(self, batch: list[Event], place: Ints, ts: Ints, dur: Ints) -> None:
        """Those of the slices that show spans; what shows own time is passed over."""
        known: list[int] = []
        strange: list[int] = []
        for one in place.tolist():
            args = batch[one].args
            if args.id > 0 and args.kind != "own":
                known.append(one)
            elif args.call <= 0:
                strange.append(one)
        self._count(STRANGE, strange)
        chosen, looks, track = [batch[one] for one in known], self._looks, self.tracks.of
        every = [event.args for event in chosen]
        which = np.array(known, np.int64)
        columns = (
            [
                looks.setdefault(
                    (event.name, args.kind, args.phase, args.op, args.key, args.name, args.flags),
                    len(looks),
                )
                for event, args in zip(chosen, every, strict=True)
            ],
            [track(event.pid, event.tid) for event in chosen],
            [args.id for args in every],
            [args.owner or 0 for args in every],
            ts[which],
            np.maximum(dur[which], 0),
            [args.cpu_ns for args in every],
            [args.queue_ns for args in every],
            [args.forward_call for args in every],
            which + self._seen,
        )
        for parts, column in zip(self._parts, columns, strict=True):
            parts.append(np.array(column, np.int64))

    def _times(
        self, batch: list[Event], slice_: NDArray[np.bool_], document: Document
    ) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        us = np.array([event.ts for event in batch], np.float64)
        length = np.array([event.dur for event in batch], np.float64)
        self._count(NO_LENGTH, np.flatnonzero(slice_ & np.isnan(length)).tolist())
        largest = np.nanmax(np.abs(np.append(us, length)), initial=0)
        texts = document.again(Stamps) if largest >= EXACT_US else []
        if texts and len(texts) == len(batch):
            ts, timed = known_texts([event.ts for event in texts])
            dur, _ = known_texts([event.dur for event in texts])
        else:
            ts, timed = known_floats(us)
            dur, _ = known_floats(length)
        self._count(NEGATIVE, np.flatnonzero(slice_ & (dur < 0)).tolist())
        return ts, dur, timed

    def _count(self, what: str, places: list[int]) -> None:
        first = [f"event {place + self._seen}" for place in places[:PLACES]]
        self._quality.count(what, len(places), first)

    def columns(self) -> Columns:
        """All of them."""
        empty = [np.empty(0, np.int64)]
        joined: Iterator[Ints] = (np.concatenate(part or empty) for part in self._parts)
        return Columns(tuple(self._looks), *joined)
