"""What a watcher is told, in which order, and that it cannot hurt the program."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from opscope import engine as nd
from opscope.engine.engine import Engine
from opscope.engine.graph import CHORE, HIDDEN, OP
from opscope.engine.hooks import MOMENTS, Hooks
from opscope.engine.threaded import ThreadedEngine

from .conftest import Heard


def test_every_task_is_pushed_then_started_then_finished(engine: Engine, heard: Heard) -> None:
    var = engine.new_var()
    for number in range(20):
        engine.push_sync(lambda: None, (), (var,), f"t{number}")
    engine.wait_all()
    told: dict[object, list[str]] = {}
    for moment, _, fact in heard:
        if moment in ("pushed", "started", "finished"):
            told.setdefault(fact, []).append(moment)
    assert len(told) == 20
    assert all(moments == ["pushed", "started", "finished"] for moments in told.values())
    assert heard.names("started") == [f"t{number}" for number in range(20)]
    assert all(task.kind == OP and task.pushed_by is None for task in told)


def test_started_and_finished_on_the_running_thread(heard: Heard) -> None:
    engine = ThreadedEngine(1)
    engine.push_sync(lambda: None)
    engine.wait_all()
    threads = {moment: thread for moment, thread, _ in heard}
    assert threads["pushed"] == threading.current_thread().name
    assert threads["started"] == threads["finished"] == "engine-worker-1"
    engine.stop()


def test_failed_and_skipped(engine: Engine, heard: Heard) -> None:
    var = engine.new_var()
    engine.push_sync(lambda: 1 / 0, (), (var,), "bad")
    engine.push_sync(lambda: None, (var,), (), "reader")
    engine.push_async(lambda done: done(), (var,), (), "async reader")
    engine.delete_var(var)
    with pytest.raises(ZeroDivisionError):
        engine.wait_all()
    assert heard.names("started") == ["bad", "DeleteVariable"]
    assert heard.names("finished") == ["bad", "DeleteVariable"]
    assert sorted(heard.names("skipped")) == ["async reader", "reader"]
    errors = {fact.name: fact.error for moment, _, fact in heard if moment == "pushed"}
    assert errors["reader"] is errors["bad"]
    assert isinstance(errors["bad"].exception, ZeroDivisionError)
    kinds = {fact.name: fact.kind for moment, _, fact in heard if moment == "pushed"}
    assert kinds["DeleteVariable"] == CHORE


def test_async_finishes_on_the_thread_that_completes(engine: Engine, heard: Heard) -> None:
    def later(done) -> None:
        thread = threading.Thread(target=done, name="completer")
        thread.start()

    engine.push_async(later)
    engine.wait_all()
    assert [thread for moment, thread, _ in heard if moment == "finished"] == ["completer"]


def test_waits_are_told_in_pairs_and_only_when_they_block(heard: Heard) -> None:
    engine = ThreadedEngine(1)
    var = engine.new_var()
    engine.wait_for_var(var)
    engine.wait_all()
    assert not [moment for moment, _, _ in heard if moment.startswith("wait")]
    for wait in (lambda: engine.wait_for_var(var), engine.wait_all):
        engine.push_sync(lambda: (time.sleep(0.02), 1 / 0), (), (var,))
        with pytest.raises(ZeroDivisionError):
            wait()
    waits = [(moment, fact) for moment, _, fact in heard if moment.startswith("wait")]
    assert waits == [
        ("wait_began", "wait_for_var"),
        ("wait_ended", "wait_for_var"),
        ("wait_began", "wait_all"),
        ("wait_ended", "wait_all"),
    ]
    engine.stop()


def test_array_waits_have_their_own_names(heard: Heard) -> None:
    nd.use(workers=1)
    go = threading.Event()
    for read in ("asnumpy", "wait_to_read"):
        a = nd.ones(2)
        go.clear()
        nd.push_sync(go.wait, (), (a.storage.var,))
        timer = threading.Timer(0.02, go.set)
        timer.start()
        getattr(a, read)()
        timer.join()
    assert heard.names("wait_began") == ["asnumpy", "wait_to_read"]
    assert heard.names("wait_ended") == ["asnumpy", "wait_to_read"]
    nd.use()


def test_bulk_tells_of_each_operator_and_not_of_the_segment(engine: Engine, heard: Heard) -> None:
    var = engine.new_var()
    with engine.bulk(4):
        for number in range(10):
            engine.push_sync(lambda: None, (), (var,), f"t{number}")
    engine.wait_all()
    names = [f"t{number}" for number in range(10)]
    for moment in ("pushed", "started", "finished"):
        assert heard.names(moment) == names
    assert all(fact.kind != HIDDEN for _, _, fact in heard if not isinstance(fact, str))


def test_a_hook_that_raises_is_removed_and_the_program_goes_on(
    engine: Engine, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(task: object) -> None:
        raise RuntimeError("watcher")

    before = len(nd.hooks.broken)
    nd.hooks.add("started", bad)
    nd.hooks.add("pushed", bad)
    ran: list[int] = []
    with caplog.at_level(logging.WARNING, "opscope.engine"):
        for _ in range(20):
            engine.push_sync(lambda: ran.append(1))
        engine.wait_all()
    assert len(ran) == 20
    broken = nd.hooks.broken[before:]
    assert [(moment, fn) for moment, fn, _ in broken] == [("pushed", bad), ("started", bad)]
    assert str(broken[0][2]) == "watcher"
    assert len(caplog.records) == 2
    assert len(heard.names("started")) == 20  # the others are still told
    del nd.hooks.broken[before:]


def test_adding_and_removing() -> None:
    hooks, told = Hooks(), []
    with pytest.raises(ValueError, match="no such moment"):
        hooks.add("stopped", print)
    first, second = (lambda fact: told.append((1, fact))), (lambda fact: told.append((2, fact)))
    hooks.add("pushed", first)
    hooks.add("pushed", second)
    hooks.tell("pushed", "x")
    hooks.remove("pushed", first)
    hooks.remove("pushed", first)
    hooks.tell("pushed", "y")
    assert told == [(1, "x"), (2, "x"), (2, "y")]
    hooks.remove("pushed", second)
    assert not hooks
    assert "pushed" not in hooks
    hooks.tell("pushed", "z")


def test_each_moment_is_also_an_attribute() -> None:
    hooks, told = Hooks(), []
    assert {getattr(hooks, moment) for moment in MOMENTS} == {None}
    hooks.add("pushed", told.append)
    assert hooks.pushed is not None
    assert hooks.started is None
    hooks.pushed("x")
    hooks.remove("pushed", told.append)
    assert hooks.pushed is None
    assert told == ["x"]


def test_a_direct_hook_is_called_with_nothing_in_between_as_long_as_it_is_alone() -> None:
    hooks, told = Hooks(), []
    direct = told.append
    hooks.add("pushed", direct, direct=True)
    assert hooks.pushed is direct
    other = lambda fact: 1 / 0  # noqa: E731
    hooks.add("pushed", other)
    hooks.pushed("x")  # the other one fails and goes
    assert hooks.pushed is direct
    hooks.pushed("y")
    assert told == ["x", "y"]
    hooks.remove("pushed", direct)
    hooks.add("pushed", direct)
    assert hooks.pushed is not direct
    hooks.remove("pushed", direct)
    assert not hooks


def test_base_exceptions_of_a_hook_are_not_swallowed() -> None:
    hooks = Hooks()

    def interrupt(fact: object) -> None:
        raise KeyboardInterrupt

    hooks.add("pushed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        hooks.tell("pushed", None)
    assert hooks.broken == []
