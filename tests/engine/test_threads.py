"""What only the threaded kind has: priorities, workers that come and go, finalisers, overlap."""

from __future__ import annotations

import gc
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine.errors import EngineError
from opscope.engine.graph import CHORE, Task
from opscope.engine.pool import Pool, Queue, Worker
from opscope.engine.threaded import ThreadedEngine

from .conftest import Heard


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_higher_priority_first_and_fifo_among_equals() -> None:
    engine = ThreadedEngine(1)
    go, order = threading.Event(), []
    engine.push_sync(go.wait)
    for number, priority in enumerate([0, 0, 5, -1, 5, 0, 9, -1, -7]):
        engine.push_sync(
            lambda number=number: order.append(number), (), (engine.new_var(),), "t", priority
        )
    engine.delete_var(engine.new_var(), lambda: order.append("deletion"))
    go.set()
    engine.wait_all()
    assert order == ["deletion", 6, 2, 4, 0, 1, 5, 3, 7, 8]
    engine.stop()


def test_queue_counts_and_empties() -> None:
    queue = Queue()
    for priority in (0, 3, -3):
        queue.put(Task(None, "t", priority=priority))
    queue.put(Task(None, "d", kind=CHORE))
    assert len(queue) == 4
    names = [task.name for task in iter(queue.take, None)]
    assert names == ["d", "t", "t", "t"]
    assert len(queue) == 0


def test_independent_tasks_use_all_workers() -> None:
    engine = ThreadedEngine(4)
    meet = threading.Barrier(4)
    for _ in range(4):
        engine.push_sync(lambda: meet.wait(30))
    engine.wait_all()
    assert {worker.name for worker in engine._ops.members} == {
        f"engine-worker-{n}" for n in (1, 2, 3, 4)
    }
    assert all(isinstance(w, Worker) and w.daemon for w in engine._ops.members)
    engine.stop()


def test_two_large_operations_overlap() -> None:
    nd.use(workers=2)
    a = nd.ones((600, 600))
    a.wait_to_read()
    spans: dict[object, list[int]] = {}

    def started(task: Task) -> None:
        spans[task] = [time.monotonic_ns()]

    def finished(task: Task) -> None:
        spans[task].append(time.monotonic_ns())

    nd.hooks.add("started", started)
    nd.hooks.add("finished", finished)
    try:
        for _ in range(10):
            spans.clear()
            kept = [nd.dot(a, a) for _ in range(4)]
            nd.waitall()
            pairs = sorted(span for task, span in spans.items() if task.name == "dot")
            assert len(pairs) == 4
            if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(pairs)):
                break
        else:
            pytest.fail("no two products overlapped")
        del kept
    finally:
        nd.hooks.remove("started", started)
        nd.hooks.remove("finished", finished)
        nd.use()


def test_ending_of_a_thread_that_is_not_started_yet_is_awaited() -> None:
    lock, ended = threading.Lock(), []
    pool = Pool("engine-test", 1, 1, 1.0, lambda worker: ended.append("worker"))
    task = Task(None, "t")
    with lock:
        pool.put(task)
        (worker,) = pool.summon()
    joiner = threading.Thread(target=lambda: (worker.await_end(), ended.append("joiner")))
    joiner.start()
    time.sleep(0.02)
    worker.start()
    joiner.join()
    assert ended == ["worker", "joiner"]


def test_a_task_that_would_wait_for_itself_is_refused() -> None:
    engine = ThreadedEngine(1)
    var, seen = engine.new_var(), []

    def task() -> None:
        for wait in (engine.wait_all, lambda: engine.wait_for_var(var), engine.stop):
            try:
                wait()
            except EngineError as error:
                seen.append(str(error))

    engine.push_sync(task, (), (var,))
    engine.wait_all()
    assert len(seen) == 3
    engine.stop()


def test_a_task_may_wait_for_another_engine() -> None:
    outer, inner = ThreadedEngine(1), ThreadedEngine(1)
    order: list[str] = []

    def task() -> None:
        inner.push_sync(lambda: order.append("inner"))
        inner.wait_all()
        order.append("outer")

    outer.push_sync(task)
    outer.wait_all()
    assert order == ["inner", "outer"]
    outer.stop()
    inner.stop()


def test_tasks_may_push_tasks() -> None:
    engine = ThreadedEngine(1)
    var, order = engine.new_var(), []
    engine.push_sync(lambda: engine.push_sync(lambda: order.append(1), (), (var,)), (), (var,))
    engine.wait_all()
    assert order == [1]
    engine.stop()


def test_array_dropped_while_the_lock_is_held_by_this_thread() -> None:
    engine = nd.use(workers=1)
    assert isinstance(engine, ThreadedEngine)
    a = nd.ones(3)
    a.wait_to_read()
    var = a.storage.var
    cycle = [a]
    cycle.append(cycle)  # type: ignore[arg-type]
    del a, cycle
    with engine._lock:
        gc.collect()  # the finaliser runs here and must not want the lock
        assert var in engine.dropped
    nd.waitall()
    assert var.deleted
    nd.use()


def test_finalisers_under_load() -> None:
    nd.use(workers=2)
    threshold = gc.get_threshold()
    gc.set_threshold(5)  # the collector runs inside pushes and completions
    try:

        def churn() -> None:
            for _ in range(150):
                a = nd.ones(2)
                cycle = [a + 1]
                cycle.append(cycle)  # type: ignore[arg-type]

        threads = [threading.Thread(target=churn) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        nd.waitall()
    finally:
        gc.set_threshold(*threshold)
        nd.use()


def test_every_dropped_array_is_deleted_by_a_chore(heard: Heard) -> None:
    nd.use(workers=1)
    gc.collect()
    nd.waitall()
    heard.clear()  # of what earlier tests have left
    for _ in range(5):
        nd.ones(2) + 1
    nd.waitall()
    gc.collect()
    nd.waitall()
    assert heard.names("pushed").count("DeleteVariable") == 10
    chores = [task for moment, _, task in heard if moment == "pushed" and task.kind == CHORE]
    assert all(task.pushed_by is None for task in chores)
    nd.use()


def test_an_array_in_an_open_segment_is_not_deleted_before_it_ran() -> None:
    nd.use(workers=1)
    with nd.bulk(100):
        a = nd.ones(2)
        b = a + 1
        del a
        gc.collect()
        threading.Thread(target=lambda: nd.push_sync(lambda: None)).start()
        c = b + 1
        del b
        assert c.asnumpy().tolist() == [3, 3]
    nd.use()


@pytest.fixture
def _sigint() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_sigint")
def test_interrupted_wait_leaves_the_engine_working() -> None:
    engine = ThreadedEngine(1)
    var, go = engine.new_var(), threading.Event()
    engine.push_sync(go.wait, (), (var,))
    for wait in (lambda: engine.wait_for_var(var), engine.wait_all):
        main = threading.main_thread().ident
        timer = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        timer.join()
    go.set()
    ran: list[int] = []
    engine.push_sync(lambda: ran.append(1), (), (var,))
    engine.wait_all()
    assert ran == [1]
    engine.stop()


def test_elements_are_copied_before_a_later_write_starts() -> None:
    nd.use(workers=2)
    a = nd.zeros((300, 300))
    stop = threading.Event()

    def writer() -> None:
        value = 0
        while not stop.is_set():
            value += 1
            a[:] = value
            nd.wait_for_var(a.storage.var)

    thread = threading.Thread(target=writer)
    thread.start()
    for _ in range(100):
        seen = a.asnumpy()
        assert seen.min() == seen.max()
    stop.set()
    thread.join()
    nd.use()


def test_no_more_threads_means_the_pusher_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Worker) -> None:
        raise RuntimeError("can't start new thread")

    engine = ThreadedEngine(2)
    monkeypatch.setattr(Worker, "start", refuse)
    var, seen = engine.new_var(), []
    for number in range(5):
        engine.push_sync(lambda number=number: seen.append(number), (), (var,))
    engine.wait_all()
    assert seen == list(range(5))
    engine.stop()


def test_no_more_threads_while_a_worker_runs_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the exit of Python 3.12, which starts no thread while work is still pending."""

    class Op(nd.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            (in_data[0] + 0).wait_to_read()
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @nd.register("waits for what it pushes")
    class Prop(nd.CustomOpProp):
        def create_operator(self, ctx, shapes, types):  # type: ignore[no-untyped-def]
            return Op()

    def refuse(self: Worker) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    nd.use(workers=1)
    gate = threading.Event()
    a = nd.ones(1)
    nd.push_sync(gate.wait, (), (a.storage.var,))
    monkeypatch.setattr(Worker, "start", refuse)
    made = [nd.custom(a, op_type="waits for what it pushes") for _ in range(20)]
    gate.set()
    waiting = threading.Thread(target=nd.waitall, daemon=True)
    waiting.start()
    waiting.join(20)
    assert not waiting.is_alive()
    assert [float(array.asnumpy()[0]) for array in made] == [2.0] * 20
    nd.use()


def test_changing_engines_keeps_arrays_and_failures() -> None:
    nd.use(workers=1)
    a = nd.array(np.arange(3.0))
    b = a * 2
    nd.random.normal(0, -1)
    for kind in ("naive", "threaded", "naive"):
        nd.use(kind)
        assert b.asnumpy().tolist() == [0, 2, 4]
        b = b * 1
    with pytest.raises(ValueError, match="scale"):
        nd.waitall()
    var = a.storage.var
    del a
    gc.collect()
    nd.waitall()
    assert var.deleted  # by the engine in use, though another one made it
    with pytest.raises(ValueError, match="kind"):
        nd.use("magic")
    nd.use()
