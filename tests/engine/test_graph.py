"""The graph alone: order, counting, and its own check."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.engine.errors import EngineError, GraphError
from opscope.engine.graph import HIDDEN, Failure, Graph, Task, Var, blame, tidy

VARS = 5
workloads = st.lists(
    st.tuples(
        st.lists(st.integers(0, VARS - 1), max_size=4),
        st.lists(st.integers(0, VARS - 1), max_size=3),
    ),
    max_size=40,
)


def apply_step(values: list[int], number: int, reads: list[int], writes: list[int]) -> None:
    total = sum(values[r] for r in reads)
    for w in writes:
        values[w] = (values[w] * 31 + total + number) % 1000003


@settings(deadline=None)
@given(workloads, st.integers(0, 2**32), st.integers(1, 6))
def test_any_order_the_graph_allows_gives_the_serial_result(
    work: list[tuple[list[int], list[int]]], seed: int, backlog: int
) -> None:
    serial = [0] * VARS
    for number, (reads, writes) in enumerate(work):
        apply_step(serial, number, reads, list(dict.fromkeys(writes)))
    graph, chance = Graph(), random.Random(seed)
    variables, values = [Var() for _ in range(VARS)], [0] * VARS
    ready: list[Task] = []
    steps: dict[Task, tuple[int, list[int], list[int]]] = {}

    def end_one() -> None:
        task = ready.pop(chance.randrange(len(ready)))
        apply_step(values, *steps[task])
        ready.extend(graph.done(task))
        graph.check()

    for number, (reads, writes) in enumerate(work):
        task = Task(None, "t", *tidy([variables[r] for r in reads], [variables[w] for w in writes]))
        steps[task] = number, reads, list(dict.fromkeys(writes))
        ready.extend(graph.push(task))
        graph.check()
        while len(ready) > backlog:
            end_one()
    while ready:
        end_one()
    assert not graph.tasks
    assert values == serial
    for index, var in enumerate(variables):
        assert var.version == sum(index in set(writes) for _, writes in work)
        assert var.settled
        assert not var.reading


def test_readers_share_and_writers_do_not() -> None:
    graph, var = Graph(), Var()
    first, second = Task(None, "r1", (var,)), Task(None, "r2", (var,))
    writer, after = Task(None, "w", (), (var,)), Task(None, "r3", (var,))
    assert graph.push(first) == (first,)
    assert graph.push(second) == (second,)
    assert graph.push(writer) == ()
    assert graph.push(after) == ()  # does not overtake the writer
    assert graph.done(second) == []
    assert graph.done(first) == [writer]
    assert graph.done(writer) == [after]
    assert graph.done(after) == []


def test_tidy_lets_the_write_win_and_drops_duplicates() -> None:
    a, b = Var(), Var()
    assert tidy([a, b, b], [a, a]) == ((b,), (a,))
    with pytest.raises(TypeError, match="Var"):
        tidy([a, 3], [])  # type: ignore[list-item]
    b.doomed = True
    with pytest.raises(EngineError, match="deleted"):
        tidy([], [b])


def test_hidden_tasks_leave_no_mark() -> None:
    graph, var = Graph(), Var()
    task = Task(None, "wait", (), (var,), kind=HIDDEN)
    graph.push(task)
    graph.done(task)
    assert var.version == 0


def test_failure_sticks_until_written_well() -> None:
    graph, var = Graph(), Var()
    bad, good = Task(None, "bad", (), (var,)), Task(None, "good", (), (var,))
    graph.push(bad)
    bad.error = failure = Failure(ValueError("x"), "bad", None)
    graph.done(bad)
    assert blame(Task(None, "reader", (var,))) is failure
    assert blame(good) is failure  # an operator in place reads what it writes
    failure.reported = True
    assert blame(good) is None
    graph.push(good)
    graph.done(good)
    assert var.error is None


def test_done_refuses_what_is_not_running() -> None:
    graph, var = Graph(), Var()
    first, second = Task(None, "a", (), (var,)), Task(None, "b", (), (var,))
    graph.push(first)
    graph.push(second)
    with pytest.raises(GraphError, match="ready"):
        graph.done(second)
    graph = Graph()
    with pytest.raises(GraphError, match="pending"):
        graph.done(first)


@pytest.mark.parametrize("fault", ["reader beside writer", "free var", "wrong count", "ghost"])
def test_check_sees_contradictions(fault: str) -> None:
    graph, var = Graph(), Var()
    first, second = Task(None, "a", (), (var,)), Task(None, "b", (), (var,))
    graph.push(first)
    graph.push(second)
    graph.check()
    if fault == "reader beside writer":
        var.reading = 1
    elif fault == "free var":
        var.writer = None
    elif fault == "wrong count":
        second.waits = 2
    else:
        graph.tasks.discard(first)
    with pytest.raises(GraphError):
        graph.check()
