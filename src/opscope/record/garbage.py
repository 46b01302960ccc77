"""Pauses of Python's garbage collector, as chores: nobody owns them, wherever they happen.

Whatever finalizers do in a pause belongs to nobody either, so no call is billed for it.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import numpy as np

from opscope.model import SPAN, Kind
from opscope.record import scope
from opscope.record.lookout import Lookout
from opscope.record.recorder import BOUND, Recorder
from opscope.record.scope import Frame
from opscope.record.writer import Writer

#: What a failing callback is called.
WHERE = "garbage collection"
_RUNTIME = int(Kind.RUNTIME)


@contextmanager
def collections_seen(recorder: Recorder) -> Iterator[None]:
    """Inside the block every collection on any thread is recorded. Costs nothing between them."""
    pauses = Pauses(recorder)
    told, callbacks = pauses.told, gc.callbacks
    callbacks.append(told)
    recorder.listeners.append(pauses.heard)
    try:
        yield
    finally:
        recorder.listeners.remove(pauses.heard)
        # By identity: the program's own callbacks may compare as they like.
        places = [place for place, found in enumerate(callbacks) if found is told]
        for place in reversed(places):
            del callbacks[place]
        scope.collecting(False)  # where a finalizer ends the recording
        if not places:
            recorder.notes.append(
                "the program took opscope's callback out of gc.callbacks: garbage collection "
                "after that is not shown as runtime but as part of what it interrupted"
            )
        pauses.deliver()


class Pauses:
    """What `gc.callbacks` is told. One collection runs at a time in an interpreter."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        #: (ident, lane or -1, generation, start, end, CPU time) of what was not delivered yet.
        self._waiting: deque[tuple[int, int, int, int, int, int]] = deque()
        self.lost = 0
        self.told = self._teller()

    def _teller(self) -> Callable[[str, dict[str, Any]], None]:
        """The callback. One closure, because young collections come in their thousands."""
        recorder, now = self._recorder, self._recorder.now
        stand_aside, step_back, collecting = scope.stand_aside, scope.step_back, scope.collecting
        anywhere = scope.COLLECTS_ANYWHERE
        frame: Frame | None = None
        start_ns = 0
        cpu = -1

        def told(phase: str, info: dict[str, Any]) -> None:
            """A collection begins or ends, on the calling thread. No error of its own gets out."""
            nonlocal frame, start_ns, cpu
            try:
                if anywhere:
                    collecting(phase == "start")
                if phase == "start":
                    if recorder.paused_ns or recorder.closed or WHERE in recorder.off:
                        return
                    frame = stand_aside()
                    if frame is not None:
                        # Asking takes longer than a young collection, which hardly ever waits.
                        cpu = recorder.cpu() if info["generation"] else -1
                    start_ns = now()
                elif start_ns:
                    end_ns, began = now(), start_ns
                    start_ns, lane, used = 0, -1, -1
                    if frame is not None:
                        step_back(frame)
                        frame = None
                        # Elsewhere it cannot be asked now: the thread may be half started, or hold
                        # the very locks that answering takes.
                        lane = recorder.here().lane
                        used = recorder.cpu() - cpu if cpu >= 0 else end_ns - began
                    if end_ns > began:
                        self._keep(lane, info["generation"], began, end_ns, used)
            except Exception as error:
                start_ns = 0
                if frame is not None:
                    step_back(frame)
                    frame = None
                recorder.fault(WHERE, error)

        return told

    def _keep(self, lane: int, generation: int, start_ns: int, end_ns: int, used: int) -> None:
        if len(self._waiting) < BOUND:
            self._waiting.append((get_ident(), lane, generation, start_ns, end_ns, used))
        else:
            self.lost += 1

    def forget(self) -> None:
        """Let go of what was not delivered."""
        self._waiting.clear()

    def heard(self, moment: str) -> None:
        """A listener of the recorder."""
        if moment == "tick":
            self.deliver()

    def deliver(self) -> None:
        """Give the recorder the pauses there were. One thread at a time; never raises."""
        try:
            if not self._recorder.closed:
                self._deliver(self._recorder)
        except Exception as error:
            self._recorder.fault(WHERE, error)

    def _deliver(self, recorder: Recorder) -> None:
        found = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if self.lost:
            recorder.notes.append(f"{self.lost:,} garbage collections were lost for want of room")
            self.lost = 0
        if not found:
            return
        threads = {thread.ident: thread for thread in threading.enumerate()}
        # Those on threads of ours are not the program's.
        found = [row for row in found if not isinstance(threads.get(row[0]), Writer | Lookout)]
        homeless = {row[0] for row in found if row[1] < 0}
        lanes = {ident: self._lane(ident) for ident in homeless}
        names = {n: recorder.name(f"gc generation {n}") for n in {row[2] for row in found}}
        table = np.zeros(len(found), SPAN)
        for made, (ident, lane, generation, start_ns, end_ns, used) in zip(
            table, found, strict=True
        ):
            made["id"], made["kind"], made["name"] = recorder.next_id(), _RUNTIME, names[generation]
            made["lane"] = made["submitted_lane"] = lane if lane >= 0 else lanes[ident]
            made["start_ns"], made["end_ns"], made["cpu_ns"] = start_ns, end_ns, used
        if found:
            recorder.add(table)

    def _lane(self, ident: int) -> int:
        """The lane of a thread on which no call was open; one for all that are not known.

        None is made for the thread: it may be over, and the next one of this ident would get it.
        """
        recorder = self._recorder
        if ident == threading.main_thread().ident:
            return recorder.lane_of(ident)
        for buffer in list(recorder.buffers):
            if buffer.ident == ident and (thread := buffer.thread()) and thread.is_alive():
                return buffer.lane
        return recorder.lane("garbage collection", "garbage collection")
