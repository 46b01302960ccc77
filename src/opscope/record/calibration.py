"""What recording itself costs in this process, measured before a recording begins.

A throw-away recorder of the kind in use records a little work. What its spans are longer than that
is the cost inside them, and what the rest took is the cost outside, which is billed to whatever is
around.
"""

from __future__ import annotations

import gc
import statistics
import threading
from collections.abc import Callable, Iterator
from itertools import repeat
from time import perf_counter_ns
from typing import Any

import numpy as np

from opscope.model import SPAN, Flag, Kind, Op, Phase
from opscope.record import extension, scope
from opscope.record.garbage import Pauses
from opscope.record.recorder import Recorder
from opscope.record.scope import Frame
from opscope.record.tasks import Carried
from opscope.record.writer import Writer

#: By word: (ns inside the span, ns outside of it).
Costs = dict[str, tuple[int, int]]

#: Begins and ends a call of a marked function.
Begin = Callable[[Recorder], Frame | None]
End = Callable[[Frame], None]

#: So many times each is done in a row, and so many such rows there are. What disturbs makes it
#: slower, never faster, so one of the quickest rows is taken.
_TIMES, _ROWS, _QUICK = 25, 9, 2

_TURNS = range(60)
#: Whose spans have the work in them.
_WORKS = ("call", "task", "wait")

_known: dict[type[Recorder], Costs] = {}
_once = threading.Lock()


def costs(begin: Begin, end: End) -> Costs:
    """Measured the first time it is asked in a process, in a few ms; then known.

    `begin` and `end` are what a marked function does, without a look at who is recording now.
    """
    with _once:
        kind = type(Recorder(_Rows()))
        if kind not in _known:
            _known[kind] = _measured(begin, end)
        return dict(_known[kind])


def tell(recorder: Recorder, found: Costs) -> None:
    """Have them written with the first flush."""
    waiting = [("costs", found)] if found else []

    def source(last: bool) -> list[tuple[str, Any]]:
        return [waiting.pop()] if waiting else []

    recorder.sources.append(source)


class _Rows:
    """A sink that keeps the spans."""

    def __init__(self) -> None:
        self.spans = b""

    def put(self, word: str, data: Any) -> None:
        if word == "spans":
            self.spans += data

    def flush(self) -> None: ...
    def abandon(self) -> None: ...
    def close(self) -> None: ...


def _measured(begin: Begin, end: End) -> Costs:
    sink = _Rows()
    recorder = Recorder(sink)
    writer = Writer(recorder)
    found: Costs = {}
    written: list[float] = []
    held, collecting = scope.held(), gc.isenabled()
    scope.push(None)
    gc.disable()  # a collection is none of these
    try:
        for word, (recorded, bare) in _kinds(recorder, begin, end).items():
            sink.spans = b""
            # The work itself beside it, where it is in the span.
            beside = (_work,) if word in _WORKS else ()
            whole, plain, *within = _each(recorded, bare, *beside)
            began = perf_counter_ns()
            writer.flush()
            spans = np.frombuffer(sink.spans, SPAN)
            if len(spans):
                written.append((perf_counter_ns() - began) / len(spans))
            length = spans["end_ns"] - spans["start_ns"]
            quick = round(float(np.percentile(length, 100 * _QUICK / _ROWS))) if len(spans) else 0
            inside = max(quick - sum(within), 0)
            found[word] = inside, max(whole - plain - inside, 0)
    finally:
        scope.push(held)
        if collecting:
            gc.enable()
        recorder.closed = True
    found["write"] = 0, round(statistics.median(written))
    return found


def _each(*works: Callable[[], object]) -> list[int]:
    """What each takes, in ns. In turns, since the machine may change its pace meanwhile."""
    rows: list[list[int]] = [[] for _ in works]
    for _ in range(_ROWS):
        for work, row in zip(works, rows, strict=True):
            began = perf_counter_ns()
            for _ in repeat(None, _TIMES):
                work()
            row.append(perf_counter_ns() - began)
    return [round(sorted(row)[_QUICK] / _TIMES) for row in rows]


Work = tuple[Callable[[], object], Callable[[], object]]


def _kinds(recorder: Recorder, begin: Begin, end: End) -> dict[str, Work]:
    """By word what is recorded, and the same where nobody records."""
    return {
        "call": (_call(recorder, begin, end), _call(None, begin, end)),
        "task": (Carried(_work, recorder, "task"), _work),
        "handover": (lambda: Carried(_nothing, recorder, "task"), _nothing),
        "wait": (_wait(recorder), _work),
        "dispatch": (_put(recorder), _nothing),
        "range": (lambda: recorder.end(recorder.begin(Kind.RANGE, 0, owner=0)), _nothing),
        "runtime": (_pause(recorder), _nothing),
        **dict(_operator(recorder)),
    }


def _nothing() -> None: ...


def _work(*args: Any, **kwargs: Any) -> object:
    """A few hundred instructions, so that what is measured meets a processor busy with others."""
    total = 0
    for n in _TURNS:
        total += n & 7
    return total


def _call(recorder: Recorder | None, begin: Begin, end: End) -> Callable[[], object]:
    def call(*args: Any, **kwargs: Any) -> object:
        if recorder is None or (frame := begin(recorder)) is None:
            return _work(*args, **kwargs)
        try:
            result = _work(*args, **kwargs)
        except BaseException:
            scope.leave(frame, Flag.FAILED)
            raise
        end(frame)
        return result

    return call


def _wait(recorder: Recorder) -> Callable[[], object]:
    name = recorder.op(Op("", "", "around"))

    def wait() -> None:
        frame = scope.current(recorder) or around
        entry = recorder.name("wait")
        start_ns = scope.wait_begin(frame)
        try:
            _work()
        finally:
            scope.wait_end(frame, entry, start_ns)

    around = scope.enter(recorder, name)
    scope.leave(around)
    recorder.flush()
    return wait


def _put(recorder: Recorder) -> Callable[[], object]:
    def put() -> None:
        lane, now = recorder.here().lane, recorder.now()
        recorder.put(
            (recorder.next_id(), 0, 0, Kind.DISPATCH, 0, 0, lane, lane, now, recorder.now(), 0, -1)
        )

    return put


def _pause(recorder: Recorder) -> Callable[[], object]:
    pauses = Pauses(recorder)
    told = pauses.told

    def pause() -> None:
        told("start", {"generation": 0})
        told("stop", {"generation": 0})
        pauses.forget()

    return pause


def _operator(recorder: Recorder) -> Iterator[tuple[str, Work]]:
    """An operator of an engine: pushed on one thread, run on any."""
    task = _Task()
    native = extension.native
    if native is not None and type(recorder) is not Recorder:
        seen = native.Operators(recorder, {"recorder": recorder}, _Task, 1, 2, _nobody)
        pushed, started, finished = seen.pushed, seen.started, seen.finished
    else:
        pushed, started, finished = _pushed(recorder), _started(recorder), _finished(recorder)

    def push() -> None:
        pushed(task)

    def run() -> None:
        pushed(task)
        started(task)
        finished(task)

    yield "push", (push, _nothing)
    yield "op", (run, push)


class _Task:
    __slots__ = ("error", "kind", "name", "note")

    def __init__(self) -> None:
        self.kind, self.name = 0, "op"
        self.note: Any = None
        self.error: BaseException | None = None


def _nobody(*args: Any) -> None: ...


def _pushed(recorder: Recorder) -> Callable[[_Task], None]:
    def pushed(task: _Task) -> None:
        lane = recorder.here().lane
        frame = scope.current(recorder)
        owner, phase = (frame.call, frame.phase) if frame is not None else (0, Phase.NONE)
        task.note = [0, owner, 0, Kind.OP, phase, 0, lane, lane, 0, 0, recorder.now(), -1]

    return pushed


def _started(recorder: Recorder) -> Callable[[_Task], None]:
    def started(task: _Task) -> None:
        row = task.note
        span = row[0] = recorder.next_id()
        row[2] = recorder.name(task.name)
        row[6] = recorder.here().lane
        recorder.opened[span] = row
        row[8] = recorder.now()

    return started


def _finished(recorder: Recorder) -> Callable[[_Task], None]:
    def finished(task: _Task) -> None:
        row = task.note
        row[9] = recorder.now()
        recorder.put(tuple(row))
        recorder.opened.pop(row[0], None)

    return finished
