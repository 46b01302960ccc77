"""Lanes of a Chrome trace: a thread of a process each, or a run of asynchronous events."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from opscope.importers.building import Builder

Ints = NDArray[np.int64]


class Told(msgspec.Struct, gc=False):
    """What metadata say of a process or thread."""

    name: str | int | float | None = None
    sort_index: float | None = None


class Lanes:
    """Numbers lanes as they are met. Names and order are told anywhere in the file."""

    def __init__(self) -> None:
        self._number: dict[Hashable, int] = {}
        self._thread: list[tuple[Any, Any]] = []
        self._title: list[str] = []
        self._names: dict[tuple[str, Any, Any], str] = {}
        self._sort: dict[tuple[str, Any, Any], float] = {}

    def of_thread(self, pid: Any, tid: Any) -> int:
        """The lane of a thread."""
        return self._lane(("thread", pid, tid), (pid, tid), "")

    def of_run(self, pid: Any, category: str, run: Hashable, scope: str) -> int:
        """The lane of asynchronous events that share an id."""
        title = f"{category or 'async'} {run if not isinstance(run, tuple) else run[-1]}"
        return self._lane(("run", category, run, scope), (pid, None), title)

    def _lane(self, key: Hashable, thread: tuple[Any, Any], title: str) -> int:
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self._title)
            self._thread.append(thread)
            self._title.append(title)
        return found

    def tell(self, what: str, pid: Any, tid: Any, told: Told) -> None:
        """Metadata: `what` is thread_name, process_sort_index ..."""
        of, _, field = what.partition("_")
        key = (of, pid, tid if of == "thread" else None)
        if field == "name" and told.name not in (None, ""):
            self._names[key] = str(told.name)
        elif field == "sort_index" and told.sort_index is not None:
            self._sort[key] = told.sort_index

    def build(self, builder: Builder) -> Ints:
        """Make the lanes, in the order in which they are to stand; their entries by number."""
        places = sorted(range(len(self._title)), key=self._order)
        several = len({repr(pid) for pid, _ in self._thread}) > 1
        names = [self._name(lane, several) for lane in range(len(self._title))]
        entries = np.zeros(len(names), np.int64)
        taken: dict[str, int] = {}
        for lane in places:
            _, tid = self._thread[lane]
            name = names[lane]
            if taken.setdefault(name, lane) != lane:
                name = f"{name} ({tid if not self._title[lane] else lane})"
            thread = tid if isinstance(tid, int) and 0 <= tid < 2**31 else 0
            entries[lane] = builder.lane(("lane", lane), name, thread=int(thread))
        return entries

    def _order(self, lane: int) -> tuple[float, int, float, int]:
        pid, tid = self._thread[lane]
        process = self._sort.get(("process", pid, None), 0.0)
        thread = self._sort.get(("thread", pid, tid), 0.0)
        return process, self._first(pid), thread, lane

    def _first(self, pid: Any) -> int:
        """The first lane of a process, so that its lanes stand together."""
        firsts: dict[Any, int] = {}
        if not hasattr(self, "_firsts"):
            for lane, (of, _) in enumerate(self._thread):
                firsts.setdefault(of, lane)
            self._firsts = firsts
        return self._firsts[pid]

    def _name(self, lane: int, several: bool) -> str:
        pid, tid = self._thread[lane]
        name = self._title[lane] or self._names.get(("thread", pid, tid))
        if name is None:
            name = f"thread {tid}" if tid is not None else "thread"
        if several:
            name = f"{self._names.get(('process', pid, None), f'process {pid}')}: {name}"
        return name
