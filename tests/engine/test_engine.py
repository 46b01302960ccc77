"""Pushing, waiting, versions, deletion, bulk, stopping: every kind alike."""

from __future__ import annotations

import random
import threading
import time

import pytest

from opscope.engine.engine import Engine
from opscope.engine.errors import EngineError
from opscope.engine.graph import Var
from opscope.engine.threaded import ThreadedEngine


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1, 7])
def test_random_work_gives_the_serial_result(engine: Engine, seed: int, size: int) -> None:
    chance = random.Random(seed)
    count = 60
    variables = [engine.new_var() for _ in range(count)]
    values, serial = [1] * count, [1] * count

    def step(target: list[int], reads: list[int], write: int, number: int) -> None:
        target[write] = (sum(target[r] for r in reads) + target[write] * 3 + number) % 1000003

    versions = [0] * count
    with engine.bulk(size):
        for number in range(3000):
            reads = [chance.randrange(count) for _ in range(chance.randrange(2, 20))]
            write = chance.randrange(count)
            versions[write] += 1
            step(serial, reads, write, number)
            pause = chance.random() < 0.01

            def work(
                reads: list[int] = reads,
                write: int = write,
                number: int = number,
                pause: bool = pause,
            ) -> None:
                if pause:
                    time.sleep(0.0002)
                step(values, reads, write, number)

            args = [variables[r] for r in reads], [variables[write]]
            if number % 5:
                engine.push_sync(work, *args, priority=chance.randrange(-2, 3))
            else:
                engine.push_async(lambda done, work=work: (work(), done()), *args)
        engine.wait_all()
    assert values == serial
    assert [var.version for var in variables] == versions


def test_readers_may_all_be_outstanding_and_writers_keep_order(engine: Engine) -> None:
    var, order, read = engine.new_var(), [], []
    for number in range(50):
        engine.push_sync(lambda number=number: order.append(number), (), (var,))
    for number in range(50):
        engine.push_sync(lambda number=number: read.append(len(order)), (var,))
    engine.wait_all()
    assert order == list(range(50))
    assert read == [50] * 50


def test_waiting_for_a_var_never_written_returns() -> None:
    engine = ThreadedEngine(1)
    engine.wait_for_var(engine.new_var())
    assert not engine._ops.members  # and needs no thread
    engine.stop()


def test_wait_for_var_waits_for_writes_and_not_for_reads() -> None:
    engine = ThreadedEngine(2)
    var, go, done = engine.new_var(), threading.Event(), []
    engine.push_sync(lambda: (time.sleep(0.01), done.append("write")), (), (var,))
    engine.push_sync(lambda: (go.wait(), done.append("read")), (var,))
    engine.wait_for_var(var)
    assert done == ["write"]
    go.set()
    engine.wait_all()
    assert done == ["write", "read"]
    engine.stop()


def test_empty_lists_and_null_function(engine: Engine) -> None:
    var, ran = engine.new_var(), []
    engine.push_sync(None)
    engine.push_async(None, (), [var])
    engine.push_sync(lambda: ran.append(1), [], [])
    engine.push_sync(lambda: ran.append(2), iter([var]), ())
    engine.push_sync(lambda: ran.append(3), [var], [var])
    engine.wait_all()
    assert sorted(ran) == [1, 2, 3]
    assert var.version == 2


def test_function_is_let_go_after_it_ran(engine: Engine) -> None:
    class Thing:
        pass

    import weakref

    thing = Thing()
    seen = weakref.ref(thing)
    engine.push_sync(lambda thing=thing: None, (), (engine.new_var(),))
    engine.push_async(lambda done, thing=thing: done())
    engine.wait_all()
    del thing
    deadline = time.monotonic() + 20
    while seen() is not None and time.monotonic() < deadline:
        time.sleep(0.001)  # the worker may still be returning from it
    assert seen() is None


@pytest.mark.parametrize(
    "bad",
    [
        {"fn": 3},
        {"reads": [1]},
        {"writes": ["x"]},
        {"reads": 5},
        {"name": 7},
        {"priority": 1.5},
        {"priority": "high"},
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_pushed(engine: Engine, bad: dict) -> None:
    ran: list[int] = []
    arguments = {"fn": lambda *_: ran.append(1), **bad}
    for push in (engine.push_sync, engine.push_async):
        with pytest.raises(TypeError):
            push(**arguments)
    engine.wait_all()
    assert ran == []


def test_async_completes_from_another_thread(engine: Engine) -> None:
    var, order = engine.new_var(), []

    def later(done) -> None:
        def end() -> None:
            order.append("async")
            done()

        threading.Timer(0.01, end).start()

    engine.push_async(later, (), (var,))
    engine.push_sync(lambda: order.append("after"), (), (var,))
    engine.wait_for_var(var)
    assert order == ["async", "after"]


def test_completing_twice_is_refused(engine: Engine) -> None:
    kept = []
    engine.push_async(lambda done: (kept.append(done), done()))
    engine.wait_all()
    with pytest.raises(EngineError, match="before"):
        kept[0]()
    with pytest.raises(TypeError):
        kept[0]("text")


def test_every_split_of_five_vars(engine: Engine) -> None:
    for split in range(6):
        variables = [engine.new_var() for _ in range(5)]
        ran: list[int] = []
        engine.push_sync(lambda ran=ran: ran.append(1), variables[:split], variables[split:])
        engine.push_async(
            lambda done, ran=ran: (ran.append(2), done()), variables[split:], variables[:split]
        )
        for var in variables:
            engine.wait_for_var(var)
        engine.wait_all()
        assert sorted(ran) == [1, 2]


def test_version_counts_writes_only(engine: Engine) -> None:
    var = engine.new_var()
    assert var.version == 0
    for _ in range(10):
        engine.push_sync(lambda: None, (), (var,))
    engine.wait_for_var(var)
    assert var.version == 10
    for _ in range(5):
        engine.push_sync(lambda: None, (var,))
    engine.wait_all()
    assert var.version == 10


def test_deletion_waits_for_pending_uses_and_calls_back(engine: Engine) -> None:
    var, order = engine.new_var(), []
    engine.push_sync(lambda: (time.sleep(0.01), order.append("write")), (), (var,))
    engine.push_sync(lambda: order.append("read"), (var,))
    engine.delete_var(var, lambda: order.append("deleted"))
    engine.wait_all()
    assert order == ["write", "read", "deleted"]
    assert var.deleted
    with pytest.raises(EngineError, match="deleted"):
        engine.push_sync(lambda: None, (), (var,))
    with pytest.raises(EngineError, match="deleted"):
        engine.delete_var(var)


def test_bulk_chain_waits_inside_and_scope_end(engine: Engine) -> None:
    var, values = engine.new_var(), []
    with engine.bulk(16):
        for number in range(10):
            engine.push_sync(lambda number=number: values.append(number), (), (var,))
        engine.wait_for_var(var)
        assert values == list(range(10))
        for number in range(10, 110):
            engine.push_sync(lambda number=number: values.append(number), (), (var,))
    engine.wait_all()
    assert values == list(range(110))
    assert var.version == 110


def test_bulk_really_gathers() -> None:
    engine = ThreadedEngine(1)
    var, ran = engine.new_var(), []
    with engine.bulk(4):
        for _ in range(3):
            engine.push_sync(lambda: ran.append(1), (), (var,))
        assert not engine._graph.tasks
        assert engine._outstanding == 0
        full = threading.Event()
        engine.push_sync(lambda: (ran.append(1), full.set()), (), (var,))
        assert full.wait(30)  # so handed over, although nobody waits for it
        with engine.bulk(2):
            engine.push_sync(lambda: ran.append(1), (), (var,))
        engine.push_async(lambda done: (ran.append(1), done()), (), (var,))
        engine.wait_all()
        assert len(ran) == 6
    engine.stop()


def test_bulk_scope_left_by_an_exception_hands_over(engine: Engine) -> None:
    ran: list[int] = []

    def leave_early() -> None:
        with engine.bulk(8):
            engine.push_sync(lambda: ran.append(1))
            raise KeyError

    with pytest.raises(KeyError):
        leave_early()
    engine.wait_all()
    assert ran == [1]


def test_nested_scopes_keep_the_order(engine: Engine) -> None:
    var, order = engine.new_var(), []
    with engine.bulk(8):
        engine.push_sync(lambda: order.append("outer"), (), (var,))
        with engine.bulk(2):
            for number in range(3):
                engine.push_sync(lambda number=number: order.append(number), (), (var,))
        engine.push_sync(lambda: order.append("outer again"), (), (var,))
    engine.wait_all()
    assert order == ["outer", 0, 1, 2, "outer again"]


def test_failure_inside_a_segment_spares_the_rest(engine: Engine) -> None:
    good, bad, after = engine.new_var(), engine.new_var(), engine.new_var()
    ran: list[str] = []
    with engine.bulk(8):
        engine.push_sync(lambda: 1 / 0, (), (bad,))
        engine.push_sync(lambda: ran.append("after"), (bad,), (after,))
        engine.push_sync(lambda: ran.append("good"), (), (good,))
    engine.wait_for_var(good)
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_var(after)
    engine.wait_for_var(bad)  # one failure, raised once
    engine.wait_all()
    assert ran == ["good"]


def test_failure_from_before_a_segment_spares_the_rest(engine: Engine) -> None:
    good, bad = engine.new_var(), engine.new_var()
    ran: list[str] = []
    engine.push_sync(lambda: 1 / 0, (), (bad,))
    with engine.bulk(8):
        engine.push_sync(lambda: ran.append("reader"), (bad,))
        engine.push_sync(lambda: ran.append("good"), (), (good,))
    engine.wait_for_var(good)
    assert ran == ["good"]
    assert good.version == 1
    with pytest.raises(ZeroDivisionError):
        engine.wait_all()


def test_stop_and_start_again_and_again(engine: Engine) -> None:
    var, ran = engine.new_var(), []
    for number in range(3):
        for _ in range(20):
            engine.push_sync(lambda: ran.append(1), (), (var,))
        engine.stop()
        assert len(ran) == 20 * (number + 1)
        with pytest.raises(EngineError, match="stopped"):
            engine.push_sync(lambda: None)
        with pytest.raises(EngineError, match="stopped"):
            engine.delete_var(var)
        engine.wait_for_var(var)
        engine.wait_all()
        engine.start()
    assert var.version == 60


def test_stopping_ends_the_threads() -> None:
    engine = ThreadedEngine(3)
    for _ in range(30):
        engine.push_sync(lambda: time.sleep(0.001))
    engine.wait_all()
    workers = list(engine._ops.members)
    assert 1 <= len(workers) <= 3
    engine.stop()
    assert not any(worker.is_alive() for worker in workers)
    assert not engine._ops.members


def test_pushing_from_many_threads() -> None:
    engine = ThreadedEngine(4)
    var, total = engine.new_var(), [0]

    def bump() -> None:
        total[0] += 1  # safe only because the engine orders the writers

    def push() -> None:
        for _ in range(300):
            engine.push_sync(bump, (), (var,))
        engine.wait_for_var(var)

    threads = [threading.Thread(target=push) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.wait_all()
    assert total == [2400]
    assert var.version == 2400
    engine.stop()


def test_constructor_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ThreadedEngine(0)
    with pytest.raises(TypeError):
        ThreadedEngine("two")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="custom_on"):
        ThreadedEngine(custom_on="gpu")
    assert isinstance(ThreadedEngine().new_var(), Var)
