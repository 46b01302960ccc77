"""A session as a Perfetto trace (TrackEvent packets): the slices and arrows of the Chrome trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from opscope.model import LinkKind, Session
from opscope.present.arrows import Arrows, arrows
from opscope.present.chrome import _names
from opscope.present.edges import EACH, Edges, Layout, edges, layout
from opscope.present.protobuf_out import (
    Messages,
    Octets,
    Table,
    block,
    fixed64,
    number,
    text,
    varint,
    with_tails,
)
from opscope.present.slices import Face
from opscope.present.threads import Threads, threads

Ints = NDArray[np.int64]

#: How many begins and ends are made at a time.
_PORTION = 1 << 15

# Numbers of fields, as protos/perfetto/trace has them.
_PACKET = 1  # Trace
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS = 8, 10, 11, 12, 13  # TracePacket
_DESCRIPTOR, _FIRST = 60, 87
_CATEGORIES, _ANNOTATION, _TYPE, _NAME, _TRACK = 3, 4, 9, 10, 11  # TrackEvent
_FLOW, _FLOW_END = 47, 48
_CLEARED, _NEEDED = 1, 2  # values of TracePacket.sequence_flags
_BEGIN, _END = 1, 2  # values of TrackEvent.type
_KEY, _INT, _STRING, _ARRAY, _TEXT = 1, 4, 6, 12, 17  # DebugAnnotation
_ON_SEQUENCE = number(_SEQUENCE, 1)


class Interned:
    """Texts by number: names, categories, keys and values of arguments, each said once."""

    FIELDS = (1, 2, 3, 29)  # InternedData: categories, names, names of arguments, their values

    def __init__(self) -> None:
        self._known: dict[int, dict[str, int]] = {field: {} for field in self.FIELDS}

    def category(self, value: str) -> int:
        return self._number(1, value)

    def name(self, value: str) -> int:
        return self._number(2, value)

    def key(self, value: str) -> int:
        return self._number(3, value)

    def value(self, value: str) -> int:
        return self._number(29, value)

    def _number(self, field: int, value: str) -> int:
        known = self._known[field]
        return known.setdefault(value, len(known) + 1)

    def packets(self) -> Iterator[bytes]:
        """All that was asked for, in portions."""
        first = number(_FIRST, 1) + number(_FLAGS, _CLEARED)
        yield block(_PACKET, number(_TIMESTAMP, 0), _ON_SEQUENCE, first)
        for field, known in self._known.items():
            every = [block(field, number(1, iid), text(2, t)) for t, iid in known.items()]
            for begin in range(0, len(every), 1000):
                data = block(_INTERNED, *every[begin : begin + 1000])
                yield block(
                    _PACKET, number(_TIMESTAMP, 0), _ON_SEQUENCE, number(_FLAGS, _NEEDED), data
                )


def write_perfetto(session: Session, file: BinaryIO) -> None:
    """Write the whole trace to a binary file, portion by portion.

    Times are nanoseconds from the session's start. Threads have the numbers they have in the
    Chrome trace. What a call pushed or spawned leaves the stretch of own time in which it did. An
    arrow's end is told at the end of its slice where both slices begin at once, since a reader must
    meet its source first. No arrow leads from a span to itself, or to one without length that the
    file tells before its source.
    """
    where = threads(session)
    for event in _names(session, where):
        file.write(_track(session, where, json.loads(event)))
    laid = layout(session, where)
    names = Interned()
    keys = {key: names.key(key) for key in EACH}
    faces = Table([_shared(face, names) for face in laid.faces])
    for packet in names.packets():
        file.write(packet)
    flows = _flows(session, laid)
    events = _Events(laid, faces, keys, flows, len(where.every))
    for portion in _portions(edges(laid)):
        file.write(events.packets(*portion).tobytes())


def _track(session: Session, where: Threads, event: dict[str, Any]) -> bytes:
    """The descriptor of a track from Chrome's metadata; nothing for an event that only sorts."""
    args, pid, tid = event["args"], event["pid"], event["tid"]
    body: tuple[bytes, ...]
    if event["name"] == "process_name":
        command = session.processes[pid - 1].command
        body = (
            number(1, len(where.every) + pid),
            text(2, args["name"]),
            block(
                3,
                number(1, pid),
                *(text(2, part) for part in command),
                number(3, pid - 1),
                text(6, args["name"]),
                text(8, f"pid {args['pid']}"),
            ),
        )
    elif event["name"] == "thread_name":
        about = args["kind"] + (f", id {args['thread']}" if args["thread"] else "")
        body = (
            number(1, tid),
            text(2, args["name"]),
            number(5, len(where.every) + pid),
            text(14, about),
            block(4, number(1, pid), number(2, tid), number(3, tid), text(5, args["name"])),
        )
    else:
        return b""
    return block(_PACKET, number(_TIMESTAMP, 0), _ON_SEQUENCE, block(_DESCRIPTOR, *body))


def _shared(face: Face, names: Interned) -> bytes:
    """The fields of an event that all slices of one face share."""
    fields = [
        number(_CATEGORIES, names.category(face.category)),
        number(_NAME, names.name(face.name)),
    ]
    for key, value in face.args.items():
        if value is None:
            continue
        if isinstance(value, list):
            every = [block(_ARRAY, number(_TEXT, names.value(item))) for item in value]
        else:
            every = [number(_TEXT, names.value(value))]
        fields.append(block(_ANNOTATION, number(_KEY, names.key(key)), *every))
    return b"".join(fields)


@dataclass(frozen=True, slots=True, eq=False)
class _Flows:
    """The ends of all arrows, by the edge they are told at: twice the slice, plus 1 at its end."""

    edge: Ints
    fields: Octets


def _flows(session: Session, laid: Layout) -> _Flows:
    """The arrows that `arrows` draws, as fields of the events of the slices they join."""
    drawn = arrows(session)
    sources, targets = _sources(session, laid, drawn), drawn.target
    position = np.empty(len(laid.order), np.int64)
    position[laid.order] = np.arange(len(laid.order))
    start, end = laid.start_ns, laid.end_ns
    late = (start[sources] == start[targets]) & (position[sources] > position[targets])
    kept = (drawn.source != targets) & (~late | (end[targets] > start[targets]))
    sources, targets, late = sources[kept], targets[kept], late[kept]
    numbers = np.arange(1, len(sources) + 1)
    edge = np.concatenate((2 * sources, 2 * targets + late))
    fields = np.concatenate((fixed64(_FLOW, numbers), fixed64(_FLOW_END, numbers)))
    order = np.argsort(edge, kind="stable")
    return _Flows(edge[order], fields[order])


def _sources(session: Session, laid: Layout, drawn: Arrows) -> Ints:
    """The slices that arrows leave. Viewers draw an arrow from the end of its slice: from a call
    that ends long after what it started, it would lead back in time."""
    count, moment = len(laid.box), drawn.moment_ns - session.start_ns
    caused = (drawn.kind == LinkKind.PUSH) | (drawn.kind == LinkKind.SPAWN)
    boxes = np.concatenate((laid.box, drawn.source))
    times = np.concatenate((laid.start_ns[laid.spans :], moment))
    order = np.lexsort((np.arange(len(boxes)), times, boxes))
    # The last stretch before each arrow in that order: the only one that may hold it.
    before = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    last = np.empty(len(order), np.int64)
    last[order] = np.where(before >= 0, order[before], -1)
    stretch = last[count:]
    known = stretch >= 0
    held = caused & known
    held[known] &= laid.box[stretch[known]] == drawn.source[known]
    held[known] &= laid.end_ns[laid.spans + stretch[known]] > moment[known]
    return np.where(held, laid.spans + stretch, drawn.source)


def _portions(found: Iterator[Edges]) -> Iterator[tuple[Ints, Ints, NDArray[np.bool_]]]:
    """The edges of all threads, (slice, moment, whether it begins), about `_PORTION` at a time."""
    waiting: list[Edges] = []
    held = 0

    def joined() -> tuple[Ints, Ints, NDArray[np.bool_]]:
        columns: list[Callable[[Edges], Any]] = [
            lambda e: e.slice,
            lambda e: e.at_ns,
            lambda e: e.begins,
        ]
        which, at, begins = (np.concatenate([get(e) for e in waiting]) for get in columns)
        return which, at, begins

    for entry in found:
        waiting.append(entry)
        held += len(entry.slice)
        if held < _PORTION:
            continue
        whole = joined()
        for begin in range(0, held, _PORTION):
            part = slice(begin, begin + _PORTION)
            yield whole[0][part], whole[1][part], whole[2][part]
        waiting, held = [], 0
    if held:
        yield joined()


class _Events:
    """Makes the packets of begins and ends."""

    def __init__(
        self, laid: Layout, faces: Table, keys: dict[str, int], flows: _Flows, threads: int
    ) -> None:
        self._laid, self._faces, self._flows = laid, faces, flows
        self._tracks = Table([number(_TRACK, tid + 1) for tid in range(threads)])
        self._types = Table([number(_TYPE, _END), number(_TYPE, _BEGIN)])
        self._keys = {key: number(_KEY, iid) for key, iid in keys.items()}

    def packets(self, which: Ints, at: Ints, begins: NDArray[np.bool_]) -> Octets:
        laid, count = self._laid, len(which)
        event = Messages(count)
        event.choose(self._types, begins.astype(np.int64))
        event.choose(self._tracks, laid.thread[which])
        own = which >= laid.spans
        owner = laid.owner[which]
        some = {key: values[which] for key, values in laid.some.items()}
        for key, values, mask in (
            ("id", laid.ident[which], begins & ~own),
            ("call", laid.ident[which], begins & own),
            ("owner", owner, begins & (owner != 0)),
            *((key, values, begins & (values >= 0)) for key, values in some.items()),
        ):
            if mask.any():
                self._annotation(event, key, values, mask)
        event.choose(self._faces, laid.face[which], begins)

        edge = 2 * which + ~begins
        first = np.searchsorted(self._flows.edge, edge)
        flows = np.searchsorted(self._flows.edge, edge, side="right") - first
        room = flows * self._flows.fields.shape[1]
        packet, trace = Messages(count), Messages(count)
        packet.number(_TIMESTAMP, at)
        packet.put(_ON_SEQUENCE + number(_FLAGS, _NEEDED))
        packet.block(_TRACK_EVENT, event, room=room)
        trace.block(_PACKET, packet, room=room)
        whole, total = trace.joined(), int(flows.sum())
        if not total:
            return whole
        step = np.arange(total) - np.repeat(np.cumsum(flows) - flows, flows)
        tails = self._flows.fields[np.repeat(first, flows) + step]
        return with_tails(whole, trace.sizes, tails, flows)

    def _annotation(self, event: Messages, key: str, values: Ints, mask: NDArray[np.bool_]) -> None:
        inner = Messages(event.count)
        inner.put(self._keys[key], mask)
        inner.number(_INT, values, mask)
        event.block(_ANNOTATION, inner, mask)


assert len(varint(max(_FLOW, _FLOW_END) << 3)) == 2
