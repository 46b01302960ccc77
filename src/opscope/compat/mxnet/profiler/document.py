"""The file: one whole Chrome trace of everything so far, every time it is written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opscope.compat.mxnet.profiler.marks import Timeline
from opscope.model import Session
from opscope.present.chrome import chrome_events
from opscope.present.chrome_tables import tables
from opscope.present.threads import microseconds


def trace(session: Session, timeline: Timeline) -> Iterator[str]:
    """The text of the document in pieces: operators as opscope shows them, then what was marked."""
    yield '{"traceEvents": ['
    separator = "\n"
    zero = session.start_ns or timeline.start_ns()
    marked = _marked(timeline, zero, len(session.processes) + 1)
    for events in (chrome_events(session), marked):
        for event in events:
            yield separator
            yield event
            separator = ",\n"
    other = tables(session) | {"producer": "opscope.compat.mxnet", "start_ns": zero}
    yield f'\n],\n"displayTimeUnit": "ms",\n"otherData": {json.dumps(other)}}}\n'


def _marked(timeline: Timeline, zero: int, first_pid: int) -> Iterator[str]:
    """Stretches as asynchronous slices, which may overlap; counters; moments. A pid a domain."""
    pids: dict[str, int] = {}
    for number, seen in enumerate(timeline.seen(), 1):
        stretch = seen.stretch
        args: dict[str, Any] = {"kind": stretch.sort, "active_ns": seen.active_ns}
        if not stretch.end_ns:
            args["flags"] = ["incomplete"]
        for phase, moment in (("b", seen.start_ns), ("e", seen.end_ns)):
            yield from _event(stretch, phase, moment - zero, pids, first_pid, id=number, args=args)
    for count in list(timeline.counts):
        args = {count.name: count.value}
        yield from _event(count, "C", count.at_ns - zero, pids, first_pid, args=args)
    for mark in list(timeline.marks):
        yield from _event(mark, "i", mark.at_ns - zero, pids, first_pid, s=mark.scope)


def _event(
    thing: Any, phase: str, ns: int, pids: dict[str, int], first_pid: int, **more: Any
) -> Iterator[str]:
    category = thing.category
    if category not in pids:
        pids[category] = first_pid + len(pids)
        name = {"name": category}
        yield json.dumps({"ph": "M", "name": "process_name", "pid": pids[category], "args": name})
    head = {"ph": phase, "name": thing.name, "cat": category, "pid": pids[category], "tid": 1}
    # Whole nanoseconds: a float would lose the last ones of a long recording.
    yield f'{json.dumps(head | more)[:-1]}, "ts": {microseconds(ns)}}}'


#: How long the documents of this process are, by file.
_written: dict[str, int] = {}


def write(filename: str, session: Session, timeline: Timeline) -> None:
    """Write the document in the place of what is there. OSError where it cannot be written.

    It appears whole, and is never shorter than the last one of this process: what ends it may be
    shorter than the flag saying that it had not ended. One thread at a time.
    """
    data = "".join(trace(session, timeline)).encode()
    target = Path(filename).resolve()
    key = str(target)
    data = data.ljust(_written.get(key, 0))
    if _special(target):
        target.write_bytes(data)
        return
    temporary = target.with_name(f".opscope-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _written[key] = len(data)


def _special(path: Path) -> bool:
    """A device or a pipe, which must not be replaced."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
