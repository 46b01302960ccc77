"""What a program itself marks while the profiler runs: stretches, counters, moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opscope.record.clock import SystemClock

now = SystemClock.now


@dataclass(slots=True, eq=False)
class Stretch:
    """A task, frame or event from start to stop; `end_ns` is 0 until it has stopped."""

    category: str
    name: str
    sort: str
    start_ns: int
    end_ns: int = 0


@dataclass(frozen=True, slots=True)
class Count:
    """A counter had this value from this moment on."""

    category: str
    name: str
    value: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment; `scope` as Chrome has it: g, p or t."""

    category: str
    name: str
    scope: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A stretch as far as the profiler was on: its first and last moment, and the time between."""

    stretch: Stretch
    start_ns: int
    end_ns: int
    active_ns: int


class Timeline:
    """Appends from any thread. Of stretches, only what lies in the time the profiler was on shows;
    counts and marks are taken while it is on."""

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self.counts: list[Count] = []
        self.marks: list[Mark] = []
        self._windows: list[tuple[int, int]] = []
        self._since = 0

    @property
    def on(self) -> bool:
        """Whether the profiler runs now."""
        return self._since > 0

    def turn(self, on: bool) -> None:
        """The profiler goes on or off now. One thread at a time."""
        if on and not self._since:
            self._since = now()
        elif not on and self._since:
            self._windows.append((self._since, now()))
            self._since = 0

    def start_ns(self) -> int:
        """When the profiler first went on; 0: never."""
        return self._windows[0][0] if self._windows else self._since

    def seen(self) -> Iterator[Seen]:
        """All stretches that the profiler saw anything of; those still open up to now."""
        end_ns = now()
        since = self._since
        windows = [*self._windows, *([(since, end_ns)] if since else [])]
        for stretch in list(self.stretches):
            until = stretch.end_ns or end_ns
            cut = [
                (max(stretch.start_ns, begin), min(until, end))
                for begin, end in windows
                if begin <= until and stretch.start_ns <= end
            ]
            if cut:
                active = sum(end - begin for begin, end in cut)
                yield Seen(stretch, cut[0][0], cut[-1][1], active)


#: The one there is; a forked child clears it.
timeline = Timeline()
