"""Every known way to wait is one span of the call that waits."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for

import pytest
from tests.hosts.checks import Scene, in_thread

from opscope import custom_op
from opscope.model import Kind


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
