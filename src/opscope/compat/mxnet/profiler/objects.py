"""Domain, Task, Frame, Event, Counter, Marker: usable before, while and after the profiler runs."""

from __future__ import annotations

import threading

from opscope.compat.mxnet.base import MXNetError
from opscope.compat.mxnet.profiler.marks import Count, Mark, Stretch, now, timeline

_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "p", "marker": "p"}


class Domain:
    """Groups what is marked; its name is the category in the trace and the table."""

    def __init__(self, name: str) -> None:
        self.name = str(name)

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """A counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A marker of this domain."""
        return Marker(self, name)


class _Timed:
    """Something that starts and stops, any number of times. Stopping what has not started: nothing.
    Starting again what runs begins anew."""

    _sort = ""

    def __init__(self, category: str, name: str) -> None:
        self.name = str(name)
        self._category = category
        self._running: Stretch | None = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """It begins now."""
        self.stop()
        self._running = Stretch(self._category, self.name, self._sort, now())
        timeline.stretches.append(self._running)

    def stop(self) -> None:
        """It ends now."""
        running, self._running = self._running, None
        if running is not None:
            running.end_ns = now()


class Task(_Timed):
    """A piece of work; passes add up in the table."""

    _sort = "task"

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(str(domain), name)


class Frame(_Timed):
    """One pass of something that repeats."""

    _sort = "frame"

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(f"{domain},frame", name)


class Event(_Timed):
    """A stretch without a domain of its own."""

    _sort = "event"

    def __init__(self, name: str) -> None:
        super().__init__("event", name)


class Counter:
    """A whole number that changes. It counts always, and is recorded while the profiler runs."""

    def __init__(self, domain: Domain, name: str, value: int | None = None) -> None:
        self.name = str(name)
        self.domain = domain
        self._value = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: int) -> None:
        """It is now `value`."""
        self._become(0, int(value))

    def increment(self, delta: int = 1) -> None:
        """It grows by `delta`."""
        self._become(1, int(delta))

    def decrement(self, delta: int = 1) -> None:
        """It shrinks by `delta`."""
        self._become(1, -int(delta))

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self

    def _become(self, keep: int, delta: int) -> None:
        with self._lock:
            self._value = self._value * keep + delta
            if timeline.on:
                timeline.counts.append(Count(str(self.domain), self.name, self._value, now()))


class Marker:
    """A moment with a name."""

    def __init__(self, domain: Domain, name: str) -> None:
        self.name = str(name)
        self.domain = domain

    def mark(self, scope: str = "process") -> None:
        """It is now. MXNetError for an unknown scope."""
        if scope not in _SCOPES:
            raise MXNetError(f"a marker's scope is one of {', '.join(_SCOPES)}, not {scope!r}")
        if timeline.on:
            category = f"{self.domain},instant_marker"
            timeline.marks.append(Mark(category, self.name, _SCOPES[scope], now()))
