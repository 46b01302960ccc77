"""The host of the built-in engine: owners taken at push time, spans where the work ran."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from opscope._version import __version__
from opscope.model import Flag, Kind, LinkKind, Op, Phase, Sight
from opscope.record import InFlight, Recorder, on_stacks, operators_in_c, scope, tasks, watch
from opscope.record.scope import Frame

if TYPE_CHECKING:
    from opscope.engine.calls import Call, CustomOpInfo
    from opscope.engine.graph import Task


class EngineHost:
    """Operators and custom operators of `opscope.engine`, whichever kind of engine is in use."""

    name = "engine"
    module: str | None = "opscope.engine"

    def probe(self) -> Sight:
        """See `Host.probe`."""
        return Sight(
            self.name,
            __version__,
            (
                "calls",
                "sub-operators",
                "dispatch",
                "waits",
                "runtime",
                "cpu",
                "threads",
                "backward",
            ),
            {
                "pushed unrecorded": "operators pushed before recording began, or while it was "
                "paused, are not shown",
                "still queued": "operators that had not begun when recording ended are not shown: "
                "wait for them (waitall) inside the recording",
            },
        )

    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        """See `Host.attach`."""
        from opscope.engine.graph import CHORE, HIDDEN, Task
        from opscope.engine.hooks import hooks
        from opscope.engine.pool import Worker

        watcher = _Watcher(recorder)
        known = len(hooks.broken)
        tasks.machinery.add(Worker)
        recorder.in_flight.append(watcher.running)
        native = operators_in_c(recorder, Task, CHORE, HIDDEN, hooks.failed)
        if native is not None:
            watcher.row = native.row
        with ExitStack() as stack:
            for moment in _MOMENTS:
                direct = native is not None and hasattr(native, moment)
                hook = getattr(native if direct else watcher, moment)
                hooks.add(moment, hook, direct=direct)
                stack.callback(hooks.remove, moment, hook)
            try:
                yield
            finally:
                for moment, _, error in hooks.broken[known:]:
                    recorder.fault(f"engine hook {moment!r}", error)


_MOMENTS = (
    "pushed",
    "started",
    "finished",
    "call_began",
    "body_began",
    "body_ended",
    "call_ended",
    "wait_began",
    "wait_ended",
)

# Fields of a row of `model.SPAN` that are filled in on the way.
_ID, _NAME, _FLAGS, _LANE, _START, _END, _CPU = 0, 2, 5, 6, 8, 9, 11

# A plain number: arithmetic with the enumeration costs more than a clock.
_FAILED = int(Flag.FAILED)


class _Watcher:
    """What is told at each moment. A task's `note` is its row in the making, a call's its frame.

    `pushed`, `started`, `finished` and `row` are the reference for those in C, which take their
    place where the recorder is native.
    """

    def __init__(self, recorder: Recorder) -> None:
        from opscope.engine.graph import CHORE, CUSTOM, HIDDEN

        self.recorder = recorder
        self._chore, self._custom, self._hidden = CHORE, CUSTOM, HIDDEN
        self._names: dict[CustomOpInfo, int] = {}
        self._dispatching = recorder.name("dispatch")
        self._waits: dict[int, tuple[Frame, int]] = {}
        self.row: Callable[[Task], Any] = self._row

    # --- operators: the hot path ------------------------------------------------------------------

    def pushed(self, task: Task) -> None:
        recorder = watch.recorder
        kind = task.kind
        if recorder is not self.recorder or kind == self._hidden:
            return
        lane = recorder.here().lane
        if kind == self._chore:
            row = [0, 0, 0, Kind.RUNTIME, 0, 0, lane, lane, 0, 0, recorder.now(), -1]
            task.note = self, row
            return
        frame = scope.current(recorder)
        owner, phase = (frame.call, frame.phase) if frame is not None else (0, 0)
        row = [0, owner, 0, Kind.OP, phase, 0, lane, lane, 0, 0, recorder.now(), -1]
        task.note = self, row

    def _row(self, task: Task) -> Any:
        """What `pushed` of this recording left with the task: an earlier one's is not ours."""
        maker, row = task.note or (None, None)
        return row if maker is self else None

    def started(self, task: Task) -> None:
        row = self._row(task)
        if row is None:
            return
        recorder = self.recorder
        span = row[_ID] = recorder.next_id()
        row[_NAME] = recorder.name(task.name)
        row[_LANE] = recorder.here().lane
        if scope.held() is not None:
            # Inside a call on this very thread: its own CPU time needs this one's.
            row[_CPU] = recorder.cpu()
        recorder.opened[span] = row
        row[_START] = recorder.now()

    def finished(self, task: Task) -> None:
        row = self._row(task)
        if row is None or not row[_START]:
            return
        recorder = self.recorder
        row[_END] = recorder.now()
        if row[_CPU] >= 0:
            # An asynchronous one may end on any thread; what counts is the one it began on.
            home = recorder.here().lane == row[_LANE]
            now = recorder.cpu() if home else recorder.cpu_on(row[_LANE])
            row[_CPU] = max(now - row[_CPU], 0) if now >= 0 else -1
        if task.error is not None:
            row[_FLAGS] |= _FAILED
        recorder.put(tuple(row))
        recorder.opened.pop(row[_ID], None)

    # --- custom operators -------------------------------------------------------------------------

    def call_began(self, call: Call) -> None:
        recorder = self.recorder
        row = self.row(call.task) if call.task is not None else None
        if row is None and watch.recorder is not recorder:
            return
        owner, submitted_ns, submitted_lane = (row[1], row[10], row[7]) if row else (-1, 0, -1)
        if row is None and call.task is not None:
            outer = self._frame(call.outer)
            owner = outer.call if outer is not None else 0
        frame = scope.enter(
            recorder,
            self._name(call.op),
            _phase(call),
            submitted_ns=submitted_ns,
            submitted_lane=submitted_lane,
            under=owner,
        )
        call.note = frame
        forward = self._frame(call.forward)
        if forward is not None:
            recorder.link(LinkKind.BACKWARD, frame.call, forward.call)

    def body_began(self, call: Call) -> None:
        frame = self._frame(call)
        if frame is not None:
            row = self.recorder.opened.get(frame.call)
            if row is not None:
                now = self.recorder.now()
                self._dispatch(frame, row[_START], now, self.recorder.cpu() - frame.cpu)

    def body_ended(self, call: Call) -> None:
        frame = self._frame(call)
        if frame is not None:
            frame.mark = (self.recorder.now(), self.recorder.cpu())

    def call_ended(self, call: Call) -> None:
        frame = self._frame(call)
        if frame is None:
            return
        flags = 0 if call.error is None else _FAILED
        if frame.mark is None:
            scope.leave(frame, flags)
            return
        # One look at each clock serves the call and its wrapper.
        now, cpu = self.recorder.now(), self.recorder.cpu()
        began_ns, began_cpu = frame.mark
        self._dispatch(frame, began_ns, now, cpu - began_cpu)
        scope.leave(frame, flags, max(cpu - frame.cpu, 0) if frame.cpu >= 0 else -1, now)

    def wait_began(self, what: str) -> None:
        recorder = watch.recorder
        if recorder is not self.recorder:
            return
        frame = scope.current(recorder)
        if frame is not None and frame.call and not frame.waiting:
            self._waits[threading.get_ident()] = (frame, scope.wait_begin(frame))

    def wait_ended(self, what: str) -> None:
        found = self._waits.pop(threading.get_ident(), None)
        if found is not None:
            scope.wait_end(found[0], self.recorder.name(what), found[1])

    def running(self) -> Iterator[InFlight]:
        """Custom calls that are on some thread's stack now."""
        module = sys.modules["opscope.engine.custom_run"]
        runners = frozenset((module._run.__code__, module.call_here.__code__))
        for thread, depth, frame in on_stacks(runners):
            call = frame.f_locals["call"]
            if call.thread is None:
                continue  # about to begin, or over and only handing on what it held
            known = call.note if isinstance(call.note, Frame) else None

            def bind(made: Frame, call: Call = call) -> None:
                call.note = made

            yield InFlight(thread, depth, self._name(call.op), _phase(call), known, bind)

    def _frame(self, call: Call | None) -> Frame | None:
        """The frame a call has in this recording."""
        frame = call.note if call is not None else None
        return frame if isinstance(frame, Frame) and frame.recorder is self.recorder else None

    def _dispatch(self, frame: Frame, start_ns: int, end_ns: int, cpu_ns: int) -> None:
        recorder = self.recorder
        recorder.put(
            (recorder.next_id(), frame.call, self._dispatching, Kind.DISPATCH, frame.phase, 0,
             frame.lane, frame.lane, start_ns, max(end_ns, start_ns), 0, max(cpu_ns, 0))
        )  # fmt: skip

    def _name(self, info: CustomOpInfo) -> int:
        known = self._names.get(info)
        if known is None:
            op = Op(
                "engine",
                info.kind,
                info.name,
                info.qualified or info.name,
                "",
                info.registration,
                info.file,
                info.line,
            )
            known = self._names[info] = self.recorder.op(op)
        return known


def _phase(call: Any) -> Phase:
    return Phase.BACKWARD if call.direction == "backward" else Phase.FORWARD
