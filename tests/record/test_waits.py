"""Waits that are seen, waits that are told from CPU time, and waits that are nobody's."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

import pytest
from tests.hosts.checks import Scene, Turns, fresh, in_thread

from opscope import custom_op
from opscope.model import Kind


@pytest.fixture
def scene() -> Iterator[Scene]:
    with fresh() as made:
        yield made


class Other:
    """Another thread, of which opscope knows nothing: passes `ns`, then does something."""

    def __init__(self, scene: Scene, ns: int, act: Callable[[], object]) -> None:
        self.gate = threading.Event()

        def run() -> None:
            self.gate.wait(30)
            scene.idle(ns)
            act()

        self.thread = threading.Thread(target=run)
        self.thread.start()


def on_event(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    event = threading.Event()
    other(event.set)
    go()
    assert event.wait(30)


def on_queue(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    items: queue.Queue[int] = queue.Queue()
    other(lambda: items.put(1))
    go()
    assert items.get(timeout=30) == 1


def on_condition(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    changed, state = threading.Condition(), []

    def change() -> None:
        with changed:
            state.append(1)
            changed.notify()

    other(change)
    with changed:
        go()
        assert changed.wait_for(lambda: state, 30)


def on_future(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    future: Future[int] = Future()
    other(lambda: future.set_result(1))
    go()
    assert future.result(30) == 1


def on_futures(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    future: Future[int] = Future()
    other(lambda: future.set_result(1))
    go()
    assert wait_for([future], 30).done == {future}


def on_semaphore(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    semaphore = threading.Semaphore(0)
    other(semaphore.release)
    go()
    assert semaphore.acquire(timeout=30)


def on_join(go: Callable[[], object], other: Callable[[Callable[[], object]], Other]) -> None:
    thread = other(lambda: None).thread
    go()
    thread.join()


KNOWN = {
    "event": (on_event, "wait"),
    "queue": (on_queue, "wait"),
    "condition": (on_condition, "wait"),
    "future": (on_future, "wait"),
    "futures": (on_futures, "wait"),
    "semaphore": (on_semaphore, "wait"),
    "join": (on_join, "join"),
}


@pytest.mark.parametrize("sort", KNOWN)
def test_a_known_wait_is_one_span(sort: str, scene: Scene) -> None:
    wait, name = KNOWN[sort]
    others: list[Other] = []

    def other(act: Callable[[], object]) -> Other:
        # Made outside the call, so that starting it is no wait of the call's.
        in_thread(lambda: others.append(Other(scene, 50, act)))
        return others[0]

    @custom_op("waits")
    def waits() -> None:
        scene.tick(3)
        wait(lambda: others[0].gate.set(), other)
        scene.tick(4)

    with scene:
        waits()
    others[0].thread.join()
    assert scene.parts("waits") == {"wall": 57, "python": 7, "wait": 50}
    known = [(shown, ns) for shown, op, ns in scene.named(Kind.WAIT) if op == "waits"]
    assert {shown for shown, _ in known} == {name}
    assert sum(ns for _, ns in known) <= 50


def test_sleep(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: scene.idle(int(seconds)))

    @custom_op("sleeps")
    def sleeps() -> None:
        scene.tick(1)
        time.sleep(30)

    with scene:
        sleeps()
        time.sleep(70)
    assert scene.named(Kind.WAIT) == [("sleep", "sleeps", 30)]
    assert scene.parts("sleeps") == {"wall": 31, "python": 1, "wait": 30}


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
