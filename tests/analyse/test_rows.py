"""Parts and sums: known times in, exact nanoseconds out; unknown is None and never 0."""

from __future__ import annotations

import pytest
from tests.builders import op, session, span

from opscope.analyse import PART_KEYS, calls, steps, subs, summary
from opscope.model import Flag, Kind, LinkKind, Phase, Process, Session, Sight


def nested() -> Session:
    """A call with everything in it, its backward call, and a step around the first."""
    lines = [
        span(1, "A", Kind.CALL, 1000, 2000, submitted_ns=900, phase=Phase.FORWARD),
        span(2, "enter", Kind.DISPATCH, 1000, 1050, owner=1),
        span(3, "mul", Kind.OP, 1100, 1200, owner=1),
        span(4, "asnumpy", Kind.WAIT, 1300, 1400, owner=1),
        span(5, "add", Kind.OP, 1500, 1800, owner=1, lane="w", submitted_ns=1210),
        span(6, "B", Kind.CALL, 1650, 1900, owner=1, phase=Phase.FORWARD),
        span(7, "mul", Kind.OP, 1700, 1750, owner=6),
        span(8, "gc", Kind.RUNTIME, 1910, 1920),
        span(9, "A", Kind.CALL, 3000, 3500, phase=Phase.BACKWARD, flags=Flag.FAILED),
        span(10, "train", Kind.STEP, 900, 2500),
    ]
    return session(lines, links=[(LinkKind.BACKWARD, 9, 1)])


def test_summary_has_one_row_for_each_operator_path_and_phase() -> None:
    rows = summary(nested())
    assert [(row.path, row.phase, row.calls, row.wall_ns) for row in rows] == [
        (("A",), "forward", 1, 1000),
        (("_backward_A",), "backward", 1, 500),
        (("A", "B"), "forward", 1, 250),
    ]
    first = rows[0]
    assert (first.op, first.key, first.host, first.subs) == ("A", "python:A#1", "python", 3)
    assert {key: getattr(first, key) for key in PART_KEYS} == {
        "wall_ns": 1000,
        "python_ns": 490,
        "native_ns": None,
        "sub_ns": 350,
        "wait_ns": 100,
        "dispatch_ns": 50,
        "runtime_ns": 10,
        "untracked_ns": 0,
    }
    assert (first.elsewhere_ns, first.queue_ns, first.span_ns) == (300, 100, 1000)
    assert (rows[1].failed, rows[1].queue_ns) == (1, None)


def test_a_row_names_the_path_around_it() -> None:
    rows = {row.path: row for row in summary(nested())}
    assert rows["A", "B"].above == rows["A",].node
    assert rows["A",].above == -1


def test_single_calls() -> None:
    rows = calls(nested())
    assert [(row.call, row.parent, row.forward_call, row.start_ns) for row in rows] == [
        (1, None, None, 100),
        (6, 1, None, 750),
        (9, None, 1, 2100),
    ]
    assert [(row.process, row.lane, row.subs, row.flags) for row in rows] == [
        (41, "main", 3, ()),
        (41, "main", 1, ()),
        (41, "main", 0, ("failed",)),
    ]


def test_subs_by_path_and_name() -> None:
    rows = subs(nested())
    assert [(row.path, row.op, row.kind, row.count, row.total_ns, row.self_ns) for row in rows] == [
        (("A", "add"), "A", "op", 1, 300, 300),
        (("A", "B"), "A", "call", 1, 250, 200),
        (("A", "mul"), "A", "op", 1, 100, 100),
        (("A", "B", "mul"), "B", "op", 1, 50, 50),
    ]
    assert [row.key for row in rows] == [*["python:A#1"] * 3, "python:B#1"]


def test_self_time_leaves_out_what_is_nested_also_where_it_crosses() -> None:
    rows = subs(
        session(
            [
                span(1, "A", Kind.CALL, 0, 1000),
                span(2, "outer", Kind.OP, 100, 500, owner=1),
                span(3, "inner", Kind.OP, 200, 300, owner=1),
                span(4, "cross", Kind.OP, 250, 350, owner=1),
                span(5, "zone", Kind.RANGE, 390, 450, owner=1),
                span(6, "deep", Kind.OP, 400, 410, owner=1),
            ]
        )
    )
    assert {row.name: (row.total_ns, row.self_ns) for row in rows} == {
        "outer": (400, 400 - 150 - 10),
        "inner": (100, 50),
        "cross": (100, 100),
        "deep": (10, 10),
    }


def test_a_backward_call_below_another_carries_the_prefix() -> None:
    rows = subs(
        session(
            [
                span(1, "A", Kind.CALL, 0, 100, phase=Phase.BACKWARD),
                span(2, "B", Kind.CALL, 10, 20, owner=1, phase=Phase.BACKWARD),
            ]
        )
    )
    assert [(row.name, row.path, row.op) for row in rows] == [
        ("_backward_B", ("_backward_A", "_backward_B"), "A")
    ]


def test_a_step_sums_the_outermost_calls_begun_in_it() -> None:
    (row,) = steps(nested())
    assert (row.step, row.index, row.start_ns, row.step_ns) == ("train", 0, 0, 1600)
    assert (row.calls, row.wall_ns, row.python_ns) == (2, 1000, 490)


def test_a_step_takes_no_calls_of_another_process() -> None:
    from opscope.model import Lane

    lanes = [Lane("main"), Lane("other", process=1)]
    lines = [span(1, "s", Kind.STEP, 0, 100), span(2, "A", Kind.CALL, 10, 20, lane="other")]
    (row,) = steps(session(lines, lanes=lanes, processes=[Process(pid=1), Process(pid=2)]))
    assert (row.calls, row.wall_ns, row.python_ns) == (0, 0, None)


def test_percentiles_are_values_that_occurred() -> None:
    walls = [10, 20, 30, 40, 1001]
    lines = [span(i + 1, "A", Kind.CALL, 5000 * i, 5000 * i + w) for i, w in enumerate(walls)]
    (row,) = summary(session(lines))
    assert (row.mean_ns, row.p50_ns, row.p95_ns, row.max_ns) == (220, 30, 1001, 1001)
    assert row.first_ns == 10


def test_the_mean_is_rounded() -> None:
    lines = [span(1, "A", Kind.CALL, 0, 1), span(2, "A", Kind.CALL, 10, 12)]
    assert summary(session(lines))[0].mean_ns == 2


def test_incomplete_calls_count_but_not_in_means() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 700, flags=Flag.INCOMPLETE),
        span(2, "A", Kind.CALL, 1000, 1010),
    ]
    (row,) = summary(session(lines))
    assert (row.calls, row.incomplete, row.wall_ns) == (2, 1, 710)
    assert (row.mean_ns, row.max_ns, row.first_ns) == (10, 10, 10)
    (row,) = summary(session(lines[:1]))
    assert (row.calls, row.mean_ns, row.p50_ns, row.first_ns) == (1, None, None, None)


def test_what_nobody_measured_is_none_and_what_did_not_happen_is_zero() -> None:
    lines = [span(1, "A", Kind.CALL, 0, 100)]
    (blind,) = summary(session(lines, sight=[]))
    assert (blind.python_ns, blind.wait_ns, blind.untracked_ns) == (None, None, 100)
    assert (blind.device_ns, blind.queue_ns) == (None, None)
    (seen,) = summary(session(lines))
    assert (seen.python_ns, seen.wait_ns, seen.untracked_ns, seen.device_ns) == (100, 0, 0, 0)


def test_a_sum_leaves_out_what_is_not_measured() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=60),
        span(2, "A", Kind.CALL, 200, 300),
    ]
    (row,) = summary(session(lines, sight=[]))
    assert (row.wall_ns, row.python_ns, row.wait_ns, row.untracked_ns) == (200, 60, 40, 100)


def test_operators_of_one_name_stay_apart() -> None:
    one, two = op("f", qualified="a.f"), op("f", qualified="b.f")
    lines = [span(1, one, Kind.CALL, 0, 10), span(2, two, Kind.CALL, 20, 50)]
    rows = summary(session(lines))
    assert [(row.key, row.op, row.path, row.wall_ns) for row in rows] == [
        ("python:b.f#1", "f", ("f",), 30),
        ("python:a.f#1", "f", ("f",), 10),
    ]


def test_sight_of_another_host_does_not_help() -> None:
    (row,) = summary(
        session([span(1, "A", Kind.CALL, 0, 9)], sight=[Sight("x", sees=("all waits",))])
    )
    assert row.python_ns is None


@pytest.mark.parametrize("answer", [summary, calls, steps])
def test_the_parts_of_every_row_add_up(answer: object) -> None:
    for row in answer(nested()):  # type: ignore[operator]
        parts = [getattr(row, key) or 0 for key in PART_KEYS]
        assert parts[0] == sum(parts[1:])
        assert min(parts) >= 0
