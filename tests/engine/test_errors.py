"""Failures: where they stick, how far they reach, when they raise, and that they raise once."""

from __future__ import annotations

import traceback

import pytest

from opscope import engine as nd
from opscope.engine.engine import Engine


class Odd(Exception):
    pass


def boom(text: str = "boom") -> None:
    raise Odd(text)


def test_nothing_raises_at_the_push_and_the_original_raises_at_the_wait(engine: Engine) -> None:
    var = engine.new_var()
    engine.push_sync(boom, (), (var,))
    with pytest.raises(Odd, match="boom") as caught:
        engine.wait_for_var(var)
    assert "boom" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_reported_once_wherever_it_reached(engine: Engine) -> None:
    a, b, c = (engine.new_var() for _ in range(3))
    ran: list[int] = []
    engine.push_sync(boom, (), (a, b))
    engine.push_sync(lambda: ran.append(1), (a,), (c,))
    with pytest.raises(Odd):
        engine.wait_for_var(c)
    engine.wait_for_var(a)
    engine.wait_for_var(b)
    engine.wait_all()
    assert ran == []


def test_wait_all_raises_each_failure_once(engine: Engine) -> None:
    engine.push_sync(lambda: boom("first"), (), (engine.new_var(),))
    with pytest.raises(Odd, match="first"):
        engine.wait_all()
    engine.wait_all()
    engine.push_sync(lambda: boom("second"))
    with pytest.raises(Odd, match="second"):
        engine.wait_all()
    engine.wait_all()


def test_a_second_separate_failure_raises_again(engine: Engine) -> None:
    var = engine.new_var()
    for text in ("first", "second"):
        engine.push_sync(lambda text=text: boom(text), (), (var,))
        with pytest.raises(Odd, match=text):
            engine.wait_for_var(var)
        engine.wait_for_var(var)


def test_after_the_report_the_variable_works_again(engine: Engine) -> None:
    var, ran = engine.new_var(), []
    engine.push_sync(boom, (), (var,))
    with pytest.raises(Odd):
        engine.wait_all()
    engine.push_sync(lambda: ran.append(1), (), (var,))
    engine.push_sync(lambda: ran.append(2), (var,))
    engine.wait_all()
    assert ran == [1, 2]


def test_a_writer_in_place_is_skipped_too(engine: Engine) -> None:
    var, ran = engine.new_var(), []
    engine.push_sync(boom, (), (var,))
    engine.push_sync(lambda: ran.append(1), (), (var,))
    with pytest.raises(Odd):
        engine.wait_for_var(var)
    assert ran == []


def test_async_failures_raised_and_passed(engine: Engine) -> None:
    a, b = engine.new_var(), engine.new_var()
    engine.push_async(lambda done: boom("raised"), (), (a,))
    engine.push_async(lambda done: done(Odd("passed")), (), (b,))
    with pytest.raises(Odd, match="raised"):
        engine.wait_for_var(a)
    with pytest.raises(Odd, match="passed"):
        engine.wait_for_var(b)


def test_raising_after_completion_is_not_lost(engine: Engine) -> None:
    engine.push_async(lambda done: (done(), boom()))

    def wait_on() -> None:
        while True:  # the task ends before its function raises
            engine.wait_all()

    with pytest.raises(Odd):
        wait_on()


def test_failures_survive_stopping(engine: Engine) -> None:
    engine.push_sync(boom)
    engine.stop()
    with pytest.raises(Odd):
        engine.wait_all()


def test_deletion_of_a_failed_variable_runs(engine: Engine) -> None:
    var, called = engine.new_var(), []
    engine.push_sync(boom, (), (var,))
    engine.delete_var(var, lambda: called.append(1))
    with pytest.raises(Odd):
        engine.wait_for_var(var)  # the deletion has not made the failure go away
    engine.wait_all()
    assert called == [1]


def test_system_exit_in_a_task_does_not_kill_a_worker() -> None:
    engine = nd.ThreadedEngine(1)
    var, ran = engine.new_var(), []

    def leave() -> None:
        raise SystemExit(3)

    engine.push_sync(leave, (), (var,))
    engine.push_sync(lambda: ran.append(1))
    with pytest.raises(SystemExit):
        engine.wait_for_var(var)
    engine.wait_all()
    assert ran == [1]
    engine.stop()


def test_interrupt_raises_at_once_in_the_naive_kind() -> None:
    engine = nd.NaiveEngine()

    def interrupt() -> None:
        raise KeyboardInterrupt

    for writes in ((), (engine.new_var(),)):
        with pytest.raises(KeyboardInterrupt):
            engine.push_sync(interrupt, (), writes)
        engine.wait_all()


def test_arrays_raise_at_every_kind_of_wait(any_kind: str) -> None:
    for wait in ("asnumpy", "wait_to_read", "asscalar"):
        a = nd.random.normal(0, -1, shape=1)
        b = nd.dot(a + 1, a)
        a = b  # a rebound name
        with pytest.raises(ValueError, match="scale"):
            getattr(a, wait)()
    nd.random.normal(0, -1, shape=(2, 2))
    with pytest.raises(ValueError, match="scale"):
        nd.waitall()
    nd.waitall()


def test_failure_reaches_gradients(any_kind: str) -> None:
    x = nd.ones((2, 2))
    x.attach_grad()
    with nd.autograd.record():
        y = (x * nd.random.normal(0, -1, shape=(2, 2))).sum()
    y.backward()
    with pytest.raises(ValueError, match="scale"):
        x.grad.asnumpy()
    nd.waitall()


def test_shape_and_argument_errors_raise_at_once(any_kind: str) -> None:
    a, b = nd.ones((2, 3)), nd.ones((4, 5))
    for wrong in (
        lambda: nd.dot(a, b),
        lambda: a + b,
        lambda: a.reshape(4, 4),
        lambda: a.reshape(-1, -1),
        lambda: nd.sum(a, axis=2),
        lambda: nd.sum(a, axis=(0, -2)),
        lambda: nd.transpose(a, (0, 0)),
        lambda: a.__setitem__(slice(None), b),
        lambda: a.__iadd__(nd.ones((4, 2, 3))),
        lambda: nd.broadcast_to(a, (2, 2)),
        lambda: nd.max(nd.zeros((0, 2)), axis=0),
        lambda: nd.zeros((2, -1)),
        lambda: a[[True, False]],
    ):
        with pytest.raises(nd.ShapeError):
            wrong()
    for wrong in (
        lambda: nd.dot(a, 3),
        lambda: a + "x",
        lambda: nd.zeros(("a",)),
        lambda: nd.array("text"),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    with pytest.raises(IndexError):
        a[5]
    with pytest.raises(nd.EngineError, match="no operator"):
        nd.apply("nonesuch", a)
    nd.waitall()
