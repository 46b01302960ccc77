"""Stretches of a process's time (pauses, losses) against the calls that ran through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.cover import united
from opscope.model import Rows, Session

Ints = NDArray[np.int64]


def pauses(session: Session, rows: Ints) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
    """(index into `rows`, start, end) of each pause that a span ran through."""
    which, stretch = _overlaps(session, rows, session.pauses)
    return which, session.pauses["start_ns"][stretch], session.pauses["end_ns"][stretch]


def awake(
    session: Session, spans: Table
) -> tuple[NDArray[Any], NDArray[Any], Callable[[NDArray[Any], Ints], Ints]]:
    """Start and end of every span in recorded time, and what brings other moments there: a function
    of lanes and moments.

    Recorded time stands still while its process is paused, so a difference leaves pauses out.
    """
    start, end, lane = spans["start_ns"], spans["end_ns"], spans["lane"]
    pauses = session.pauses[session.pauses["end_ns"] > session.pauses["start_ns"]]
    if not len(pauses):
        return start, end, lambda lane, moment_ns: moment_ns
    process = np.array([entry.process for entry in session.lanes] or [0])
    clocks = [
        (number, *_stretches(pauses[pauses["process"] == number]))
        for number in np.unique(pauses["process"]).tolist()
    ]

    def moved(lane: NDArray[Any], moment_ns: NDArray[Any]) -> Ints:
        of = process[np.clip(lane, 0, len(process) - 1)]
        moved_ns: Ints = moment_ns.astype(np.int64)
        for number, first, last, before in clocks:
            mine = np.flatnonzero(of == number)
            moment = moved_ns[mine]
            place = np.searchsorted(first, moment, side="right") - 1
            paused = before[place] + np.minimum(moment, last[place]) - first[place]
            moved_ns[mine] = moment - np.where(place >= 0, paused, 0)
        return moved_ns

    return moved(lane, start), moved(lane, end), moved


def _stretches(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """(start, end) of stretches that share no time, in order, and the time in those before."""
    first, last = united(*(rows[key].astype(np.int64) for key in ("start_ns", "end_ns")))
    length = last - first
    return first, last, np.cumsum(length) - length


def losses(session: Session, rows: Ints) -> NDArray[np.bool_]:
    """Whether spans were dropped while each of `rows` ran."""
    lossy = np.zeros(len(rows), bool)
    lossy[_overlaps(session, rows, session.drops)[0]] = True
    return lossy


def _overlaps(session: Session, rows: Ints, stretches: Rows) -> tuple[Ints, Ints]:
    """Pairs (index into rows, index into stretches) that share time in the same process."""
    which: list[Ints] = [np.empty(0, np.int64)]
    stretch: list[Ints] = [np.empty(0, np.int64)]
    if len(stretches):
        spans = session.spans[rows]
        lanes = np.array([lane.process for lane in session.lanes] or [0])
        process = lanes[np.clip(spans["lane"], 0, len(lanes) - 1)]
        for number in np.unique(stretches["process"]):
            mine = np.flatnonzero(stretches["process"] == number)
            mine = mine[np.argsort(stretches["start_ns"][mine], kind="stable")]
            start = stretches["start_ns"][mine]
            # Where stretches overlap the later end decides: the search needs ends that never fall.
            reach = np.maximum.accumulate(stretches["end_ns"][mine])
            index = np.flatnonzero(process == number)
            first = np.searchsorted(reach, spans["start_ns"][index], side="right")
            last = np.searchsorted(start, spans["end_ns"][index], side="left")
            count = np.maximum(last - first, 0)
            which.append(np.repeat(index, count))
            offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            stretch.append(mine[np.repeat(first, count) + offset])
    return np.concatenate(which), np.concatenate(stretch)
