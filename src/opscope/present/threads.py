"""Dense process and thread numbers of a trace: a thread for each lane and each of its tracks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import tracks
from opscope.model import Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Thread:
    """`track` 0 is the lane itself, others take what would cross there."""

    pid: int
    tid: int
    lane: int
    track: int


@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """`of_span` is the index into `every` for each span, by row."""

    every: tuple[Thread, ...]
    of_span: Ints


def threads(session: Session) -> Threads:
    """Numbers from 1, unique: processes in their order, of each its lanes, device streams last."""
    lane = session.spans["lane"].astype(np.int64)
    track = tracks(session)
    most = np.zeros(len(session.lanes), np.int64)
    np.maximum.at(most, lane, track)
    first = np.zeros(len(session.lanes), np.int64)
    every: list[Thread] = []
    order = sorted(range(len(session.lanes)), key=lambda i: _rank(session, i))
    for index in order:
        first[index] = len(every)
        for number in range(int(most[index]) + 1):
            pid = session.lanes[index].process + 1
            every.append(Thread(pid, len(every) + 1, index, number))
    return Threads(tuple(every), first[lane] + track)


def _rank(session: Session, lane: int) -> tuple[int, bool, int]:
    """Viewers show tracks by number, and call the first of a process its main thread."""
    return session.lanes[lane].process, session.lanes[lane].kind == "stream", lane


def microseconds(value_ns: int) -> str:
    """Whole nanoseconds as microseconds with three decimals, exactly."""
    sign = "-" if value_ns < 0 else ""
    whole, rest = divmod(abs(value_ns), 1000)
    return f"{sign}{whole}.{rest:03d}"
