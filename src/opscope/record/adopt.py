"""Calls that run across an edge of a recording: a start, a pause, an end.

Other threads do not stand still meanwhile, so whatever was found is looked at twice.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from types import CodeType, FrameType

from opscope.model import Flag, Kind, Phase
from opscope.record import scope
from opscope.record.recorder import Recorder
from opscope.record.scope import Frame
from opscope.record.stacks import current_frames
from opscope.record.tasks import Carried

_TASK = Carried.__call__.__code__


@dataclass(slots=True)
class InFlight:
    """A running call that a host found. `depth` tells which of a thread's calls is inside which."""

    thread: int
    depth: int
    name: int  #: its operator's entry of the names; -1: not to be taken in if it is not known
    phase: Phase
    frame: Frame | None  #: the frame it has, of this recording or an earlier one
    bind: Callable[[Frame], None]  #: gives the host the frame to leave when the call ends
    used: Callable[[], int] | None = None  #: its CPU time so far, where its thread does not tell
    asleep_ns: int = 0  #: since when it has been suspended; 0: it has not


def everywhere() -> Iterator[tuple[int, int, FrameType]]:
    """(thread, depth, frame) of every running frame, outermost first, thread by thread."""
    for thread, top in current_frames().items():
        stack: list[FrameType] = []
        frame: FrameType | None = top
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        for depth, found in enumerate(reversed(stack)):
            yield thread, depth, found


def on_stacks(codes: frozenset[CodeType]) -> Iterator[tuple[int, int, FrameType]]:
    """(thread, depth, frame) of every running frame of these code objects, on all threads."""
    for thread, depth, frame in everywhere():
        if frame.f_code in codes:
            yield thread, depth, frame


def adopt(recorder: Recorder) -> None:
    """Give every running call that the recording does not know a row that begins now.

    Called with all hosts attached, right after recording was switched on, on any thread.
    """
    new: list[Frame] = []
    for thread, calls in groupby(_found(recorder), key=lambda call: call.thread):
        new += _adopt_on(recorder, thread, calls)
    for thread, frames in list(scope.adopted.items()):
        if any(frame.recorder is not recorder for frame in frames):
            scope.adopted.pop(thread, None)  # of an earlier recording, and over by now
    if new:
        _drop_ended(recorder, new)


def _adopt_on(recorder: Recorder, thread: int, calls: Iterable[InFlight]) -> list[Frame]:
    """The same for the calls of one thread, from the outside in; returns the new frames."""
    before = scope.adopted.get(thread, ())
    new: list[Frame] = []
    current: list[Frame] = []
    outer: Frame | None = None
    first: Frame | None = None
    for call in calls:
        frame = call.frame
        if frame is not None and frame.recorder is recorder:
            if outer is not None and outer in new:
                outer.around += (frame,)
            if frame in before:
                current.append(frame)
            outer, first = frame, None
        elif call.name >= 0 and (frame is None or not frame.left):
            outer = _take_in(recorder, call, outer)
            first = first or outer
            current.append(outer)
            new.append(outer)
    if first is not None and thread == threading.get_ident():
        # In the context as well, for the sake of asyncio tasks that copy it.
        first.outer = scope.link()
        scope.push(outer)
    if new:
        scope.adopted[thread] = tuple(current)
    return new


def settle(recorder: Recorder) -> None:
    """End the calls and tasks that are still on, as incomplete, with the CPU time used so far.

    Called when recording has been switched off, while the hosts are still attached. What nobody
    finds stays open, and is written as such.
    """
    if recorder.closed:
        return
    now = recorder.now()
    for call in _found(recorder):
        frame = call.frame
        if frame is None or frame.recorder is not recorder:
            continue
        if call.used is not None:
            used = call.used()
        elif frame.lane == recorder.lane_of(call.thread):
            cpu = _cpu(recorder, call.thread)
            used = max(cpu - frame.cpu, 0) if frame.cpu >= 0 and cpu >= 0 else -1
        else:
            continue
        if scope.claim(frame):
            if call.asleep_ns:
                put_suspended(recorder, frame, call.asleep_ns, now)
            span = frame.task or frame.call
            recorder.end(span, flags=Flag.INCOMPLETE, cpu_ns=used, end_ns=now)
        scope.pull(frame)  # its host may be gone when it ends
    _forget_waits(recorder)


def put_suspended(recorder: Recorder, frame: Frame, start_ns: int, end_ns: int) -> None:
    """Take the suspension of a generator or coroutine, a wait of the call itself."""
    recorder.put(
        (recorder.next_id(), frame.call, recorder.name("suspended"), Kind.WAIT, frame.phase,
         Flag.SUSPENDED, frame.lane, frame.lane, start_ns, end_ns, 0, -1)
    )  # fmt: skip


def _forget_waits(recorder: Recorder) -> None:
    """Who waits in a call of the recording may do so for ever, and would keep all of it."""
    for wait in list(scope._waiting):
        if wait[1].recorder is recorder:
            scope._waiting.discard(wait)


def _found(recorder: Recorder) -> list[InFlight]:
    """All running calls, by thread and from the outside in; tasks too.

    Without garbage collection: in CPython 3.11 it may start where a frame of another thread is
    looked at, a finalizer may then let that thread run on, and the frame is gone while in use.
    """
    found: list[InFlight] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for finder in (_tasks, *recorder.in_flight):
            try:
                found.extend(finder())
            except Exception as error:
                recorder.fault("finding calls in flight", error)
    finally:
        if collecting:
            gc.enable()
    found.sort(key=lambda call: (call.thread, call.depth))
    return found


def _tasks() -> Iterator[InFlight]:
    """Tasks that are being run for a call: what begins in them belongs to it."""
    for thread, depth, frame in on_stacks(frozenset((_TASK,))):
        known = frame.f_locals.get("frame")
        if known is not None:
            yield InFlight(thread, depth, -1, known.phase, known, lambda frame: None)


def _take_in(recorder: Recorder, call: InFlight, outer: Frame | None) -> Frame:
    # Always a new frame: one of an earlier recording is its thread's, which does not stand still.
    frame = Frame(recorder, outer, 0, call.phase)
    frame.lane = recorder.lane_of(call.thread)
    frame.cpu = _cpu(recorder, call.thread)
    frame.call = recorder.begin(
        Kind.CALL,
        call.name,
        owner=outer.call if outer is not None else 0,
        phase=call.phase,
        flags=Flag.CLAMPED,
        lane=frame.lane,
        start_ns=recorder.since_ns,
    )
    call.bind(frame)
    return frame


def _cpu(recorder: Recorder, thread: int) -> int:
    if thread == threading.get_ident():
        return recorder.cpu()
    # What others have used since a pause began cannot be told apart.
    return -1 if recorder.paused_ns else recorder.cpu_of(thread)


def _drop_ended(recorder: Recorder, new: list[Frame]) -> None:
    """Let go of calls that ended while they were being taken in, and so were never left."""
    running = {id(call.frame) for call in _found(recorder)}
    for frame in new:
        if frame.left or id(frame) not in running:
            frame.left = frame.closed = True
            scope.release(frame)
            for wrapper, bound in list(scope.late.items()):
                if bound is frame:
                    scope.late.pop(wrapper, None)
            if scope.claim(frame):
                recorder.end(frame.call, flags=Flag.INCOMPLETE)
