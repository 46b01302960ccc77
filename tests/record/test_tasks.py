"""Work handed to threads and pools: whose it is, where its time goes, and that nobody notices."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.dummy import Process as DummyProcess
from multiprocessing.pool import ThreadPool

import pytest
from tests.hosts.checks import Scene, Turns, fresh, parts

from opscope import carry, custom_op
from opscope.model import Flag, Kind


@pytest.fixture
def scene() -> Iterator[Scene]:
    with fresh() as made:
        yield made


@pytest.fixture
def work(scene: Scene) -> Callable[[int], int]:
    """Python for `ns`, then an operator for `ns`; returns `ns`."""

    @custom_op("note")
    def note(ns: int) -> None:
        scene.tick(ns)

    def work(ns: int) -> int:
        scene.tick(ns)
        note(ns)
        return ns

    return work


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


def test_a_pool_made_before_the_recording(scene: Scene, work: Callable[[int], int]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work, 1).result()

        @custom_op("submits")
        def submits() -> None:
            assert pool.submit(work, 5).result() == 5
            assert list(pool.map(work, [10, 20])) == [10, 20]

        with scene:
            submits()
            pool.submit(work, 100).result()
    row = scene.call("submits")
    assert parts(row) == {"wall": 70, "wait": 70}
    assert (row.elsewhere_ns, row.elsewhere_python_ns) == (70, 35)
    assert [row.path for row in scene.calls("note")] == [("submits", "note")] * 3 + [("note",)]
    assert [(op, ns) for _, op, ns in scene.named(Kind.TASK)] == [
        ("submits", 10),
        ("submits", 20),
        ("submits", 40),
        (None, 200),
    ]


def test_a_worker_born_inside_a_call_does_not_stay_its_own(
    scene: Scene, work: Callable[[int], int]
) -> None:
    made: list[ThreadPoolExecutor] = []

    @custom_op("makes")
    def makes() -> None:
        made.append(ThreadPoolExecutor(1))
        made[0].submit(work, 5).result()

    with scene:
        makes()
        made[0].submit(work, 7).result()
        made[0].shutdown()
    assert [row.path for row in scene.calls("note")] == [("makes", "note"), ("note",)]
    assert [(op, ns) for _, op, ns in scene.named(Kind.TASK)] == [("makes", 10), (None, 14)]


def test_call_pool_call_thread(scene: Scene, work: Callable[[int], int]) -> None:
    @custom_op("inner")
    def inner() -> None:
        thread = threading.Thread(target=work, args=(5,))
        thread.start()
        thread.join()

    @custom_op("outer")
    def outer() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(inner).result()

    with scene:
        outer()
    assert scene.call("note").path == ("outer", "inner", "note")
    for op in ("inner", "outer"):
        assert scene.parts(op) == {"wall": 10, "wait": 10}
    # The task that runs `inner` has no Python of its own; `inner` has none either.
    assert scene.call("outer").elsewhere_python_ns == 5
    assert scene.call("inner").elsewhere_python_ns == 5
    assert scene.call("outer").elsewhere_union_ns == 10


WAYS: dict[str, Callable[[ThreadPool, Callable[[int], int]], object]] = {
    "apply": lambda pool, fn: [pool.apply(fn, (1,)), pool.apply(fn, (20,))],
    "apply_async": lambda pool, fn: [pool.apply_async(func=fn, args=(n,)).get() for n in (1, 20)],
    "map": lambda pool, fn: pool.map(fn, [1, 20]),
    "map in one chunk": lambda pool, fn: pool.map(fn, [1, 20], chunksize=2),
    "map_async": lambda pool, fn: pool.map_async(fn, [1, 20]).get(),
    "starmap": lambda pool, fn: pool.starmap(fn, [(1,), (20,)]),
    "starmap_async": lambda pool, fn: pool.starmap_async(fn, [(1,), (20,)]).get(),
    "imap": lambda pool, fn: list(pool.imap(fn, [1, 20])),
    "imap in one chunk": lambda pool, fn: list(pool.imap(fn, [1, 20], 2)),
    "imap_unordered": lambda pool, fn: sorted(pool.imap_unordered(fn, [1, 20])),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_thread_pool_of_multiprocessing(
    way: str, scene: Scene, work: Callable[[int], int]
) -> None:
    @custom_op("uses")
    def uses() -> None:
        with ThreadPool(1) as pool:
            assert WAYS[way](pool, work) == [1, 20]
            inside.append(pool)

    inside: list[ThreadPool] = []
    with scene:
        uses()
    inside[0].join()
    row = scene.call("uses")
    assert parts(row) == {"wall": 42, "wait": 42}
    assert (row.elsewhere_ns, row.elsewhere_python_ns) == (42, 21)
    assert [(op, ns) for _, op, ns in scene.named(Kind.TASK)] == [("uses", 2), ("uses", 40)]


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


def test_carry_to_a_worker_of_ones_own(scene: Scene, work: Callable[[int], int]) -> None:
    jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
    done = threading.Event()

    def worker() -> None:
        while (job := jobs.get()) is not None:
            job()
            done.set()

    @custom_op("asks")
    def asks() -> None:
        done.clear()
        jobs.put(carry(lambda: work(5)))
        done.wait()

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    assert carry(work) is work  # nobody records
    with scene:
        asks()
        done.clear()
        jobs.put(lambda: work(7))
        done.wait()
        assert carry(print).__name__ == "print"
        assert pickle.loads(pickle.dumps(carry(print))) is print
    jobs.put(None)
    thread.join()
    assert [row.path for row in scene.calls("note")] == [("asks", "note"), ("note",)]
    assert scene.call("asks").elsewhere_python_ns == 5


def test_carried_and_run_on_the_spot_is_no_task(scene: Scene, work: Callable[[int], int]) -> None:
    @custom_op("asks")
    def asks() -> None:
        carry(work)(5)

    with scene:
        asks()
    assert scene.parts("asks") == {"wall": 10, "python": 5, "sub": 5}
    assert scene.named(Kind.TASK) == []


def test_a_task_of_a_task_on_the_same_worker(scene: Scene, work: Callable[[int], int]) -> None:
    """The worker that submits is the worker that runs it, later."""
    ended = threading.Event()

    @custom_op("first")
    def first() -> None:
        pool.submit(lambda: (work(5), ended.set()))

    with ThreadPoolExecutor(1) as pool, scene:
        pool.submit(first).result()
        ended.wait()
    assert scene.call("note").path == ("first", "note")


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


def test_a_pool_whose_thread_does_not_start(
    scene: Scene, work: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise RuntimeError("can't start new thread")

    name = next(n for n in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, n))

    @custom_op("submits")
    def submits(pool: ThreadPoolExecutor) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(threading, name, refuse)
            with pytest.raises(RuntimeError, match="can't start"):
                pool.submit(work, 1)
        assert pool.submit(work, 20).result() == 20

    with ThreadPoolExecutor(1) as pool, scene:
        submits(pool)
    assert {(op, ns) for _, op, ns in scene.named(Kind.TASK)} <= {("submits", 2), ("submits", 40)}
    assert {row.path for row in scene.calls("note")} == {("submits", "note")}


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
