"""A session as a trace for Chrome and Perfetto: strict JSON, written as it is made.

One slice for each span, slices for own time, arrows. Slices of one thread of the trace never cross.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import TextIO

from opscope.model import Session
from opscope.present.arrows import arrows
from opscope.present.slices import Slices
from opscope.present.threads import Threads, threads


def chrome_events(session: Session) -> Iterator[str]:
    """Each event as the text of a JSON object: names of processes and threads, slices, arrows."""
    where = threads(session)
    yield from _names(session, where)
    slices = Slices(session, where)
    yield from slices.events()
    yield from arrows(session, where)


def write_chrome(session: Session, file: TextIO) -> None:
    """Write the whole trace to a text file opened for UTF-8, event by event.

    Times are microseconds from the session's start, with three decimals: whole nanoseconds.
    """
    file.write('{"traceEvents": [')
    separator = "\n"
    for event in chrome_events(session):
        file.write(separator)
        file.write(event)
        separator = ",\n"
    other = {
        "producer": "opscope",
        "start_ns": session.start_ns,
        "processes": [
            {"pid": number + 1, "system_pid": process.pid, "command": list(process.command)}
            for number, process in enumerate(session.processes)
        ],
    }
    file.write('\n],\n"displayTimeUnit": "ns",\n"otherData": ')
    file.write(json.dumps(other, allow_nan=False))
    file.write("}\n")


def _names(session: Session, where: Threads) -> Iterator[str]:
    """Metadata: what the dense numbers stand for."""
    for number, process in enumerate(session.processes):
        # Without folders: viewers cut a name at its last slash.
        command = " ".join(PurePath(part).name or part for part in process.command)
        title = f"{command} ({process.pid})" if command else f"process {process.pid}"
        yield _metadata("process_name", number + 1, 0, {"name": title, "pid": process.pid})
        yield _metadata("process_sort_index", number + 1, 0, {"sort_index": number})
    for thread in where.every:
        lane = session.lanes[thread.lane]
        title = lane.name if not thread.track else f"{lane.name} ({thread.track + 1})"
        args = {"name": title, "lane": lane.name, "kind": lane.kind, "thread": lane.thread}
        yield _metadata("thread_name", thread.pid, thread.tid, args)
        yield _metadata("thread_sort_index", thread.pid, thread.tid, {"sort_index": thread.tid})


def _metadata(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    event = {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}
    return json.dumps(event, allow_nan=False)
