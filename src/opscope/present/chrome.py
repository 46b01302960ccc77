"""A session as a trace for Chrome and Perfetto: strict JSON, written as it is made.

One slice for each span, slices for own time, arrows. Slices of one thread of the trace never cross.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import PurePath
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from opscope.model import LinkKind, Session
from opscope.present.arrows import arrows
from opscope.present.chrome_tables import tables
from opscope.present.edges import Layout, layout
from opscope.present.slices import Face
from opscope.present.threads import Threads, microseconds, threads

Ints = NDArray[np.int64]
Texts = NDArray[np.object_]

#: How many slices are made at a time.
_PORTION = 1 << 14

#: The longest command that names a process, in characters.
_WIDTH = 100

_DECIMALS: Texts = np.array([f".{rest:03d}" for rest in range(1000)], object)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {int(kind): kind.name.lower() for kind in LinkKind}


def chrome_events(session: Session) -> Iterator[str]:
    """Each event as the text of a JSON object: names of processes and threads, slices, arrows."""
    return chain.from_iterable(_portions(session))


def write_chrome(session: Session, file: TextIO) -> None:
    """Write the whole trace to a text file opened for UTF-8, some thousand events at a time.

    Times are microseconds from the session's start, with three decimals: whole nanoseconds.
    """
    # First: it tells what the file is, and a file that was cut still has it.
    file.write(f'{{"otherData": {_json(tables(session))},\n"displayTimeUnit": "ns",\n')
    file.write('"traceEvents": [')
    separator = "\n"
    for events in _portions(session):
        file.write(separator)
        file.write(",\n".join(events))
        separator = ",\n"
    file.write("\n]}\n")


def _portions(session: Session) -> Iterator[list[str]]:
    """All events, some at a time; no list is empty."""
    where = threads(session)
    if names := list(_names(session, where)):
        yield names
    laid = layout(session, where)
    slices = _Slices(laid, where)
    for begin in range(0, len(laid.order), _PORTION):
        yield slices.texts(laid.order[begin : begin + _PORTION])
    yield from _arrows(session, laid, where)


def _names(session: Session, where: Threads) -> Iterator[str]:
    """Metadata: what the dense numbers stand for."""
    for number, process in enumerate(session.processes):
        # Without folders: viewers cut a name at its last slash. In one line: `-c` takes a program.
        command = " ".join(PurePath(part).name or part for part in process.command)
        command = " ".join(command.split())
        command = command if len(command) <= _WIDTH else f"{command[: _WIDTH - 1]}…"
        title = f"{command} ({process.pid})" if command else f"process {process.pid}"
        yield _metadata("process_name", number + 1, 0, {"name": title, "pid": process.pid})
        yield _metadata("process_sort_index", number + 1, 0, {"sort_index": number})
    for thread in where.every:
        lane = session.lanes[thread.lane]
        title = lane.name or f"{lane.kind} {thread.tid}"  # Perfetto takes no name for a fault
        title = f"{title} ({thread.track + 1})" if thread.track else title
        args = {"name": title, "lane": lane.name, "kind": lane.kind, "thread": lane.thread}
        args["index"] = thread.lane  # tracks of one lane have it in common
        yield _metadata("thread_name", thread.pid, thread.tid, args)
        yield _metadata("thread_sort_index", thread.pid, thread.tid, {"sort_index": thread.tid})


def _json(value: object) -> str:
    """Strict JSON in UTF-8, since Perfetto shows escapes of letters as they stand, and refuses
    files with some of them. Lone surrogates, which UTF-8 has no form for, become `\\ud800`."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\\\u{ord(found.group()):04x}", text)


def _metadata(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    event = {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}
    return _json(event)


class _Slices:
    """Makes the texts of slices: what many of them share is made once."""

    def __init__(self, laid: Layout, where: Threads) -> None:
        self._laid = laid
        self._places = _texts(
            f'{{"ph": "X", "pid": {each.pid}, "tid": {each.tid}, "ts": ' for each in where.every
        )
        around = list(map(_around, laid.faces))
        self._heads, self._tails = (_texts(each[part] for each in around) for part in (0, 1))

    def texts(self, which: Ints) -> list[str]:
        """One for each of these slices."""
        laid = self._laid
        start, length = laid.start_ns[which], laid.end_ns[which] - laid.start_ns[which]
        face = laid.face[which]
        tails = self._tails[face].tolist()
        for key, values in laid.some.items():
            found = values[which]
            places = np.flatnonzero(found >= 0)
            head = f', "{key}": '
            for place, value in zip(places.tolist(), found[places].tolist(), strict=True):
                tails[place] += f"{head}{value}"
        return [
            f'{place}{whole}{rest}, "dur": {length}{decimals}, {head}{ident}, '
            f'"owner": {owner or "null"}{tail}}}}}'
            for place, whole, rest, length, decimals, head, ident, owner, tail in zip(
                self._places[laid.thread[which]].tolist(),
                *_microseconds(start),
                *_microseconds(length),
                self._heads[face].tolist(),
                laid.ident[which].tolist(),
                laid.owner[which].tolist(),
                tails,
                strict=True,
            )
        ]


def _around(face: Face) -> tuple[str, str]:
    """What slices of that face have before the number of their span or call, and after the owner's;
    their brackets stay open."""
    number = "call" if face.kind == "own" else "id"
    head = f'"name": {_json(face.name)}, "cat": {_json(face.category)}, "args": {{"{number}": '
    return head, f", {_json(face.args)[1:-1]}"


def _arrows(session: Session, laid: Layout, where: Threads) -> Iterator[list[str]]:
    """Two events for each arrow: `s` where it begins, then `f` where it ends. They follow all
    slices, since viewers join them to what they have met."""
    drawn = arrows(session)
    places = _texts(f'"pid": {each.pid}, "tid": {each.tid}, "ts": ' for each in where.every)
    for begin in range(0, len(drawn.kind), _PORTION):
        part = slice(begin, begin + _PORTION)
        found: list[str] = []
        for number, (kind, here, at, rest, there, end, decimals) in enumerate(
            zip(
                drawn.kind[part].tolist(),
                places[laid.thread[drawn.source[part]]].tolist(),
                *_microseconds(drawn.moment_ns[part] - session.start_ns),
                places[laid.thread[drawn.target[part]]].tolist(),
                *_microseconds(laid.start_ns[drawn.target[part]]),
                strict=True,
            ),
            begin + 1,
        ):
            head = f'"id": {number}, "name": "{_WORDS.get(kind, "link")}", "cat": "flow", '
            found.append(f'{{"ph": "s", {head}{here}{at}{rest}}}')
            found.append(f'{{"ph": "f", "bp": "e", {head}{there}{end}{decimals}}}')
        yield found


def _microseconds(values_ns: Ints) -> tuple[list[Any], list[str]]:
    """Nanoseconds as microseconds: what stands before the decimals, and those with their point."""
    if values_ns.min(initial=0) < 0:
        every = [microseconds(value) for value in values_ns.tolist()]
        return [text[:-4] for text in every], [text[-4:] for text in every]
    whole, rest = np.divmod(values_ns, 1000)
    return whole.tolist(), _DECIMALS[rest].tolist()


def _texts(every: Any) -> Texts:
    """Texts to choose from by number."""
    found = list(every)
    made: Texts = np.empty(len(found), object)
    made[:] = found
    return made
