"""Generators and coroutines driven step by step: current while they run, suspended is `wait`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from opscope.hosts.python.operators import HOST, Marked, end
from opscope.model import Flag, Kind
from opscope.record import Recorder, put_suspended, scope, watch
from opscope.record.scope import Frame


class Steps:
    """One call that runs in steps: between `enter` and `leave` it is current on that thread.

    None of the methods raises.
    """

    __slots__ = (
        "asleep_ns",
        "frame",
        "inside",
        "marked",
        "started",
        "task",
        "timed",
        "top",
        "used",
    )

    def __init__(self, marked: Marked) -> None:
        self.marked = marked
        self.frame: Frame | None = None
        self.top: Frame | None = None  # the innermost frame when it was suspended
        self.started = False
        self.inside = False  # a step is running
        self.asleep_ns = 0
        self.used = 0  # CPU time up to the last suspension, on the call's own lane
        self.timed = True
        self.task = (0, 0)  # a step on another thread: its span, and CPU time at its start

    def enter(self) -> None:
        """A step begins on this thread."""
        frame = self.frame
        if frame is None or frame.closed or frame.recorder.closed:
            recorder = watch.recorder
            if recorder is None or HOST in recorder.off:
                self.take(None)
            else:
                self.take(self.marked.begin(recorder, Flag.CLAMPED if self.started else Flag(0)))
        else:
            self._wake(frame)
        self.started = self.inside = True

    def take(self, frame: Frame | None) -> None:
        """This is the call's frame from now on; the call is running."""
        self.frame = self.top = frame
        self.used, self.asleep_ns, self.task = 0, 0, (0, 0)
        self.timed = frame is not None and frame.cpu >= 0
        if frame is not None:
            _begun[id(self)] = self

    def _wake(self, frame: Frame) -> None:
        recorder = frame.recorder
        frame.outer = scope.link(frame)
        scope.push(self.top)
        try:
            if recorder.here().lane != frame.lane:
                # Resumed by another thread: at home it still sleeps, and works elsewhere meanwhile.
                name = self.marked.name_in(recorder)
                task = recorder.begin(Kind.TASK, name, owner=frame.call, phase=frame.phase)
                self.task = task, recorder.cpu()
                return
            if self.asleep_ns:
                put_suspended(recorder, frame, self.asleep_ns, recorder.now())
                self.asleep_ns = 0
            frame.cpu = recorder.cpu() - self.used
        except Exception as error:
            recorder.fault(HOST, error)

    def leave(self) -> None:
        """The step is over: suspended, returned or raised."""
        self.inside = False
        frame = self.frame
        if frame is None:
            return
        try:
            if not frame.recorder.closed:
                self._fall_asleep(frame.recorder, frame)
        except Exception as error:
            frame.recorder.fault(HOST, error)
        finally:
            self._unlink(frame)

    def _fall_asleep(self, recorder: Recorder, frame: Frame) -> None:
        now = recorder.now()
        task, cpu = self.task
        if task:
            self.task = (0, 0)
            recorder.end(task, cpu_ns=max(recorder.cpu() - cpu, 0), end_ns=now)
            return
        self.used = max(recorder.cpu() - frame.cpu, 0)
        self.asleep_ns = now

    def _unlink(self, frame: Frame) -> None:
        """Take the frame off the chain, with whatever is still open inside it."""
        top = scope.held()
        if scope.within(top, frame):
            self.top = top
            scope.push(frame.outer)
        else:
            self.top = frame
        if scope.adopted:
            scope.release(frame)

    def finish(self, flags: int) -> None:
        """The call is over."""
        _begun.pop(id(self), None)
        frame = self.frame
        if frame is None:
            return
        recorder = frame.recorder
        try:
            if self.asleep_ns and not recorder.closed and recorder.here().lane != frame.lane:
                put_suspended(recorder, frame, self.asleep_ns, recorder.now())
        except Exception as error:
            recorder.fault(HOST, error)
        end(frame, flags, self.used_so_far())

    def used_so_far(self) -> int:
        """CPU time up to the last suspension, -1 when it cannot be told."""
        return self.used if self.timed else -1


#: Calls that have begun and are not over, by the id of their steps.
_begun: dict[int, Steps] = {}


def suspended(recorder: Recorder) -> list[Steps]:
    """Calls of that recording that stand still, or work on another thread than at home."""
    return [
        steps
        for steps in list(_begun.values())
        if steps.asleep_ns and steps.frame is not None and steps.frame.recorder is recorder
    ]


def stepwise(steps: Steps, inner: Any) -> Generator[Any, Any, Any]:
    """Pass every send, throw and close on to `inner`, each inside `steps`."""
    action, value = inner.send, None
    while True:
        steps.enter()
        try:
            # In a list, so as not to hold what is handed out.
            item = [action(value)]
        except StopIteration as stop:
            return stop.value
        finally:
            value = None
            steps.leave()
        action = inner.send
        try:
            value = yield item.pop()
        except BaseException as error:  # GeneratorExit too: what to make of it is up to `inner`
            action, value = inner.throw, error


class Step:
    """One `asend` or `athrow` of an async generator, or a whole coroutine."""

    __slots__ = ("_inner", "_steps")

    def __init__(self, steps: Steps, inner: Any) -> None:
        self._steps = steps
        self._inner = inner

    def __await__(self) -> Generator[Any, Any, Any]:
        return stepwise(self._steps, self._inner)
