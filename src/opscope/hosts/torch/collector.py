"""Windows: torch's profiler is stopped, its events are converted, and it is started again, so that
memory stays bounded however long the program runs."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late import Context, Events, Forward, join
from opscope.hosts.torch.columns import Tables, read
from opscope.hosts.torch.functions import Functions
from opscope.hosts.torch.kineto import Kineto
from opscope.hosts.torch.knowledge import customs
from opscope.hosts.torch.known import Dispatcher
from opscope.hosts.torch.operators import HOST, Operators
from opscope.hosts.torch.times import Anchor, anchor, to_mono
from opscope.hosts.torch.turns import Turns
from opscope.model import SPAN, Flag, Kind, LinkKind, Rows
from opscope.record import Recorder, watch

#: Events in a window before the next moment at which nothing is lost is taken to convert them.
#: torch holds 1.5 kB for each.
EVENTS = 200_000
#: Seconds until the rate of events is known, and the least and most that a window lasts.
_FIRST_S, _LEAST_S, _MOST_S = 1.0, 0.2, 10.0
#: The rate may rise within a window: so much more memory in use ends it too.
_GROWN_BYTES = 500_000_000
#: A call that never ends cannot hold up the conversion for longer than so many windows.
_PATIENCE = 5


class Collector:
    """Collects torch's events for one recording and delivers them as spans. Any thread."""

    def __init__(self, recorder: Recorder, operators: Operators, functions: Functions) -> None:
        self.recorder = recorder
        self.operators = operators
        self.functions = functions
        self.turns = Turns(recorder)
        self.kineto = Kineto()
        self.due = False
        self._lock = threading.RLock()
        self._dispatcher = Dispatcher()
        self._rows: list[bytes] = []
        self._since: Anchor | None = None  # while it collects
        self._held = False  # somebody else's profiler is running
        self._length_s = _FIRST_S
        self._resident = 0  # bytes in use when the window began
        self._forward = Forward()
        self._restarts = 0
        self._gap_ns = 0
        self._missed = 0
        self._orphans = 0
        self._merged = 0
        self._borrowed = 0  # profiles of the program's own whose events were taken

    # --- from outside -----------------------------------------------------------------------------

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Inside the block events are collected; on exit all of them are delivered."""
        recorder = self.recorder
        recorder.taps.append(self._rows.append)
        recorder.listeners.append(self._told)
        hooks = ExitStack()
        hooks.enter_context(self.turns.noted())
        with self._lock:
            self._held = self.kineto.busy
            if not self._held:
                self._start()
        try:
            yield
        finally:
            recorder.listeners.remove(self._told)
            hooks.close()
            with self._lock:
                self._finish()
            recorder.taps.remove(self._rows.append)
            self._say()

    def between_calls(self) -> None:
        """A call has just ended: convert now if it is time and no call is open."""
        if self.due and not self._open_calls():
            self._rotate()

    def drop(self) -> None:
        """In a forked child: let go of torch's profiler, whose events are the parent's affair."""
        self._lock = threading.RLock()
        if self._since is not None:
            self._since = None
            with suppress(Exception):
                self.kineto.stop()

    def hold(self) -> None:
        """Somebody else is about to start torch's profiler, of which there is one a process."""
        with self._lock:
            self._finish()
            self._held = True

    def release(self, events: list[Any], since: Anchor | None) -> None:
        """They are done with it, and these are the events they got."""
        with self._lock:
            if not self._held:
                return
            self._held = False
            if since is not None:
                self._deliver(events, since, anchor(self.recorder.clock))
                self._borrowed += 1
            if watch.recorder is self.recorder:
                self._start()

    # --- windows ----------------------------------------------------------------------------------

    def _told(self, moment: str) -> None:
        if moment == "pause":
            with self._lock:
                self._finish()
        elif moment in ("warm up", "resume"):  # what comes before the resumption is left out
            with self._lock:
                if not self._held and self._since is None:
                    self._start()
        elif self.recorder.paused_ns:
            return
        elif self._since is not None:
            age_s = (self.recorder.now() - self._since.mono_ns) / 1e9
            grown = resident() - self._resident > _GROWN_BYTES
            self.due = age_s >= self._length_s or grown
            late = age_s >= self._length_s * _PATIENCE
            if self.due and (moment == "step" or late or not self._open_calls()):
                self._rotate()

    def _open_calls(self, *, elsewhere: bool = False) -> int:
        """How many calls are open, on any thread or on threads other than this one."""
        here = self.recorder.here().lane if elsewhere else -1
        opened = list(self.recorder.opened.values())
        return sum(row[3] == Kind.CALL and row[6] != here for row in opened)

    def _rotate(self) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._since is None or not self.due:
                return
            began = self.recorder.now()
            before = self._open_calls(elsewhere=True)
            self._finish()
            self._start()
            ended = self.recorder.now()
            self._restarts += 1
            self._gap_ns += ended - began
            missed = max(before, self._open_calls(elsewhere=True))
            self._missed += missed
            if missed:
                self.recorder.lost(began, ended)
            elif self._open_calls():
                # Only calls around this place are open, and nothing of theirs ran meanwhile.
                self.recorder.pauses.append((began, ended))
        except Exception as error:
            self.recorder.fault("torch profiler", error)
        finally:
            self._lock.release()

    def _start(self) -> None:
        self.due = False
        if "torch profiler" in self.recorder.off:
            return
        try:
            self.kineto.start()
        except Exception as error:
            self.recorder.fault("torch profiler", error)
            return
        self._since = anchor(self.recorder.clock)
        self._resident = resident()

    def _finish(self) -> None:
        """Stop and deliver; nothing happens while nothing is collected."""
        since, self._since = self._since, None
        self.due = False
        if since is None:
            return
        try:
            until = anchor(self.recorder.clock)
            events = self.kineto.stop()
            self._deliver(events, since, until)
            age_s = max((until.mono_ns - since.mono_ns) / 1e9, 1e-3)
            wanted = age_s * EVENTS / max(len(events), 1)
            self._length_s = min(max(wanted, _LEAST_S), _MOST_S)
        except Exception as error:
            self.recorder.fault("torch profiler", error)

    # --- delivery ---------------------------------------------------------------------------------

    def _deliver(self, events: list[Any], since: Anchor, until: Anchor) -> None:
        recorder = self.recorder
        recorder.flush()
        recorded = self._recorded(until.mono_ns)
        columns = read(events, self._tables(since, until))
        columns = _between(columns, max(since.mono_ns, recorder.since_ns), until.mono_ns)
        names = recorder.tables.names
        seen = [names[entry] for entry in np.unique(columns.name).tolist()]
        hooked = HOST not in recorder.off
        known = customs(
            self.operators.all(), seen, self._dispatcher, recorder.name, recorder.op, hooked=hooked
        )
        linked, self.functions.linked = self.functions.linked, set()
        context = Context(
            known, self._ids, recorder.name("dispatch"), frozenset(linked), self._forward
        )
        joined = join(columns, recorded, context)
        self._forward = joined.forward
        self._orphans += joined.unattributed
        self._merged += sum(text.startswith("CompiledFunctionBackward") for text in seen)
        # What is open will be told in the end by whoever ends it; turns are never shown.
        hidden = (joined.rows["id"] < 0) | np.isin(joined.rows["id"], list(recorder.opened))
        recorder.add(joined.rows[~hidden])
        for kind, source, target in joined.links:
            recorder.link(LinkKind(kind), source, target)

    def _recorded(self, now_ns: int) -> Rows:
        """The rows recorded since the last delivery, and the open calls and tasks as they stand."""
        batch, self._rows[:] = list(self._rows), []
        parts = [self.turns.rows(), *(np.frombuffer(rows, SPAN) for rows in batch)]
        still = [
            (*row[:5], row[5] | Flag.INCOMPLETE, *row[6:9], now_ns, row[10], -1)
            for row in list(self.recorder.opened.values())
            if row[3] in (Kind.CALL, Kind.TASK) and row[8]
        ]
        if still:
            parts.append(np.array(still, SPAN))
        return np.concatenate(parts)

    def _tables(self, since: Anchor, until: Anchor) -> Tables:
        recorder = self.recorder
        threads = {
            lane.thread: number
            for number, lane in enumerate(recorder.tables.lanes)
            if lane.kind == "thread" and lane.thread
        }

        def lane(thread: int, device: int, is_device: bool) -> int:
            if is_device:
                key = ("torch stream", device, thread)
                return recorder.lane(key, f"device {device} stream {thread}", "stream")
            known = threads.get(thread)
            if known is not None:
                return known
            return recorder.lane(("torch thread", thread), f"thread {thread}", thread=thread)

        def time(wall_ns: NDArray[np.int64]) -> NDArray[np.int64]:
            return to_mono(since, until, wall_ns)

        return Tables(recorder.name, lane, time)

    def _ids(self, count: int) -> NDArray[np.int64]:
        next_id = self.recorder.next_id
        return np.fromiter((next_id() for _ in range(count)), np.int64, count)

    def _say(self) -> None:
        """What a reader should know about the collection."""
        notes = self.recorder.notes
        if self._borrowed:
            notes.append(
                f"events of the program's own torch.profiler ({_times(self._borrowed)}) were taken "
                "for the time it ran; other threads only as far as it saw them"
            )
        if self._held:
            notes.append(
                "torch.profiler was still in use by the program in the end: for that time there "
                "are calls, waits and tasks, and no sub-operators"
            )
        if self._restarts:
            notes.append(
                f"torch's profiler was emptied {_times(self._restarts)}, "
                f"{self._gap_ns / 1e6:,.0f} ms in all; {self._missed:,} calls were running then "
                "and may lack sub-operators"
            )
        if self._orphans:
            notes.append(
                f"{self._orphans:,} device spans belong to nobody: no call of the runtime and no "
                "operator has their number (work of a captured graph, or launched unseen)"
            )
        if self._merged:
            notes.append(
                "torch.compile merged backward formulas into CompiledFunctionBackward: what part "
                "of it each custom operator was cannot be told"
            )


def resident() -> int:
    """Bytes of memory that this process has in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _between(events: Events, from_ns: int, to_ns: int) -> Events:
    """Without what began outside; what was still on at the end is cut off there."""
    inside = (events.start_ns >= from_ns) & (events.start_ns <= to_ns)
    return events if inside.all() else events.take(inside)
