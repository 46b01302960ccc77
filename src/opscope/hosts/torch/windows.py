"""Windows: torch's profiler is stopped, its events are delivered, and it is started again, so that
memory stays bounded however long the program runs."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from opscope.hosts.torch.delivery import Delivery
from opscope.hosts.torch.kineto import Kineto
from opscope.hosts.torch.mainly import Mainly
from opscope.hosts.torch.operators import HOST
from opscope.hosts.torch.quiet import Quiet
from opscope.hosts.torch.times import Anchor, anchor
from opscope.model import Sight
from opscope.record import Recorder, watch

#: Events in a window before the next quiet moment is taken to deliver them. torch holds 1.5 kB for
#: each.
EVENTS = 200_000
#: Seconds until the rate of events is known, and the least and most that a window lasts.
_FIRST_S, _LEAST_S, _MOST_S = 1.0, 0.2, 10.0
#: The rate may rise within a window: so much more memory in use ends it too. Where no quiet moment
#: comes, so many times that much is the end of collecting.
_GROWN_BYTES = 500_000_000
_PATIENCE = 4
#: How often, and how many seconds apart, to look whether others' operators have ended.
_TRIES, _PAUSE_S = 10, 0.005
_OFF = "torch profiler"
_IN_USE = (
    "torch.profiler was still in use by the program in the end: for that time there are calls, "
    "waits and tasks, and no sub-operators"
)


#: Threads that ran an operator when torch's profiler was stopped last, in whichever recording.
_unfinished: set[int] = set()


class Windows:
    """Collects for one recording. Any thread.

    A window ends at `step`, or when the main thread has been asked, and no operator is running on
    any thread: torch's profiler cannot be started again safely while one is.
    """

    def __init__(self, recorder: Recorder, delivery: Delivery) -> None:
        self.recorder = recorder
        self.delivery = delivery
        self.kineto = Kineto()
        self.quiet = Quiet(recorder.clock)
        self._lock = threading.RLock()
        self._mainly = Mainly(lambda: self._at_ease(interrupting=True))
        self._since: Anchor | None = None  # while it collects
        self._held = False  # somebody else's profiler is running
        self._wanted = False  # to be started at the next quiet moment
        self._over = ""  # why it is not started again
        self._due = False
        self._length_s = _FIRST_S
        self._resident = 0  # bytes in use when the window began
        self._restarts = 0
        self._gap_ns = 0
        self._blind_from = self._blind_ns = 0  # since when, and for how long, it could not start
        self._borrowed = 0  # profiles of the program's own whose events were taken

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Inside the block events are collected; on exit all of them are delivered."""
        with self.delivery.listening(), self.quiet.watched():
            with self._lock:
                self._held = self.kineto.busy
                if not self._held:
                    self._start()
            self.recorder.listeners.append(self._told)
            try:
                yield
            finally:
                self.recorder.listeners.remove(self._told)
                with self._lock:
                    self._over = self._over or "the recording is over"
                    self._finish()
                    self._see_again()
                if self._held:
                    # Said of the whole recording: it holds for calls that have none.
                    words = ("sub-operators", "dispatch of custom_op and backward")
                    unseen = Sight(HOST, misses=dict.fromkeys(words, _IN_USE))
                    self.recorder.sight.append(unseen)
                self.recorder.notes += self._notes()

    def drop(self) -> None:
        """In a forked child: let go of torch's profiler, whose events are the parent's affair."""
        self._lock = threading.RLock()
        if self._since is not None:
            self._since = None
            with suppress(Exception):
                self.kineto.stop()

    def hold(self) -> None:
        """Somebody else is about to start torch's profiler, of which there is one a process.

        Operators that run on other threads are given a moment to end: see `quiet`.
        """
        with self._lock:
            collected = self._since is not None
            self._finish()
            self._held, self._wanted = True, False
            for _ in range(_TRIES if collected and _unfinished else 0):
                if self.quiet.others():
                    break
                time.sleep(_PAUSE_S)

    def release(self, events: list[Any], since: Anchor | None) -> None:
        """They are done with it, and these are the events they got."""
        with self._lock:
            if self._held:
                self._held = False
                if since is not None:
                    until = anchor(self.recorder.clock)
                    self.delivery.deliver(events, since, until, python=True)
                    self._borrowed += 1
                if watch.recorder is self.recorder:
                    self._start()

    # --- moments ----------------------------------------------------------------------------------

    def _told(self, moment: str) -> None:
        if moment == "pause":
            with self._lock:
                self._wanted = False
                self._finish()
        elif moment in ("warm up", "resume"):  # what comes before the resumption is left out
            with self._lock:
                if not self._held and self._since is None:
                    self._start()
        elif not self.recorder.paused_ns:
            self._look_at_size()
            if self._due or self._wanted:
                if moment == "step":
                    self._at_ease()
                else:
                    self._mainly.ask()

    def _look_at_size(self) -> None:
        since = self._since
        if since is None:
            return
        grown = resident() - self._resident
        age_s = (self.recorder.now() - since.mono_ns) / 1e9
        self._due = age_s >= self._length_s or grown > _GROWN_BYTES
        if grown > _GROWN_BYTES * _PATIENCE:
            with self._lock:
                self._over = "it held too much memory, and operators ran all the time"
                self._finish()

    def _at_ease(self, *, interrupting: bool = False) -> None:
        """End the window, or begin the next, if no operator is running on any thread."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not (self._due or self._wanted) or self.recorder.paused_ns:
                return
            if not self.quiet.now(interrupting=interrupting):
                return
            began = self.recorder.now()
            if self._since is not None:
                self._finish()
                if threading.get_native_id() in _unfinished:
                    # Whatever was looked at did not tell: not to be tried again.
                    self._over = "an operator was running unseen when it was emptied"
                self._restarts += 1
            self._start()
            ended = self.recorder.now()
            self._gap_ns += ended - began
            self.delivery.gap(began, ended)
        except Exception as error:
            self.recorder.fault(_OFF, error)
        finally:
            self._lock.release()

    # --- starting and stopping --------------------------------------------------------------------

    def _start(self) -> None:
        self._due = self._wanted = False
        if self._over or _OFF in self.recorder.off:
            return
        if _unfinished:
            _unfinished.difference_update([t for t in list(_unfinished) if _gone(t)])
        if _unfinished and not self.quiet.now():
            self._wanted = True
            self._blind_from = self._blind_from or self.recorder.now()
            return
        _unfinished.clear()
        try:
            self.kineto.start()
        except Exception as error:
            self.recorder.fault(_OFF, error)
            return
        self._see_again()
        self._since = anchor(self.recorder.clock)
        self._resident = resident()

    def _see_again(self) -> None:
        """Calls that ran while nothing could be collected lack sub-operators."""
        if self._blind_from:
            now = self.recorder.now()
            self.recorder.lost(self._blind_from, now)
            self._blind_ns += now - self._blind_from
            self._blind_from = 0

    def _finish(self) -> None:
        """Stop and deliver; nothing happens while nothing is collected."""
        since, self._since = self._since, None
        self._due = False
        if since is None:
            return
        try:
            until = anchor(self.recorder.clock)
            events = self.kineto.stop()
            _unfinished.update(self.kineto.unfinished(events))
            self.delivery.deliver(events, since, until)
            age_s = max((until.mono_ns - since.mono_ns) / 1e9, 1e-3)
            wanted = age_s * EVENTS / max(len(events), 1)
            self._length_s = min(max(wanted, _LEAST_S), _MOST_S)
        except Exception as error:
            self.recorder.fault(_OFF, error)

    def _notes(self) -> Iterator[str]:
        yield from self.delivery.notes()
        if self._borrowed:
            yield (
                f"events of the program's own torch.profiler ({_times(self._borrowed)}) were taken "
                "for the time it ran; other threads only as far as it saw them"
            )
        if self._held:
            yield _IN_USE
        if self._restarts:
            text = f"torch's profiler was emptied {_times(self._restarts)}"
            text += f", {self._gap_ns / 1e6:,.0f} ms in all"
            if missed := self.delivery.missed:
                calls = "1 call" if missed == 1 else f"{missed:,} calls"
                text += f"; {calls} of other threads ran meanwhile and may lack sub-operators"
            yield text
        if self._blind_ns:
            yield (
                f"for {self._blind_ns / 1e6:,.0f} ms torch's profiler could not be started, and "
                "operators are missing: one that had begun before was still running"
            )
        if self._over and self._over != "the recording is over":
            yield f"torch's profiler was stopped early, later operators are missing: {self._over}"


def resident() -> int:
    """Bytes of memory that this process has in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0


def _gone(thread: int) -> bool:
    """Whether there is no thread of that number of the system's any more."""
    return os.path.isdir("/proc/self/task") and not os.path.exists(f"/proc/self/task/{thread}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
