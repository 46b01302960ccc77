"""Calls of custom operators' functions: begun, ended, and found while they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from opscope.hosts.torch.operators import HOST, Watched
from opscope.model import Flag, Kind, Phase
from opscope.record import InFlight, Recorder, on_stacks, scope, watch
from opscope.record.scope import Frame

# Plain numbers: arithmetic with the enumerations costs more than a clock.
_FAILED = int(Flag.FAILED)
_ESTIMATED = int(Flag.ESTIMATED)
_DISPATCH = int(Kind.DISPATCH)
#: What torch raises to break off a recomputation when it has what it needs. Nothing failed then.
_NO_MORE = "_StopRecomputationError"


class Calls:
    """Runs functions as calls of one recording."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._names = recorder.name("dispatch")
        recorder.in_flight.append(self._running)

    def run(
        self,
        op: Watched,
        phase: Phase,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        began: Callable[[Frame], None] | None = None,
    ) -> Any:
        """`function(*args, **kwargs)` as a call of `op`; unrecorded when that cannot be.

        `running` reads the locals `op`, `phase`, `frame` and `over`.
        """
        frame = self._begin(op, phase, began)
        flags = _FAILED
        try:
            result = function(*args, **kwargs)
            flags = 0
            return result
        except BaseException as error:
            if type(error).__name__ == _NO_MORE:
                flags = 0
            raise
        finally:
            over = True  # noqa: F841
            if frame is not None:
                self._end(frame, flags)
            if scope.late:
                self._end_late(flags)

    def guarded(self, moment: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same without raising: a fault of ours is noted, and the program goes on."""

        def quiet(context: Any) -> None:
            try:
                moment(context)
            except Exception as error:
                self.recorder.fault(HOST, error)

        return quiet

    def _begin(
        self, op: Watched, phase: Phase, began: Callable[[Frame], None] | None
    ) -> Frame | None:
        recorder = self.recorder
        if watch.recorder is not recorder or HOST in recorder.off:
            return None
        try:
            frame = scope.enter(recorder, op.entry(recorder), phase)
            if began is not None:
                began(frame)
            return frame
        except Exception as error:
            recorder.fault(HOST, error)
            return None

    def _end(self, frame: Frame, flags: int) -> None:
        recorder = self.recorder
        try:
            if frame.mark is None:
                scope.leave(frame, flags)  # which looks at the clocks itself, and faster
                return
            now = recorder.now()
            here = frame.cpu >= 0 and recorder.here().lane == frame.lane
            used = max(recorder.cpu() - frame.cpu, 0) if here else -1
            row = recorder.opened.get(frame.call)
            first, last = frame.mark
            if first > 0 and row is not None:
                self._dispatch(frame, row[8], first)
                self._dispatch(frame, last or now, now)
            scope.leave(frame, flags, used, now)
        except Exception as error:
            recorder.fault(HOST, error)

    def _end_late(self, flags: int) -> None:
        """End the call of the caller's frame if recording began meanwhile and found it running."""
        wrapper = sys._getframe(1)
        frame = scope.late.get(wrapper)
        if frame is not None:
            try:
                scope.leave(frame, flags)
            except Exception as error:
                self.recorder.fault(HOST, error)
            scope.late.pop(wrapper, None)

    def _dispatch(self, frame: Frame, start_ns: int, end_ns: int) -> None:
        if end_ns > start_ns:
            # How much CPU time the wrapper took is not measured: taken to have been busy.
            self.recorder.put(
                (self.recorder.next_id(), frame.call, self._names, _DISPATCH, frame.phase,
                 _ESTIMATED, frame.lane, frame.lane, start_ns, end_ns, 0, end_ns - start_ns)
            )  # fmt: skip

    def _running(self) -> Iterator[InFlight]:
        """Calls that are on some thread's stack now."""
        for thread, depth, frame in on_stacks(frozenset((_RUN,))):
            found = frame.f_locals
            if "over" in found:
                continue
            known = scope.late.get(frame) or found.get("frame")
            if known is None and "flags" not in found:
                continue  # it is about to begin its call itself
            op, phase = found["op"], found["phase"]
            name = op.entry(self.recorder)
            yield InFlight(thread, depth, name, phase, known, _Later(frame))


class _Later:
    """Gives a wrapper that runs unrecorded the frame it has to end."""

    def __init__(self, wrapper: FrameType) -> None:
        self._wrapper = wrapper

    def __call__(self, frame: Frame) -> None:
        scope.late[self._wrapper] = frame


_RUN = Calls.run.__code__


def is_run(frame: FrameType) -> bool:
    """Whether a frame is one of `Calls.run`: what it runs has a hook."""
    return frame.f_code is _RUN
