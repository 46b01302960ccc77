"""Threads of an exported trace as the lanes they show: what crosses on a lane has more than one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opscope.importers.building import Builder
from opscope.model import Lane

Ints = NDArray[np.int64]

UNTOLD = "threads that the file has no name for"
FOREIGN = "processes that the file does not describe"


class Told(Protocol):
    """What the names of threads and processes say."""

    name: str | None
    lane: str | None
    kind: str
    thread: int
    index: int
    pid: int


class Tracks:
    """Numbers threads as they are met."""

    def __init__(self) -> None:
        self._number: dict[tuple[int, int], int] = {}
        self._told: dict[tuple[int, int], Told] = {}
        self._pids: dict[int, int] = {}

    def of(self, pid: int, tid: int) -> int:
        """The number of a thread."""
        found = self._number.get((pid, tid))
        if found is None:
            found = self._number[pid, tid] = len(self._number)
        return found

    def tell(self, what: str, pid: int, tid: int, told: Told) -> None:
        """Metadata, `thread_name` and so on."""
        if what == "thread_name" and told.lane is not None:
            self._told[pid, tid] = told
            self.of(pid, tid)
        elif what == "process_name":
            self._pids[pid] = told.pid

    def pids(self) -> dict[int, int]:
        """The system's process ids by number in the trace, of all processes with threads."""
        return {pid: self._pids.get(pid, 0) for pid, _ in self._number}

    def build(self, builder: Builder, processes: Mapping[int, int]) -> Ints:
        """Make the lanes; their entries by number of the thread. `processes` are the entries of
        processes by number in the trace."""
        untold = [place for place in self._number if place not in self._told]
        builder.quality.count(UNTOLD, len(untold), [f"tid {tid}" for _, tid in untold])
        entries = np.zeros(len(self._number), np.int64)
        made: dict[Hashable, int] = {}
        for place in sorted(self._number, key=self._order):
            pid, tid = place
            told = self._told.get(place)
            process = processes.get(pid, 0)
            if told is None:
                key: Hashable = place
                lane = Lane(f"thread {tid}", process=process)
            else:
                same = (told.lane, told.kind, told.thread)
                key = (pid, told.index if told.index >= 0 else same)
                kind = told.kind or "thread"
                lane = Lane(told.lane or "", kind, process, told.thread)
            if key not in made:
                made[key] = len(builder.lanes)
                builder.lanes.append(lane)
            entries[self._number[place]] = made[key]
        return entries

    def _order(self, place: tuple[int, int]) -> tuple[bool, int, int, int]:
        told = self._told.get(place)
        return (told is None, told.index if told is not None else 0, *place)
