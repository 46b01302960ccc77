"""Wrong numbers and unlucky moments: they cost a span at most, never the program or its chain."""

from __future__ import annotations

import contextvars
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from opscope import custom_op, profile
from opscope.engine.graph import Task
from opscope.model import SPAN, Kind
from opscope.record import Recorder, extension, operators_in_c, scope
from opscope.record.garbage import collections_seen
from opscope.store import MemorySink
from opscope.testing import ManualClock

#: See tests/conftest.py.
COLLECTIONS = True

native: Any = extension.native
needs_native = pytest.mark.skipif(native is None, reason=extension.missing or "it is there")
anywhere = pytest.mark.skipif(
    not scope.COLLECTS_ANYWHERE, reason="garbage is collected between two instructions only"
)


@pytest.fixture
def recorder(recorder_kind: str) -> Recorder:
    return Recorder(MemorySink(), ManualClock())


def rows(recorder: Recorder) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = np.frombuffer(recorder.here().take(99), SPAN).tolist()
    return found


@pytest.mark.parametrize(
    "wrong", [{"flags": "x"}, {"cpu_ns": 2**70}, {"end_ns": "x"}, {"flags": 2**63}]
)
def test_a_call_is_off_the_chain_whatever_it_is_left_with(
    wrong: dict[str, Any], recorder: Recorder
) -> None:
    outer = scope.enter(recorder, 0)
    frame = scope.enter(recorder, 0)
    with suppress(TypeError, ValueError, OverflowError):
        scope.leave(frame, **wrong)
    assert scope.held() is outer
    assert frame.left
    scope.leave(frame)
    scope.leave(outer)
    assert scope.held() is None
    assert [row[0] for row in rows(recorder)] == [outer.call]


@pytest.mark.parametrize("number", [2**15, 40_000, -(2**15) - 1, 2**17, 2**40])
@pytest.mark.parametrize(
    "use",
    [
        lambda recorder, number: scope.leave(scope.enter(recorder, 0), number),
        lambda recorder, number: scope.leave(scope.enter(recorder, 0, flags=number)),
        lambda recorder, number: scope.leave(scope.enter(recorder, number << 20)),
        lambda recorder, number: scope.leave(
            scope.enter(recorder, 0, submitted_lane=abs(number) << 20)
        ),
        lambda recorder, number: recorder.end(recorder.begin(Kind.OP, 0, owner=0), flags=number),
        lambda recorder, number: recorder.end(recorder.begin(Kind.OP, 0, owner=0, flags=number)),
    ],
)
def test_a_number_that_does_not_fit_is_left_out_and_not_cut(
    use: Callable[[Recorder, int], None], number: int, recorder: Recorder
) -> None:
    with suppress(OverflowError):
        use(recorder, number)
    assert rows(recorder) == []
    assert recorder.opened == {}
    assert scope.held() is None


@pytest.mark.parametrize("row", [(), (1,) * 11, (1,) * 13, (1.5,) * 12, ("x",) * 12, (2**70,) * 12])
def test_a_wrong_row_does_not_reach_the_program(row: Any, recorder: Recorder) -> None:
    recorder.put(row)
    recorder.put((1,) * 12)
    assert rows(recorder) == [(1,) * 12]


@needs_native
def test_open_spans_that_go_while_the_writer_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extension.VARIABLE, "native")
    recorder = Recorder(MemorySink(), bound=1)

    class Wakes:
        def set(self) -> None:
            del recorder.opened

    recorder.wake = Wakes()  # type: ignore[assignment]
    span = recorder.begin(Kind.OP, 0, owner=0)
    recorder.end(span)
    assert [row[0] for row in rows(recorder)] == [span]


@needs_native
def test_a_slot_of_another_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extension.VARIABLE, "native")
    other: Any = type("Other", (), {"__slots__": [f"a{n}" for n in range(99)] + ["far"]})
    slots = {name: Task.__dict__[name] for name in ("name", "note", "error")}
    wrong = type("Wrong", (Task,), {**slots, "kind": other.far})
    with pytest.raises(TypeError, match="kind is not a slot"):
        operators_in_c(Recorder(MemorySink()), wrong, 2, 3, print)


@needs_native
def test_before_it_is_bound_it_offers_nothing_that_could_crash() -> None:
    code = (
        "import opscope.record._native as n\n"
        "assert not n.Frame(None, None, 1, 1).waiting\n"
        "core = n.Core(); core.opened = {}\n"
        "try: n.Operators(core, {}, int, 2, 3, print)\n"
        "except TypeError: print([name for name in dir(n) if name in ('enter', 'held', 'push')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {extension.VARIABLE: "python"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "[]\n"


class Knot:
    """Does something when it is collected."""

    def __init__(self, doing: Callable[[], object]) -> None:
        self.me, self.doing = self, doing

    def __del__(self) -> None:
        self.doing()


@anywhere
def test_a_finalizer_sets_no_context_variable(recorder: Recorder) -> None:
    told: list[Any] = []

    def calls() -> None:
        before = scope.held_in(contextvars.copy_context())
        outer = scope.enter(recorder, 1)
        inner = scope.enter(recorder, 2)
        told.append(scope.held_in(contextvars.copy_context()) is before)
        told.append((scope.held() is inner, recorder.opened[inner.call][1] == outer.call))
        scope.leave(inner)
        told.append(scope.current(recorder) is outer)
        scope.leave(outer)
        told.append(scope.held() is before)

    with collections_seen(recorder):
        for around in (None, scope.enter(recorder, 0)):
            if around is None:
                scope.push(None)
            Knot(calls)
            gc.collect()
            assert not scope.keeps_beside()
    assert told == [True, (True, True), True, True] * 2
    scope.push(None)


@anywhere
def test_a_call_that_ends_in_a_finalizer_is_over_after_it(recorder: Recorder) -> None:
    with collections_seen(recorder):
        outer = scope.enter(recorder, 0)
        frame = scope.enter(recorder, 0)
        Knot(lambda: scope.leave(frame))
        gc.collect()
        assert scope.current(recorder) is outer
        again = scope.enter(recorder, 0)
        assert recorder.opened[again.call][1] == outer.call
        scope.leave(again)
        scope.leave(outer)
    assert scope.current(recorder) is None
    scope.push(None)


@anywhere
def test_a_recording_that_ends_in_a_finalizer(recorder_kind: str) -> None:
    @custom_op
    def work() -> None:
        pass

    recording = profile().start()
    Knot(recording.stop)
    gc.collect()
    assert not scope.keeps_beside()
    with profile() as again:
        work()
    assert (again.session.spans["kind"] == Kind.CALL).sum() == 1
