"""torch's profiler is emptied now and then: nothing is lost or doubled by that, or it is told."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from tests.hosts.torch.ops import custom, differentiable, library, negative, owned, torch
from tests.hosts.torch.windowed import all_ids_are_told_once, due, emptied, lossy, recorded, whole

import opscope
from opscope.analyse import span_records
from opscope.hosts.torch import windows as module

#: How often a program here does its thing; its windows are much shorter than that takes.
TIMES = 300


def test_nothing_is_lost_or_doubled_between_calls(windows: list[int]) -> None:
    op = custom("often", lambda x: torch.neg(torch.exp(x)))
    x = torch.ones(3)

    def program(run: opscope.profile) -> None:
        for number in range(TIMES):
            op(x)
            if number % 10 == 0:
                due(run)

    session = recorded(program)
    assert len(windows) > TIMES / 20
    assert emptied(session)
    all_ids_are_told_once(session)
    found = whole(session, op, Counter({"aten::neg": 1, "aten::exp": 1}))
    assert len(found) == TIMES
    assert sum(lossy(row) for row in found) < len(windows)
    assert owned(session, 0)["aten::neg"] <= sum(lossy(row) for row in found)


@pytest.mark.parametrize("kind", ["custom_op", "function"])
def test_a_window_that_ends_as_an_inner_call_ends(kind: str, windows: list[int]) -> None:
    """The outer one is still on, and so are torch's events around both."""
    inner = differentiable("inner", negative, lambda slope: torch.cos(slope))
    runs: list[opscope.profile] = []

    def body(x: Any) -> Any:
        for _ in range(3):
            x = inner(x)
            due(runs[0])
        return torch.exp(x)

    if kind == "custom_op":
        outer = custom("outer", body)
        call, name = outer, outer._qualname
    else:
        cls = type(
            "Outer",
            (torch.autograd.Function,),
            {"__module__": __name__, "forward": staticmethod(lambda ctx, x: body(x))},
        )
        call, name = cls.apply, "Outer"
    x = torch.ones(3)

    def program(run: opscope.profile) -> None:
        runs[:] = [run]
        for _ in range(30):
            call(x)
            due(run)

    session = recorded(program)
    all_ids_are_told_once(session)
    assert len(windows) > 10  # between the calls of the outer one
    found = whole(session, name, Counter({inner._qualname: 3, "aten::exp": 1}))
    assert len(found) == 30
    inside = whole(session, inner, Counter({"aten::neg": 1}))
    assert len(inside) == 90
    assert {row.parent for row in inside} <= {row.call for row in found}
    lost = sum(lossy(row) for row in found + inside)
    assert owned(session, 0)["aten::exp"] + owned(session, 0)["aten::neg"] <= lost


def test_a_window_that_ends_inside_an_unhooked_operator(windows: list[int]) -> None:
    """Nobody knows that it is running, but it may not be cut in silence."""
    runs: list[opscope.profile] = []

    def body(x: Any) -> Any:
        torch.exp(x)
        due(runs[0])
        return torch.neg(x)

    op = library("cut", body, key="CPU")
    x = torch.ones(3)

    def program(run: opscope.profile) -> None:
        runs[:] = [run]
        for _ in range(5):
            op(x)

    session = recorded(program)
    assert len(whole(session, op, Counter({"aten::exp": 1, "aten::neg": 1}))) == 5


def test_every_step_may_end_a_window(windows: list[int]) -> None:
    op = custom("stepped", negative)
    x = torch.ones(3)

    def program(run: opscope.profile) -> None:
        for _ in range(20):
            op(x)
            time.sleep(0.002)
            run.step()

    session = recorded(program)
    assert len(windows) >= 20
    assert len(whole(session, op, Counter({"aten::neg": 1}))) == 20
    steps = [r for r in span_records(session) if r["kind"] == "step"]
    assert len(steps) >= 19


def test_a_step_inside_an_operator_may_end_a_window(windows: list[int]) -> None:
    runs: list[opscope.profile] = []

    def body(x: Any) -> Any:
        torch.exp(x)
        time.sleep(0.002)
        runs[0].step()
        return torch.neg(x)

    op, x = custom("stepping", body), torch.ones(3)

    def program(run: opscope.profile) -> None:
        runs[:] = [run]
        for _ in range(10):
            op(x)

    session = recorded(program)
    found = whole(session, op, Counter({"aten::exp": 1, "aten::neg": 1}))
    assert len(found) == 10
    for row in found:
        assert (row.dispatch_ns or 0) <= row.wall_ns


def test_windows_are_bounded_by_their_events(
    windows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bound of so many events most windows have about that, however long the run."""
    bound = 2_000
    monkeypatch.setattr(module, "EVENTS", bound)
    monkeypatch.setattr(module, "_MOST_S", 0.02)
    op, x = custom("bounded", negative), torch.ones(3)

    def program(run: opscope.profile) -> None:
        for number in range(40_000):
            torch.neg(x)
            if number % 50 == 0:
                op(x)
            if number % 500 == 0:
                assert run._recorder is not None
                run._recorder.tell("tick")

    session = recorded(program)
    assert sum(windows) >= 40_000
    assert len(windows) > 5
    assert sorted(windows)[len(windows) // 2] < 3 * bound
    assert len(whole(session, op, Counter({"aten::neg": 1}))) == 800
