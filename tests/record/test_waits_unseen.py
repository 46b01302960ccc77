"""Waits that are nobody's, inside another, raised out of, or told from CPU time alone."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.hosts.checks import Scene, Turns

from opscope import custom_op
from opscope.model import Kind
from opscope.record import scope
from opscope.testing import assert_restored


def test_outside_calls_nothing_is_recorded(scene: Scene) -> None:
    with scene:
        time.sleep(0)
        threading.Event().wait(0)
        queue.Queue[int]().put(1)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(time.sleep, 0).result()
    assert scene.named(Kind.WAIT) == []


def test_no_wait_inside_a_wait(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        scene.idle(1)
        threading.Event().wait(0)
        scene.idle(1)

    monkeypatch.setattr(time, "sleep", sleep)

    @custom_op("sleeps")
    def sleeps() -> None:
        time.sleep(1)
        threading.Event().wait(0)

    with scene:
        sleeps()
    assert scene.named(Kind.WAIT) == [("sleep", "sleeps", 2), ("wait", "sleeps", 0)]


def test_a_call_inside_a_wait_has_its_own(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = custom_op("inner")(lambda: (scene.tick(5), threading.Event().wait(0)))
    monkeypatch.setattr(time, "sleep", lambda _: (scene.idle(1), inner()))

    @custom_op("outer")
    def outer() -> None:
        time.sleep(1)

    with scene:
        outer()
    assert scene.named(Kind.WAIT) == [("sleep", "outer", 6), ("wait", "inner", 0)]
    assert scene.parts("outer") == {"wall": 6, "sub": 5, "wait": 1}


def test_a_bare_lock_is_told_from_cpu_time(scene: Scene) -> None:
    lock, turn = threading.Lock(), Turns()

    def holder() -> None:
        with lock, turn(0):
            pass
        with turn(1):
            pass

    @custom_op("locked")
    def locked() -> None:
        scene.tick(10)
        scene.idle(20)  # as waiting for a lock looks to the clocks
        with lock:
            scene.tick(5)

    with scene:
        locked()
    assert holder
    assert scene.parts("locked") == {"wall": 35, "python": 15, "wait": 20}
    assert scene.named(Kind.WAIT) == []


def test_a_wait_that_raises(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        scene.idle(4)
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)

    @custom_op("sleeps")
    def sleeps() -> None:
        with pytest.raises(KeyboardInterrupt):
            time.sleep(1)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(1)

    with scene:
        sleeps()
    assert scene.named(Kind.WAIT) == [("sleep", "sleeps", 4)] * 2


def test_the_originals_are_what_they_were() -> None:
    before = time.sleep
    with Scene():
        assert time.sleep is not before
        assert (time.sleep.__name__, time.sleep.__doc__) == (before.__name__, before.__doc__)
    assert time.sleep is before


def test_a_hook_that_fails_is_told_and_the_program_waits_all_the_same(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise KeyError("no room")

    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(scope, "wait_begin", refuse)

    @custom_op("waits")
    def waits() -> None:
        time.sleep(7)
        time.sleep(8)

    with assert_restored(), scene.profile as run:
        waits()
    assert slept == [7, 8]
    assert run.session.processes[0].broken == ("waits: KeyError: 'no room'",)


def test_so_is_one_that_fails_at_the_end(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise KeyError("no room")

    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(scope, "wait_end", refuse)
    with scene.profile as run:
        custom_op("waits")(time.sleep)(7)
    scope._waiting.clear()
    assert slept == [7]
    assert run.session.processes[0].broken == ("waits: KeyError: 'no room'",)
