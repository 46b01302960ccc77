"""Work handed to pools of threads: whose it is, and where its time goes."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import pytest
from tests.hosts.checks import Scene, parts

from opscope import custom_op
from opscope.model import Kind


def test_what_cannot_be_called_fails_where_it_does_without_us(scene: Scene) -> None:
    with scene, ThreadPoolExecutor(1) as pool:
        future = pool.submit(contextvars.copy_context().run)
        with pytest.raises(TypeError):
            future.result()


def test_in_a_pause_pools_work_as_ever(scene: Scene) -> None:
    with scene, ThreadPoolExecutor(1) as executor, ThreadPool(1) as pool:
        scene.profile.pause()
        assert executor.submit(abs, -1).result() == 1
        assert pool.apply_async(abs, (-2,)).get() == 2
        assert pool.map(abs, [-3]) == [3]
        scene.profile.resume()
    assert len(scene.session.spans) == 0


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
