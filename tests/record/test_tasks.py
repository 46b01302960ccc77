"""Work handed to threads: whose it is, where its time goes, and that nobody notices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.dummy import Process as DummyProcess

import pytest
from tests.hosts.checks import Scene, Turns, parts

from opscope import custom_op
from opscope.model import Flag, Kind


class Subclass(threading.Thread):
    def __init__(self, work: Callable[[int], int]) -> None:
        super().__init__()
        self.work = work

    def run(self) -> None:
        self.work(5)


def with_own_run(work: Callable[[int], int]) -> threading.Thread:
    thread = threading.Thread(target=print)
    thread.run = lambda: work(5)  # type: ignore[method-assign]
    return thread


THREADS: dict[str, Callable[[Callable[[int], int]], threading.Thread]] = {
    "target": lambda work: threading.Thread(target=work, args=(5,)),
    "daemon": lambda work: threading.Thread(target=work, kwargs={"ns": 5}, daemon=True),
    "subclass": Subclass,
    "timer": lambda work: threading.Timer(0, work, (5,)),
    "own run": with_own_run,
    "multiprocessing.dummy": lambda work: DummyProcess(target=work, args=(5,)),
}


@pytest.mark.parametrize("sort", THREADS)
def test_a_thread(sort: str, scene: Scene, work: Callable[[int], int]) -> None:
    @custom_op("starts")
    def starts() -> None:
        scene.tick(1)
        thread.start()
        thread.join()
        scene.tick(2)

    thread = THREADS[sort](work)
    before = dict(vars(thread))
    with scene:
        starts()
    assert ("run" in vars(thread)) == ("run" in before)
    row = scene.call("starts")
    assert parts(row) == {"wall": 13, "python": 3, "wait": 10}
    assert (row.elsewhere_ns, row.elsewhere_python_ns, row.elsewhere_union_ns) == (10, 5, 10)
    assert scene.call("note").path == ("starts", "note")
    assert [(op, ns) for _, op, ns in scene.named(Kind.TASK)] == [("starts", 10)]
    (task,) = scene.spans(Kind.TASK)
    assert task["submitted_ns"] == 1_000_001
    assert task["submitted_lane"] != task["lane"]


def test_fire_and_forget(scene: Scene, work: Callable[[int], int]) -> None:
    turn = Turns()
    threads: list[threading.Thread] = []

    def later() -> None:
        with turn(1):
            work(5)

    @custom_op("fires")
    def fires() -> None:
        threads.append(threading.Thread(target=later))
        threads[0].start()
        scene.tick(1)

    with scene:
        with turn(0):
            fires()
        threads[0].join()
    row = scene.call("fires")
    assert row.flags == ("outlived",)
    assert parts(row) == {"wall": 1, "python": 1}
    assert (row.elsewhere_python_ns, row.span_ns) == (5, 11)
    assert scene.call("note").path == ("fires", "note")


def test_an_exception_passes_and_is_flagged(scene: Scene) -> None:
    error = KeyError("mine")

    def bad() -> None:
        scene.tick(1)
        raise error

    @custom_op("submits")
    def submits(pool: ThreadPoolExecutor) -> None:
        with pytest.raises(KeyError) as caught:
            pool.submit(bad).result()
        assert caught.value is error

    with scene, ThreadPoolExecutor(1) as pool:
        submits(pool)
    (task,) = scene.spans(Kind.TASK)
    assert task["flags"] == Flag.FAILED
    assert scene.call("submits").flags == ()


def test_a_thread_that_does_not_start(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise RuntimeError("can't start new thread")

    name = next(n for n in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, n))
    thread = threading.Thread(target=print)

    @custom_op("starts")
    def starts() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(threading, name, refuse)
            with pytest.raises(RuntimeError, match="can't start"):
                thread.start()

    with scene:
        starts()
        ran = threading.Thread(target=lambda: None)
        ran.start()
        with pytest.raises(RuntimeError, match="only be started once"):
            ran.start()
        ran.join()
    assert "run" not in {**vars(thread), **vars(ran)}
    assert len(scene.named(Kind.TASK)) == 1


def test_a_task_that_crosses_the_end_and_one_that_comes_after_it(
    scene: Scene, work: Callable[[int], int]
) -> None:
    turn = Turns()

    def slow(first: int, second: int) -> None:
        with turn(first):
            scene.tick(5)
        with turn(second):
            work(7)

    @custom_op("fires")
    def fires() -> None:
        pool.submit(slow, 0, 3)
        pool.submit(slow, 4, 5)

    with ThreadPoolExecutor(1) as pool:
        with scene:
            fires()
            with turn(1):
                scene.idle(1)
        with turn(2):
            scene.idle(1)
    row = scene.call("fires")
    assert (row.elsewhere_ns, row.elsewhere_python_ns) == (6, 5)
    assert [(op, ns) for _, op, ns in scene.named(Kind.TASK)] == [("fires", 6)]
    assert scene.spans(Kind.TASK)["flags"].tolist() == [Flag.INCOMPLETE]
    assert scene.calls("note") == []
