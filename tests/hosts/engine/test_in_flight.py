"""Recording begins, pauses or ends inside a call: the row is there, and says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import free, owned, rows
from tests.hosts.engine.ops import ENGINES, add_one, define, engine_of

import opscope
from opscope import engine as nd
from opscope.record import scope
from opscope.testing import ManualClock, assert_restored


@pytest.fixture(params=list(ENGINES), autouse=True)
def kind(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Each test on each way of running custom operators; nothing stays behind."""
    with assert_restored(), engine_of(request.param):
        yield request.param


def run(name: str, body: Any) -> None:
    """One call of an operator with that body, waited for."""
    define(name, body)(nd.ones((2, 2))).asnumpy()


def test_recording_begins_inside_a_call() -> None:
    clock = ManualClock()
    profile = opscope.profile(clock=clock)

    def body(x: Any) -> Any:
        y = x * 2.0
        clock.tick(100)
        profile.start()
        clock.tick(10)
        return y + 1.0

    run("Begins", body)
    nd.ones((2, 2)).asnumpy()
    nd.waitall()
    profile.stop()
    check(profile.session)
    (call,) = rows(profile.session, "Begins")
    assert "clamped" in call.flags
    assert (call.wall_ns, call.python_ns) == (10, 10)
    assert owned(profile.session, call) == {"_plus_scalar": 1, "_copyto": 1}
    assert free(profile.session) == {"_ones": 1}


def test_recording_begins_on_another_thread_inside_a_call(kind: str) -> None:
    begun, go = threading.Event(), threading.Event()
    profile = opscope.profile()

    def body(x: Any) -> Any:
        begun.set()
        go.wait(30)
        return x + 1.0

    op = define("Elsewhere", body)
    caller = threading.Thread(target=lambda: op(nd.ones((2, 2))).asnumpy())
    caller.start()
    begun.wait(30)
    with profile:
        nd.ones((2, 2)) * 3.0
        go.set()
        caller.join()
        nd.waitall()
    check(profile.session)
    (call,) = rows(profile.session, "Elsewhere")
    assert "clamped" in call.flags
    assert owned(profile.session, call) == {"_plus_scalar": 1, "_copyto": 1}
    assert free(profile.session) == {"_ones": 1, "_mul_scalar": 1}


def test_recording_begins_two_calls_deep() -> None:
    profile = opscope.profile()

    def inner(x: Any) -> Any:
        profile.start()
        return x * 2.0

    inner_op = define("DeepIn", inner)

    def outer(x: Any) -> Any:
        y = inner_op(x)
        y.asnumpy()
        return y + 1.0

    run("DeepOut", outer)
    nd.waitall()
    profile.stop()
    session = profile.session
    check(session)
    (out,), (within,) = rows(session, "DeepOut"), rows(session, "DeepIn")
    assert "clamped" in out.flags
    assert "clamped" in within.flags
    assert owned(session, within) == {"_mul_scalar": 1, "_copyto": 1}
    assert owned(session, out)["_plus_scalar"] == 1


def test_recording_ends_inside_a_call() -> None:
    clock = ManualClock()
    profile = opscope.profile(clock=clock).start()

    def body(x: Any) -> Any:
        y = x * 2.0
        y.asnumpy()
        clock.tick(40)
        profile.stop()
        clock.tick(1000)
        return y + 1.0

    run("Ends", body)
    check(profile.session)
    (call,) = rows(profile.session, "Ends")
    assert "incomplete" in call.flags
    assert (call.wall_ns, call.python_ns, call.untracked_ns) == (40, 40, 0)
    assert owned(profile.session, call) == {"_mul_scalar": 1}


def test_recording_pauses_inside_a_call() -> None:
    clock = ManualClock()
    profile = opscope.profile(clock=clock)

    def body(x: Any) -> Any:
        y = x * 2.0
        y.asnumpy()
        clock.tick(40)
        profile.pause()
        y = y - 5.0
        y.asnumpy()
        clock.tick(1000)
        clock.idle(500)
        profile.resume()
        clock.tick(2)
        clock.idle(7)  # found from CPU time, of which that of the pause is no part
        return y + 1.0

    with profile:
        run("Pauses", body)
        nd.waitall()
    check(profile.session)
    (call,) = rows(profile.session, "Pauses")
    assert "paused" in call.flags
    assert (call.wall_ns, call.python_ns, call.wait_ns) == (49, 42, 7)
    assert owned(profile.session, call) == {"_mul_scalar": 1, "_plus_scalar": 1, "_copyto": 1}


def test_operators_and_calls_of_a_pause_do_not_appear() -> None:
    op = define("Unseen", add_one)
    profile = opscope.profile()
    with profile:
        op(nd.ones((2, 2))).asnumpy()
        profile.pause()
        op(nd.ones((2, 2)) * 2.0).asnumpy()
        profile.resume()
        op(nd.ones((2, 2))).asnumpy()
        nd.waitall()
    check(profile.session)
    assert len(rows(profile.session, "Unseen")) == 2
    assert free(profile.session) == {"_ones": 2}


def test_a_call_that_begins_in_a_pause_and_outlasts_it_is_seen_from_there() -> None:
    clock = ManualClock()
    profile = opscope.profile(clock=clock)

    def body(x: Any) -> Any:
        y = x * 2.0
        clock.tick(100)
        profile.resume()
        clock.tick(3)
        return y + 1.0

    with profile:
        profile.pause()
        run("Late", body)
        nd.waitall()
    check(profile.session)
    (call,) = rows(profile.session, "Late")
    assert "clamped" in call.flags
    assert call.wall_ns == 3
    assert owned(profile.session, call) == {"_plus_scalar": 1, "_copyto": 1}


def test_the_same_call_runs_through_two_recordings() -> None:
    first, second = opscope.profile(), opscope.profile()

    def body(x: Any) -> Any:
        y = x * 2.0
        y.asnumpy()
        first.stop()
        second.start()
        return y + 1.0

    first.start()
    run("Through", body)
    nd.waitall()
    second.stop()
    (early,), (late,) = rows(first.session, "Through"), rows(second.session, "Through")
    assert "incomplete" in early.flags
    assert "clamped" in late.flags
    assert owned(first.session, early) == {"_mul_scalar": 1}
    assert owned(second.session, late) == {"_plus_scalar": 1, "_copyto": 1}


def test_a_call_found_running_whose_thread_has_recorded_nothing_is_paused_too() -> None:
    clock = ManualClock()
    profile = opscope.profile(clock=clock)

    def body(x: Any) -> Any:
        profile.start()
        clock.idle(1)
        profile.pause()
        clock.tick(100)
        return x

    run("Found", body)
    profile.stop()
    check(profile.session)
    (call,) = rows(profile.session, "Found")
    assert (call.wall_ns, call.python_ns, call.wait_ns) == (1, 0, 1)


def test_what_an_earlier_recording_pushed_is_not_of_the_next_one(kind: str) -> None:
    if kind == "naive":
        pytest.skip("nothing outlives its push")
    go = threading.Event()
    late = define("Late", lambda x: x + 1.0)
    x = nd.ones((2, 2))

    held = x.storage.var

    def body(y: Any) -> Any:
        nd.push_sync(lambda: go.wait(30), (), (held,), name="holds")
        nd.push_sync(None, (held,), (), name="waits")
        nd.push_async(lambda done: done(), (held,), (), name="waits too")
        return y

    with opscope.profile(clock=ManualClock()):
        define("First", body)(nd.ones((2, 2))).wait_to_read()
        later = late(x)
    with opscope.profile(clock=ManualClock()) as profile:
        # Spans of this one that could be taken for the owners of the other's.
        for _ in range(5):
            define("Second", lambda x: x * 2.0)(nd.ones((2, 2)))
        go.set()
        later.wait_to_read()
        nd.waitall()
    session = profile.session
    check(session)
    assert free(session) == {"_ones": 5}
    (call,) = rows(session, "Late")
    assert (call.parent, call.path) == (None, ("Late",))
    assert owned(session, call) == {"_plus_scalar": 1, "_copyto": 1}
    (span,) = session.spans[session.spans["id"] == call.call]
    assert (span["submitted_ns"], span["lane"]) == (0, span["submitted_lane"])


def test_who_waits_when_recording_ends_is_forgotten(kind: str) -> None:
    if kind == "naive":
        pytest.skip("nothing blocks there")
    waiting, go = threading.Event(), threading.Event()

    def body(x: Any) -> Any:
        var = nd.new_var()
        nd.push_sync(lambda: go.wait(30), (), (var,), name="holds")
        nd.wait_for_var(var)
        return x

    with opscope.profile() as profile, told("wait_began", waiting.set):
        result = define("Waits", body)(nd.ones((2, 2)))
        assert waiting.wait(30)
    assert not scope._waiting  # it would keep all of the recording, for ever if it never ends
    go.set()
    result.wait_to_read()
    (call,) = rows(profile.session, "Waits")
    assert "incomplete" in call.flags
    assert call.wait_ns > 0


@contextmanager
def told(moment: str, fn: Callable[[], object]) -> Iterator[None]:
    """Calls `fn` at every such moment, after the recording's own hook."""

    def tell(*facts: object) -> None:
        fn()

    nd.hooks.add(moment, tell)
    try:
        yield
    finally:
        nd.hooks.remove(moment, tell)


def test_a_call_that_has_ended_but_is_still_on_a_stack_is_not_running(kind: str) -> None:
    if kind == "naive":
        pytest.skip("it ends without a lock")
    engine, over = nd.get(), threading.Event()
    profile = opscope.profile()

    def ended() -> None:
        engine._lock.acquire()  # type: ignore[attr-defined]
        over.set()

    with told("call_ended", ended):
        result = define("Over", lambda x: x)(nd.ones((2, 2)))
        assert over.wait(30)
        time.sleep(0.05)  # its thread waits for the engine by now
        profile.start()
        engine._lock.release()  # type: ignore[attr-defined]
        result.wait_to_read()
    nd.waitall()
    profile.stop()
    assert rows(profile.session, "Over") == []
