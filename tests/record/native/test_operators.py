"""The hooks of an engine's operators in C: the same as in Python, and faults kept to themselves."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import opscope
from opscope import engine as nd
from opscope.engine.graph import CHORE, CUSTOM, HIDDEN, OP, Task
from opscope.hosts.engine import _Watcher
from opscope.model import SPAN
from opscope.record import Recorder, extension, operators_in_c, scope, watch
from opscope.store import MemorySink
from opscope.testing import ManualClock

pytestmark = pytest.mark.skipif(extension.native is None, reason=extension.missing or "it is there")


@pytest.fixture(autouse=True)
def _in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extension.VARIABLE, "native")


class Task2(Task):
    """A class below the one the hooks know."""

    __slots__ = ()


def history(hooks_of: Any) -> list[tuple[int, ...]]:
    """Every kind of task through the three hooks, in and out of a call; the rows that come out."""
    clock = ManualClock()
    recorder = Recorder(MemorySink(), clock)
    recorder.name("dispatch")  # as one of the two does
    hooks = hooks_of(recorder)
    watch.recorder = recorder
    try:
        for inside in (False, True):
            frame = scope.enter(recorder, recorder.name("call"), 2) if inside else None
            for kind in (OP, CUSTOM, CHORE, HIDDEN):
                for number in range(3):
                    task = (Task, Task2)[number % 2](None, f"{kind} {number}", kind=kind)
                    clock.tick(3)
                    hooks.pushed(task)
                    assert (task.note is None) == (kind == HIDDEN)
                    clock.tick(5)
                    hooks.started(task)
                    clock.tick(7)
                    clock.idle(2)
                    task.error = object() if number == 2 else None  # type: ignore[assignment]
                    hooks.finished(task)
            if frame is not None:
                scope.leave(frame)
        watch.recorder = None
        late = Task(None, "late")
        hooks.pushed(late)
        hooks.started(late)
        hooks.finished(late)
        assert late.note is None
    finally:
        watch.recorder = None
    assert recorder.opened == {}
    (buffer,) = recorder.buffers
    rows: list[tuple[int, ...]] = np.frombuffer(buffer.take(1000), SPAN).tolist()
    return rows


def test_the_same_rows_as_in_python(recorder_kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(moment: str, hook: Any, error: Exception) -> None:
        raise error

    in_c = history(lambda recorder: operators_in_c(recorder, Task, CHORE, HIDDEN, broken))
    assert len({row[0] for row in in_c}) == len(in_c) == 19
    monkeypatch.setenv(extension.VARIABLE, recorder_kind)
    assert in_c == history(_Watcher)


@pytest.mark.parametrize("moment", ["pushed", "started", "finished"])
def test_a_fault_switches_the_hook_off_and_the_program_goes_on(
    moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(ManualClock):
        failing = ""

        def now(self) -> int:
            if self.failing and self.failing == doing[0]:
                raise OSError("no time")
            return super().now()

    clock, doing = Fails(), [""]
    with opscope.profile(clock=clock, host="engine") as profile:
        before = getattr(nd.hooks, moment)
        told: list[str] = []

        def watched(task: Any) -> None:
            doing[0] = moment
            before(task)
            doing[0] = ""
            told.append(task.name)

        setattr(nd.hooks, moment, watched)
        nd.use("naive")
        nd.waitall()  # what others have dropped is deleted now, and not in between
        told.clear()
        clock.failing = moment
        ran: list[int] = []
        for _ in range(3):
            nd.push_sync(lambda: ran.append(1), name="work")
        nd.waitall()
        clock.failing = ""
        nd.use()
    assert ran == [1, 1, 1]
    assert told == ["work"]
    assert profile.session.processes[0].broken == (f"engine hook '{moment}': OSError: no time",)
    assert not nd.hooks


def test_the_hooks_hold_no_row(recorder_kind: str) -> None:
    recorder = Recorder(MemorySink(), ManualClock())
    hooks = operators_in_c(recorder, Task, CHORE, HIDDEN, lambda *_: None)
    if hooks is None:
        pytest.skip("not in C")
    watch.recorder = recorder
    try:
        task = Task(None, "t")
        hooks.pushed(task)
        hooks.finished(task)  # it never began
        assert list(recorder.here().rows) == []
        before = sys.getrefcount(task.note)
        hooks.started(task)
        hooks.finished(task)
        after = sys.getrefcount(task.note)  # an assert would hold one itself
        assert after == before
    finally:
        watch.recorder = None


def test_what_is_no_task_is_a_fault_and_no_crash() -> None:
    assert extension.native is not None
    recorder = Recorder(MemorySink())
    faults: list[tuple[str, Any, Exception]] = []
    hooks = operators_in_c(recorder, Task, CHORE, HIDDEN, lambda *fault: faults.append(fault))
    for moment in ("pushed", "started", "finished"):
        getattr(hooks, moment)(object())
    assert [(moment, type(error)) for moment, _, error in faults] == [
        ("pushed", TypeError),
        ("started", TypeError),
        ("finished", TypeError),
    ]
    assert [fault[1] for fault in faults] == [hooks.pushed, hooks.started, hooks.finished]
    for wrong in (threading.Thread, type("T", (), {"kind": 1})):
        with pytest.raises((TypeError, AttributeError), match="kind"):
            extension.native.Operators(recorder, {}, wrong, 2, 3, print)


def test_an_interrupt_in_a_hook_reaches_the_program() -> None:
    class Interrupted(ManualClock):
        on = False

        def now(self) -> int:
            if self.on:
                raise KeyboardInterrupt
            return super().now()

    clock = Interrupted()
    recorder = Recorder(MemorySink(), clock)
    hooks = operators_in_c(recorder, Task, CHORE, HIDDEN, print)
    watch.recorder = recorder
    clock.on = True
    try:
        with pytest.raises(KeyboardInterrupt):
            hooks.pushed(Task(None, "work"))
    finally:
        watch.recorder = None


def test_a_name_that_is_missing() -> None:
    faults: list[Any] = []
    recorder = Recorder(MemorySink())
    hooks = operators_in_c(recorder, Task, CHORE, HIDDEN, lambda *fault: faults.append(fault))
    watch.recorder = recorder
    try:
        task = Task(None, "x")
        hooks.pushed(task)
        del task.name
        hooks.started(task)
        assert type(faults[0][2]) is AttributeError
    finally:
        watch.recorder = None
