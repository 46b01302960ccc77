"""What lies in the time of a suspended call, but is not in it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.builders import Line, session, span

from opscope.analyse import calls, own_time
from opscope.analyse.rows import PART_KEYS
from opscope.attribution import attribute
from opscope.model import Flag, Kind


def call(id: int, start_ns: int, end_ns: int, owner: int = 0, **more: object) -> Line:
    return span(id, f"call {id}", Kind.CALL, start_ns, end_ns, owner=owner, **more)


def asleep(id: int, start_ns: int, end_ns: int, owner: int) -> Line:
    return span(id, "suspended", Kind.WAIT, start_ns, end_ns, owner=owner, flags=Flag.SUSPENDED)


def parts(lines: Iterable[Line], number: int) -> dict[str, int]:
    """What is known of the parts of a call and is not nothing; `estimated` where it is."""
    (row,) = [row for row in calls(session(lines, sight=[])) if row.call == number]
    found = {key[:-3]: ns for key in (*PART_KEYS, "sub_wait_ns") if (ns := getattr(row, key))}
    return found | ({"estimated": 1} if "estimated" in row.flags else {})


#: The outer call runs 100 ns while the inner one is suspended.
GENERATOR = [
    call(1, 0, 130, cpu_ns=130),
    call(2, 0, 120, owner=1, cpu_ns=20),
    asleep(3, 10, 110, owner=2),
]


def test_the_time_of_the_suspension_is_the_outer_calls() -> None:
    assert parts(GENERATOR, 1) == {"wall": 130, "python": 110, "sub": 20}
    assert parts(GENERATOR, 2) == {"wall": 120, "python": 20, "wait": 100}


def test_waits_chores_dispatch_and_calls_in_it_are_the_outer_calls() -> None:
    lines = [
        call(1, 0, 130, cpu_ns=100),
        *GENERATOR[1:],
        span(4, "sleep", Kind.WAIT, 20, 50, owner=1),
        span(5, "collect", Kind.RUNTIME, 50, 55, cpu_ns=5),
        span(6, "wrapper", Kind.DISPATCH, 55, 57, owner=1, cpu_ns=2),
        call(7, 60, 70, owner=1, cpu_ns=10),
        span(8, "add", Kind.OP, 70, 74, owner=1, cpu_ns=4),
    ]
    assert parts(lines, 1) == {
        "wall": 130,
        "python": 59,
        "sub": 34,
        "wait": 30,
        "dispatch": 2,
        "runtime": 5,
    }
    assert parts(lines, 2) == {"wall": 120, "python": 20, "wait": 100}
    own = own_time(session(lines, sight=[]))
    mine = sorted(zip(own.start_ns.tolist(), own.end_ns.tolist(), own.call.tolist(), strict=True))
    assert [(start, end) for start, end, row in mine if row == 0] == [
        (10, 20), (57, 60), (74, 110), (120, 130),
    ]  # fmt: skip


def test_a_chore_in_a_step_is_the_generators() -> None:
    lines = [*GENERATOR, span(4, "collect", Kind.RUNTIME, 112, 115, cpu_ns=3)]
    assert parts(lines, 1) == {"wall": 130, "python": 110, "sub": 20}
    assert parts(lines, 2) == {"wall": 120, "python": 17, "wait": 100, "runtime": 3}


def test_with_unknown_cpu_time_it_was_busy_while_it_ran_and_no_longer() -> None:
    lines = [call(1, 0, 130, cpu_ns=70), call(2, 0, 120, owner=1), GENERATOR[2]]
    assert parts(lines, 1) == {"wall": 130, "python": 50, "wait": 60, "sub": 20, "estimated": 1}


@pytest.mark.parametrize("owner", [1, 0])
def test_a_step_in_another_call_than_the_one_it_belongs_to(owner: int) -> None:
    """It is `sub` there too, and its CPU time is taken out there, and only there."""
    lines = [
        call(1, 0, 130, cpu_ns=120),
        call(2, 0, 120, owner=owner, cpu_ns=20),
        asleep(3, 10, 110, owner=2),
        call(4, 100, 125, owner=1, cpu_ns=25),
    ]
    assert parts(lines, 4) == {"wall": 25, "python": 15, "sub": 10, "estimated": 1}
    assert parts(lines, 1) == {"wall": 130, "python": 85, "sub": 35, "wait": 10, "estimated": 1}


def test_it_outlives_the_call_it_belongs_to() -> None:
    lines = [call(1, 0, 50, cpu_ns=50), call(2, 0, 200, owner=1, cpu_ns=110), asleep(3, 10, 100, 2)]
    assert parts(lines, 1) == {"wall": 50, "python": 40, "sub": 10, "estimated": 1}


def test_in_a_task() -> None:
    lines = [
        call(9, 0, 300, lane="other"),
        span(1, "task", Kind.TASK, 0, 130, owner=9, cpu_ns=125),
        call(2, 0, 120, owner=9, cpu_ns=20),
        asleep(3, 10, 110, owner=2),
    ]
    found = attribute(session(lines, sight=[])).parts
    (task,) = [n for n, row in enumerate(found.rows.tolist()) if row == 1]
    assert (found.python[task], found.wait[task], found.sub[task]) == (105, 5, 20)
    (row,) = [row for row in calls(session(lines, sight=[])) if row.call == 9]
    assert row.elsewhere_python_ns == 105


def test_an_awaited_coroutine_stays_a_sub_operator_that_waits() -> None:
    lines = [
        call(1, 0, 130, cpu_ns=30),
        call(2, 10, 120, owner=1, cpu_ns=10),
        asleep(3, 15, 115, owner=1),
        asleep(4, 15, 115, owner=2),
    ]
    assert parts(lines, 1) == {"wall": 130, "python": 20, "sub": 110, "sub_wait": 100}


def test_two_that_wait_at_once_wait_once() -> None:
    """And not at all while another one runs."""
    lines = [
        call(1, 0, 130, cpu_ns=10),
        asleep(2, 10, 130, owner=1),
        call(3, 10, 100, owner=1, cpu_ns=0),
        asleep(4, 10, 100, owner=3),
        call(5, 10, 60, owner=1, cpu_ns=10),
        asleep(6, 10, 50, owner=5),
    ]
    assert parts(lines, 1) == {
        "wall": 130, "python": 10, "sub": 90, "wait": 30, "sub_wait": 80,
    }  # fmt: skip


def test_a_block_that_a_yield_crosses_stands_still_with_its_generator() -> None:
    lines = [
        *GENERATOR,
        call(4, 4, 116, owner=2, cpu_ns=112, flags=Flag.CROSSED),
        call(5, 5, 115, owner=4, cpu_ns=110, flags=Flag.CROSSED),
    ]
    assert parts(lines, 1) == {"wall": 130, "python": 110, "sub": 20}
    assert parts(lines, 2) == {"wall": 120, "python": 8, "sub": 112, "sub_wait": 100}
    assert parts(lines, 4) == {"wall": 112, "python": 2, "sub": 110, "sub_wait": 100}
    assert parts(lines, 5) == {"wall": 110, "python": 10, "wait": 100}


def test_a_pause_in_it_is_nobodys() -> None:
    made = session(GENERATOR, sight=[], pauses=[(0, 20, 50)])
    found = attribute(made).parts
    assert found.wall.tolist() == [100, 90]
    assert found.sub.tolist() == [20, 0]
    assert found.suspended.tolist() == [0, 70]
