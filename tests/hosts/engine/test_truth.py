"""With a clock moved by hand the parts equal the script, on every kind of engine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import rows
from tests.hosts.engine.ops import ENGINES, define, engine_of

import opscope
from opscope import engine as nd
from opscope.model import Kind
from opscope.testing import ManualClock


@pytest.fixture(params=list(ENGINES), autouse=True)
def kind(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Each test on each way of running custom operators."""
    with engine_of(request.param):
        yield request.param


@pytest.fixture
def clock() -> ManualClock:
    """Time that only moves when told to."""
    return ManualClock()


def timed_op(clock: ManualClock, array: Any, ns: int, name: str = "timed") -> None:
    """A sub-operator that takes that long, wherever it runs."""
    nd.push_sync(lambda: clock.tick(ns), writes=[array.storage.var], name=name)


def test_waiting_for_a_sub_operator_is_not_python(kind: str, clock: ManualClock) -> None:
    def body(x: Any) -> Any:
        clock.tick(100)
        y = nd.zeros(x.shape)
        timed_op(clock, y, 1000)
        y.asnumpy()
        clock.tick(30)
        return y

    op = define("Waits", body)
    with opscope.profile(clock=clock) as profile:
        op(nd.ones((2, 2))).asnumpy()
    check(profile.session)
    (call,) = rows(profile.session, "Waits")
    assert (call.wall_ns, call.python_ns, call.untracked_ns) == (1130, 130, 0)
    if kind == "naive":
        assert (call.sub_ns, call.wait_ns, call.elsewhere_ns) == (1000, 0, 0)
    else:
        assert (call.sub_ns, call.wait_ns, call.elsewhere_ns) == (0, 1000, 1000)
    waits = profile.session.spans[profile.session.spans["kind"] == Kind.WAIT]
    shown = {(profile.session.names[row["name"]], int(row["owner"])) for row in waits}
    assert (("asnumpy", call.call) in shown) is (kind != "naive")


@pytest.mark.parametrize("kind", ["pool", "workers"], indirect=True)
def test_work_that_goes_on_meanwhile_is_python_and_elsewhere(kind: str, clock: ManualClock) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go.wait(30)
        clock.idle(50)

    def body(x: Any) -> Any:
        y = nd.zeros(x.shape)
        nd.push_sync(slow, writes=[y.storage.var], name="slow")
        begun.wait(30)
        clock.tick(70)
        go.set()
        y.wait_to_read()
        return y

    op = define("Meanwhile", body)
    with opscope.profile(clock=clock) as profile:
        op(nd.ones((2, 2))).asnumpy()
    (call,) = rows(profile.session, "Meanwhile")
    assert (call.wall_ns, call.python_ns, call.wait_ns) == (120, 70, 50)
    assert call.elsewhere_ns == 120


def test_a_nested_call_is_a_sub_operator_where_it_runs(kind: str, clock: ManualClock) -> None:
    def inner(x: Any) -> Any:
        clock.tick(200)
        return x

    def outer(x: Any) -> Any:
        clock.tick(10)
        y = inner_op(x)
        y.asnumpy()
        clock.tick(20)
        return y

    inner_op, outer_op = define("In", inner), define("Out", outer)
    with opscope.profile(clock=clock) as profile:
        outer_op(nd.ones((2, 2))).asnumpy()
    check(profile.session)
    (out,), (within,) = rows(profile.session, "Out"), rows(profile.session, "In")
    assert (within.wall_ns, within.python_ns) == (200, 200)
    assert (out.wall_ns, out.python_ns) == (230, 30)
    if kind == "naive":
        assert (out.sub_ns, out.wait_ns) == (200, 0)
    else:
        assert (out.sub_ns, out.wait_ns, out.elsewhere_ns) == (0, 200, 200)


def test_waiting_for_a_free_thread_is_queue(kind: str, clock: ManualClock) -> None:
    def body(x: Any) -> Any:
        clock.tick(5)
        return x

    op = define("Queued", body)
    with opscope.profile(clock=clock) as profile:
        x = nd.zeros((2, 2))
        timed_op(clock, x, 400)
        op(x).asnumpy()
    (call,) = rows(profile.session, "Queued")
    assert call.wall_ns == call.python_ns == 5
    assert call.queue_ns is not None
    assert call.queue_ns <= 400
    assert kind != "naive" or call.queue_ns == 0


def test_the_wrapper_is_dispatch(clock: ManualClock) -> None:
    def body(x: Any) -> Any:
        clock.tick(7)
        return x

    from opscope.engine.hooks import hooks

    def wrapper(call: Any) -> None:
        clock.tick(11)

    op = define("Wrapped", body)
    with opscope.profile(clock=clock) as profile:
        # Told after our own, so its time falls between the call's begin and its body's.
        hooks.add("call_began", wrapper)
        hooks.add("body_ended", wrapper)
        op(nd.ones((2, 2))).asnumpy()
        hooks.remove("call_began", wrapper)
        hooks.remove("body_ended", wrapper)
    check(profile.session)
    (call,) = rows(profile.session, "Wrapped")
    assert (call.wall_ns, call.python_ns, call.dispatch_ns, call.wait_ns) == (29, 7, 22, 0)


def test_a_sub_operator_that_ends_on_another_thread(kind: str, clock: ManualClock) -> None:
    jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def works_them_off() -> None:
        clock.tick(5_000)  # before; nothing of it may be taken for that of the caller
        while (job := jobs.get()) is not None:
            job()

    def begins(done: Callable[[], None]) -> None:
        def job() -> None:
            clock.tick(100)
            done()

        jobs.put(job)

    def body(x: Any) -> Any:
        clock.tick(20)
        var = nd.new_var()
        nd.push_async(begins, (), (var,), name="far away")
        nd.wait_for_var(var)
        clock.tick(3)
        clock.idle(4)
        return x

    thread = threading.Thread(target=works_them_off)
    thread.start()
    try:
        with opscope.profile(clock=clock) as profile:
            define("Elsewhere", body)(nd.ones((2, 2))).asnumpy()
    finally:
        jobs.put(None)
        thread.join()
    check(profile.session)
    (call,) = rows(profile.session, "Elsewhere")
    assert (call.wall_ns, call.python_ns, call.untracked_ns) == (127, 23, 0)
    shared = (call.sub_ns, call.wait_ns, call.elsewhere_ns)
    assert shared == ((100, 4, 0) if kind == "naive" else (0, 104, 100))
    assert "estimated" not in call.flags
