"""Events of operators without hooks become calls, and own what a recorded call would own."""

from __future__ import annotations

import pytest
from tests.attribution.late.world import World, call, event, row

from opscope.attribution.late import Role
from opscope.model import Kind, Phase

FREE = World(unhooked="U V")


def task(id: int, start_ns: int, end_ns: int, lane: int, at: tuple[int, int], owner: int = 0):
    """A task that was submitted on the lane, at the time `at`."""
    where = {"lane": lane, "submitted_lane": at[0], "submitted_ns": at[1]}
    return row(id, f"task {id}", Kind.TASK, start_ns, end_ns, owner=owner, **where)


def test_the_event_of_an_operator_without_hooks_is_a_call() -> None:
    found = FREE.join([event("ns::U", 10, 100), event("aten::mul", 20, 30)])
    assert found.times("U") == [(10, 100)]
    assert (found.kind("U"), found.phase("U"), found.owner("U")) == (Kind.CALL, Phase.FORWARD, "")
    assert found.inferred("U")
    assert (found.owner("aten::mul"), found.phase("aten::mul")) == ("U", Phase.FORWARD)
    assert found.inferred("aten::mul")


def test_what_nobody_owns_is_not_inferred() -> None:
    assert not FREE.join([event("aten::mul", 20, 30)]).inferred("aten::mul")


def test_an_operator_entered_again_on_the_way_is_one_call() -> None:
    times = [(10, 100), (20, 90), (30, 80)]
    events = [event("ns::U", *both) for both in times]
    found = FREE.join([*events, event("aten::mul", 40, 50)])
    assert found.times("U") == [(10, 100)]
    assert len(found.told) == 2
    assert found.owner("aten::mul") == "U"


def test_an_operator_that_comes_back_through_another_is_called_twice() -> None:
    events = [event("ns::U", 10, 100), event("ns::V", 20, 90), event("ns::U", 30, 80)]
    found = FREE.join(events)
    assert found.times("U") == [(10, 100), (30, 80)]
    outer, inner = found.spans("U")
    assert (outer["owner"], inner["owner"]) == (0, found.span("V")["id"])


def test_events_of_other_roles_are_no_calls_whatever_their_name() -> None:
    found = FREE.join([event("ns::U", 10, 100, Role.RANGE), event("aten::mul", 20, 30)])
    assert found.kind("ns::U") == Kind.RANGE
    assert found.owner("aten::mul") == ""


def test_calls_recorded_and_not_own_each_other() -> None:
    events = [event("ns::U", 10, 100), event("aten::mul", 40, 50), event("aten::add", 80, 90)]
    found = FREE.join(events, [call(1, "A", 0, 200), call(2, "B", 30, 60, owner=1)])
    assert (found.owner("B"), found.owner("U"), found.owner("A")) == ("U", "A", "")
    assert (found.owner("aten::mul"), found.owner("aten::add")) == ("B", "U")
    assert found.inferred("B")


@pytest.mark.parametrize("kind", [Kind.WAIT, Kind.DISPATCH, Kind.OP, Kind.RANGE])
def test_what_was_recorded_inside_such_a_call_is_its_own(kind: Kind) -> None:
    rows = [call(1, "A", 0, 200), row(2, "it", kind, 30, 60, owner=1)]
    found = FREE.join([event("ns::U", 10, 100)], rows)
    assert (found.owner("it"), found.phase("it")) == ("U", Phase.FORWARD)
    assert found.inferred("it")


@pytest.mark.parametrize("kind", [Kind.RUNTIME, Kind.STEP])
def test_chores_and_steps_are_nobodys(kind: Kind) -> None:
    found = FREE.join([event("ns::U", 10, 100)], [row(2, "it", kind, 30, 60)])
    assert found.span("it").tobytes() == found.recorded[0].tobytes()


def test_a_step_of_the_frameworks_is_nobodys_either() -> None:
    found = FREE.join([event("ns::U", 10, 100), event("step", 20, 90, Role.STEP)])
    assert (found.kind("step"), found.owner("step")) == (Kind.STEP, "")


def test_a_task_of_nobody_stops_the_search() -> None:
    rows = [task(1, 20, 90, 0, (5, 1))]
    found = FREE.join([event("ns::U", 10, 100), event("aten::mul", 30, 40)], rows)
    assert (found.owner("aten::mul"), found.phase("aten::mul")) == ("", Phase.NONE)


def test_in_a_task_of_a_call_all_is_the_calls() -> None:
    rows = [call(1, "A", 0, 10), task(2, 20, 90, 1, (0, 5), owner=1)]
    found = FREE.join([event("aten::mul", 30, 40, lane=1)], rows)
    assert found.owner("aten::mul") == "A"


def test_tasks_submitted_inside_such_a_call_and_all_in_them_are_its_own() -> None:
    events = [
        event("ns::U", 10, 100),
        event("aten::mul", 35, 38, lane=1),
        event("aten::add", 57, 58, lane=2),
    ]
    rows = [
        task(3, 50, 60, 2, (1, 45)),
        task(2, 30, 70, 1, (0, 20)),
        row(4, "lock", Kind.WAIT, 39, 40, lane=1),
        row(5, "sleep", Kind.WAIT, 51, 52, lane=2),
        call(6, "B", 53, 56, lane=2),
    ]
    found = FREE.join(events, rows)
    for name in ("task 2", "task 3", "aten::mul", "aten::add", "lock", "sleep", "B"):
        assert (name, found.owner(name)) == (name, "U")
        assert found.inferred(name)
        assert found.phase(name) == Phase.FORWARD


def test_a_task_submitted_before_or_after_such_a_call_is_not_its_own() -> None:
    rows = [task(1, 200, 300, 1, (0, 5)), task(2, 300, 400, 1, (0, 105))]
    found = FREE.join([event("ns::U", 10, 100)], rows)
    assert (found.owner("task 1"), found.owner("task 2")) == ("", "")


def test_a_task_that_a_recorded_call_submitted_inside_such_a_call_stays_that_ones() -> None:
    rows = [call(1, "A", 20, 90), task(2, 200, 300, 1, (0, 50), owner=1)]
    found = FREE.join([event("ns::U", 10, 100)], rows)
    assert (found.owner("A"), found.owner("task 2")) == ("U", "A")
    assert not found.inferred("task 2")
