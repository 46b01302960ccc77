"""How busy was each thread and each device stream?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opscope.attribution import among
from opscope.attribution.cover import Axis
from opscope.model import Kind, Session

#: Kinds that say nothing about a lane being busy.
_IDLE = (Kind.WAIT, Kind.RANGE, Kind.STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """One lane. Nanoseconds; `first_ns` and `last_ns` count from the start of the session.

    `busy_ns` is the time covered by anything but waits and annotations.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        *("process", "lane", "kind", "thread", "spans", "calls", "busy_ns", "first_ns", "last_ns"),
    )

    process: int
    lane: str
    kind: str
    thread: int | None
    spans: int
    calls: int
    busy_ns: int
    first_ns: int | None
    last_ns: int | None


def lanes(session: Session) -> tuple[LaneRow, ...]:
    """One row for each lane, in the order they were first seen."""
    spans, zero = session.spans, session.start_ns
    count = len(session.lanes)
    lane = spans["lane"].astype(np.int64)
    number = np.bincount(lane, minlength=count).tolist()
    calls = np.bincount(lane[spans["kind"] == Kind.CALL], minlength=count).tolist()
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, lane, spans["start_ns"])
    np.maximum.at(last, lane, np.maximum(spans["start_ns"], spans["end_ns"]))
    used = first <= last
    axis = Axis(np.where(used, first, 0), np.where(used, last, 0))
    work = ~among(spans, _IDLE)
    busy = axis.covered(lane[work], spans["start_ns"][work], spans["end_ns"][work]).tolist()
    return tuple(
        LaneRow(
            process=session.processes[entry.process].pid,
            lane=entry.name,
            kind=entry.kind,
            thread=entry.thread or None,
            spans=number[index],
            calls=calls[index],
            busy_ns=busy[index],
            first_ns=int(first[index]) - zero if used[index] else None,
            last_ns=int(last[index]) - zero if used[index] else None,
        )
        for index, entry in enumerate(session.lanes)
    )
