"""What recording costs is measured in this process, and leaves no trace in it."""

from __future__ import annotations

import gc
import threading

import pytest

from opscope import custom_op, profile
from opscope.hosts.python.operators import Marked, end
from opscope.hosts.python.price import price
from opscope.model import Kind, Op
from opscope.record import calibration, scope
from opscope.testing import ManualClock, assert_restored

WORDS = {
    *("call", "task", "handover", "wait", "dispatch", "range", "runtime", "push", "op", "write"),
}


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_known", {})


def measured() -> calibration.Costs:
    return calibration.costs(Marked(Op("python", "function", "x")).begin, end)


def test_each_kind_costs_something() -> None:
    found = measured()
    assert found.keys() == WORDS
    for word, (inside, outside) in found.items():
        assert inside >= 0, word
        assert outside >= 0, word
        assert inside + outside > 0, word


def test_it_is_measured_once_for_each_recorder() -> None:
    first = measured()
    assert measured() == first
    assert len(calibration._known) == 1
    first["call"] = (0, 0)
    assert measured()["call"] != (0, 0)


def test_a_call_costs_about_what_a_call_costs() -> None:
    """Between a third and three times of what is seen from outside; the machine has others."""
    found = measured()

    @custom_op
    def nothing() -> None: ...

    def one() -> int:
        return calibration._each(nothing)[0]

    off = one()
    with profile(host="python"):
        on = one()
    inside, outside = found["call"]
    assert (on - off) / 3 < inside + outside < (on - off) * 3


def test_nothing_of_it_is_in_the_recording() -> None:
    with assert_restored(), profile(host="python") as run:
        pass
    session = run.session
    assert not (session.spans["kind"] != Kind.RUNTIME).any()
    assert session.ops == ()
    assert not {"calibration", "wait", "task"} & set(session.names)
    assert session.processes[0].costs.keys() == WORDS


def test_it_runs_inside_a_call_and_leaves_it_current() -> None:
    outer = profile(host="python").start()
    with custom_op("around"):
        held, collecting = scope.held(), gc.isenabled()
        measured()
        assert scope.held() is held
        assert gc.isenabled() == collecting
    outer.stop()
    (call,) = outer.session.spans[outer.session.spans["kind"] == Kind.CALL]
    assert outer.session.names[call["name"]] == "around"


def test_threads_that_start_at_once_measure_once() -> None:
    found: list[calibration.Costs] = []
    threads = [threading.Thread(target=lambda: found.append(measured())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(each == found[0] for each in found)


def test_with_a_clock_of_one_s_own_it_is_not_measured() -> None:
    with profile(host="python", clock=ManualClock()) as run:
        pass
    assert run.session.processes[0].costs == {}


def test_a_fault_costs_the_figures_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(calibration, "_kinds", fails)
    collecting = gc.isenabled()
    assert price() == {}
    assert gc.isenabled() == collecting
    assert "could not be measured" in caplog.text
