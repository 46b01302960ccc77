"""Operators that run while recording begins or ends, or all the time."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.torch.edges import HELD, Gate, held, made, on_thread, only, script
from tests.hosts.torch.ops import custom, negative, nothing_hooked, owned, rows, sees_threads, torch

import opscope
from opscope.model import Session
from opscope.record import scope
from opscope.testing import assert_restored


@pytest.fixture(autouse=True)
def settled() -> None:
    """Operators that an earlier test left running at stop are over, and opscope has seen that."""
    with opscope.profile():
        pass


@sees_threads
@pytest.mark.parametrize("how", HELD)
def test_in_flight_at_start_on_another_thread(how: str) -> None:
    gate, thread, name, phase = held(how)
    with assert_restored(), nothing_hooked(), opscope.profile() as run:
        gate.go.set()
        thread.join()
        torch.tan(torch.ones(3))
        threading.Event().wait(0.02)  # its end is seen a moment later
    check(run.session)
    row = only(run.session, name, phase)
    assert {"clamped", "incomplete"} <= set(row.flags)
    assert owned(run.session, row)["aten::neg"] == 1
    assert owned(run.session, row)["aten::exp"] == 0
    assert owned(run.session, 0)["aten::tan"] == 1


@sees_threads
@pytest.mark.parametrize("how", HELD)
def test_in_flight_at_stop_on_another_thread(how: str) -> None:
    with assert_restored(), nothing_hooked():
        run = opscope.profile().start()
        gate, thread, name, phase = held(how)
        run.stop()
        gate.go.set()
        thread.join()
    check(run.session)
    found = rows(run.session, name, phase)
    assert len(found) == 1
    assert "incomplete" in found[0].flags
    assert "clamped" not in found[0].flags
    assert owned(run.session, found[0])["aten::exp"] == 1
    assert owned(run.session, found[0])["aten::neg"] == 0


@pytest.mark.parametrize("how", HELD)
def test_in_flight_all_the_time(how: str) -> None:
    gate, thread, name, phase = held(how)
    with assert_restored(), nothing_hooked(), opscope.profile() as run:
        torch.tan(torch.ones(3))
    gate.go.set()
    thread.join()
    check(run.session)
    row = only(run.session, name, phase)
    assert {"clamped", "incomplete"} <= set(row.flags)
    assert owned(run.session, row) == {}


@sees_threads
def test_in_flight_at_start_in_a_function_that_is_a_callable_object() -> None:
    gate = Gate()
    op = custom("object", gate)
    thread = on_thread(op)
    assert gate.inside.wait(30)
    with opscope.profile() as run:
        gate.go.set()
        thread.join()
        threading.Event().wait(0.02)
    assert owned(run.session, only(run.session, op, "forward"))["aten::neg"] == 1


def test_in_flight_at_start_in_a_function_for_one_device() -> None:
    gate = Gate()
    op = custom("device", negative)
    op.register_kernel("cpu")(lambda x: gate(x))
    thread = on_thread(op)
    assert gate.inside.wait(30)
    with opscope.profile() as run:
        gate.go.set()
        thread.join()
        threading.Event().wait(0.02)
    assert owned(run.session, only(run.session, op, "forward"))["aten::neg"] == 1


def test_in_flight_at_start_in_one_of_two_operators_of_one_code() -> None:
    """Operators that come from one place in the program are told apart, or nothing is said."""

    def factory(gate: Gate) -> Any:
        return custom("twin", lambda x: gate(x))

    gate = Gate()
    runs, other = factory(gate), factory(Gate())
    thread = on_thread(runs)
    assert gate.inside.wait(30)
    with opscope.profile() as run:
        gate.go.set()
        thread.join()
        threading.Event().wait(0.02)
    assert not rows(run.session, other)


@pytest.mark.parametrize("kind", ["custom_op", "differentiable", "function"])
@pytest.mark.parametrize("edge", ["start", "stop", "both"])
def test_recording_that_begins_or_ends_inside_an_operator(kind: str, edge: str) -> None:
    run = opscope.profile()

    def body(x: Any) -> Any:
        torch.exp(x)
        if edge != "stop":
            run.start()
        torch.tan(x)
        if edge != "start":
            run.stop()
        return torch.neg(x)

    op, name = made(kind, body)
    x = torch.ones(3, requires_grad=True)
    with nothing_hooked():
        if edge == "stop":
            run.start()
        op(x)
        threading.Event().wait(0.02)  # its end is seen a moment later
        torch.sin(x)
        if edge == "start":
            run.stop()
    check(run.session)
    assert run.session.processes[0].broken == ()
    row = only(run.session, name, "forward")
    assert ("clamped" in row.flags) == (edge != "stop")
    assert "incomplete" in row.flags
    inside = owned(run.session, row)
    assert inside["aten::tan"] == 1
    assert inside["aten::exp"] == (edge == "stop")
    assert inside["aten::neg"] == (edge == "start")
    assert owned(run.session, 0)["aten::sin"] == (edge == "start")


def test_nothing_is_current_after_an_operator_that_recording_began_in() -> None:
    """Another thread ends it, and this one may hold its frame still, but takes it for no call."""
    run = opscope.profile()
    op, _ = made("custom_op", lambda x: torch.neg(x) if run.start() else x)
    op(torch.ones(3))
    threading.Event().wait(0.02)
    recorder = run._recorder
    assert recorder is not None
    assert scope.current(recorder) is None
    run.stop()
    assert scope.current(recorder) is None


TWO = """
import sys, threading, time, torch, opscope
here, go = threading.Semaphore(0), threading.Event()
def kernel(x: torch.Tensor) -> torch.Tensor:
    torch.exp(x)
    here.release()
    go.wait(30)
    return torch.neg(x)
op = torch.library.custom_op("opscope_two::held", kernel, mutates_args=())
x = torch.ones(3)
first = opscope.profile(output=sys.argv[1]).start()
threads = [threading.Thread(target=op, args=(x,)) for _ in range(40)]
for thread in threads:
    thread.start()
for thread in threads:
    here.acquire()
first.stop()
junk = [bytearray([193] * size) for size in range(16, 3000, 16) for _ in range(4)]
with opscope.profile(output=sys.argv[2]) as second:
    for _ in range(300):
        torch.exp(x)
    go.set()
    for thread in threads:
        thread.join()
    op(x)
print(*first.session.processes[0].broken, *second.session.processes[0].broken)
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Session]:
    """Two recordings: operators that begin in the first and are on at its stop end in the second.

    torch writes to its record of them as they end, which is freed by then: its profiler may not be
    started again before.
    """
    folder = tmp_path_factory.mktemp("two")
    files = [folder / "first.opscope", folder / "second.opscope"]
    script(folder, TWO, *files)
    first, second = map(opscope.load, files)
    return first, second


def test_operators_that_begin_in_one_recording_and_end_in_the_next(two: Any) -> None:
    first, second = two
    assert all("incomplete" in row.flags for row in rows(first, "opscope_two::held"))
    assert len(rows(first, "opscope_two::held")) == 40
    *cut, whole = rows(second, "opscope_two::held")
    assert len(cut) == 40
    assert all("clamped" in row.flags for row in cut)
    assert not {"clamped", "incomplete"} & set(whole.flags)


def test_what_is_missing_of_the_next_recording_is_told(two: Any) -> None:
    _, second = two
    wanted = {"aten::exp": 1, "aten::neg": 1}
    *cut, whole = rows(second, "opscope_two::held")
    notes = " ".join(second.processes[0].notes)
    assert owned(second, whole) == wanted or "lossy" in whole.flags or "torch" in notes
    for row in cut:
        assert owned(second, row)["aten::neg"] == 1 or {"lossy", "incomplete"} & set(row.flags)
