"""Marked coroutines: what is theirs while others run, and what is done on their behalf."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import Scene, parts

from opscope import custom_op
from opscope.model import Kind


@pytest.fixture
def note(scene: Scene) -> Callable[[int], None]:
    """An operator that takes `ns`, to see whose it is."""

    @custom_op("note")
    def note(ns: int) -> None:
        scene.tick(ns)

    return note


def owners(scene: Scene) -> list[tuple[str, ...]]:
    return [row.path[:-1] for row in scene.calls("note")]


def test_awaiting_is_wait_and_others_stay_outside(
    scene: Scene, note: Callable[[int], None]
) -> None:
    @custom_op("work")
    async def work() -> str:
        scene.tick(5)
        await asyncio.sleep(0)
        note(2)
        scene.tick(3)
        return "done"

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        note(100)
        assert await task == "done"

    with scene:
        asyncio.run(main())
    assert scene.parts("work") == {"wall": 110, "python": 8, "sub": 2, "wait": 100}
    assert owners(scene) == [(), ("work",)]


def test_a_marked_coroutine_awaits_a_marked_coroutine(
    scene: Scene, note: Callable[[int], None]
) -> None:
    @custom_op("inner")
    async def inner() -> int:
        scene.tick(1)
        await asyncio.sleep(0)
        note(2)
        return 7

    @custom_op("outer")
    async def outer() -> int:
        scene.tick(10)
        found = await inner()
        note(20)
        return found

    with scene:
        assert asyncio.run(outer()) == 7
    assert scene.parts("inner") == {"wall": 3, "python": 1, "sub": 2}
    assert scene.parts("outer") == {"wall": 33, "python": 10, "sub": 23}
    assert owners(scene) == [("outer", "inner"), ("outer",)]


def test_several_at_once(scene: Scene, note: Callable[[int], None]) -> None:
    @custom_op("work")
    async def work(ns: int) -> None:
        for _ in range(3):
            scene.tick(ns)
            note(ns)
            await asyncio.sleep(0)

    @custom_op("all")
    async def every() -> None:
        await asyncio.gather(work(1), work(10), work(100))

    with scene:
        asyncio.run(every())
    rows = scene.calls("work")
    assert [(row.python_ns, row.sub_ns) for row in rows] == [(3, 3), (30, 30), (300, 300)]
    assert {row.path for row in rows} == {("all", "work")}
    assert scene.parts("all") == {"wall": 666, "sub": 666}
    assert set(owners(scene)) == {("all", "work")}


def test_a_task_made_inside_belongs_to_the_call(scene: Scene, note: Callable[[int], None]) -> None:
    async def child() -> None:
        note(1)
        await asyncio.sleep(0)
        note(2)

    @custom_op("parent")
    async def parent() -> asyncio.Task[None]:
        return asyncio.create_task(child())

    async def main() -> None:
        task = await parent()
        note(10)
        await task
        note(20)

    with scene:
        asyncio.run(main())
    assert owners(scene) == [(), ("parent",), ("parent",), ()]
    assert scene.call("parent").flags == ("outlived",)
    assert scene.parts("parent") == {}


def test_a_task_made_in_a_block_is_not_of_a_block_that_is_over(
    scene: Scene, note: Callable[[int], None]
) -> None:
    async def child() -> None:
        note(1)

    async def main() -> None:
        with custom_op("block"):
            task = asyncio.create_task(child())
        await task

    with scene:
        asyncio.run(main())
    assert owners(scene) == [()]


def test_handed_to_a_thread(scene: Scene, note: Callable[[int], None]) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="unset")

    def on_thread(ns: int) -> str:
        scene.tick(ns)
        note(ns)
        return variable.get()

    @custom_op("work")
    async def work() -> None:
        variable.set("set")
        assert await asyncio.to_thread(on_thread, 5) == "set"
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, on_thread, 70) == "unset"
        context = contextvars.copy_context()
        assert await loop.run_in_executor(None, context.run, on_thread, 900) == "set"

    with scene:
        asyncio.run(work())
    row = scene.call("work")
    assert parts(row) == {"wall": 1950, "wait": 1950}
    assert (row.elsewhere_ns, row.elsewhere_python_ns) == (1950, 975)
    assert owners(scene) == [("work",)] * 3
    tasks = [(name.rpartition(".")[2], ns) for name, op, ns in scene.named(Kind.TASK) if op]
    assert tasks == [("on_thread", 10), ("on_thread", 140), ("on_thread", 1800)]


def test_a_wait_on_one_thread_does_not_hide_that_on_another(scene: Scene) -> None:
    """Both run in copies of one context, so with the same call as current."""
    gate = threading.Event()

    def last() -> None:
        while not gate._cond._waiters:  # type: ignore[attr-defined]
            pass
        time.sleep(0)
        gate.set()

    @custom_op("work")
    async def work() -> None:
        await asyncio.gather(asyncio.to_thread(gate.wait, 30), asyncio.to_thread(last))

    with scene:
        asyncio.run(work())
    assert ("sleep", "work", 0) in scene.named(Kind.WAIT)


def test_cancelled(scene: Scene, note: Callable[[int], None]) -> None:
    @custom_op("work")
    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            note(1)

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        scene.idle(9)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        note(2)

    with scene:
        asyncio.run(main())
    assert scene.parts("work") == {"wall": 10, "sub": 1, "wait": 9}
    assert scene.call("work").flags == ("failed",)
    assert owners(scene) == [("work",), ()]


def test_an_exception_passes_unchanged(scene: Scene) -> None:
    error = OSError("mine")

    @custom_op("bad")
    async def bad() -> None:
        await asyncio.sleep(0)
        raise error

    async def main() -> None:
        with pytest.raises(OSError, match="mine") as caught:
            await bad()
        assert caught.value is error
        assert error.__context__ is None

    with scene:
        asyncio.run(main())
    assert scene.call("bad").flags == ("failed",)


@pytest.mark.parametrize("how", ["close", "drop", "throw"])
def test_driven_by_hand_and_ended_early(
    how: str, scene: Scene, note: Callable[[int], None]
) -> None:
    class Pause:
        def __await__(self) -> Any:
            return (yield "paused")

    @custom_op("work")
    async def work() -> None:
        try:
            await Pause()
        finally:
            note(1)

    with scene:
        running = work()
        assert running.send(None) == "paused"
        note(2)
        if how == "close":
            running.close()
        elif how == "throw":
            with pytest.raises(KeyError):
                running.throw(KeyError())
        del running
        note(3)
    assert owners(scene) == [(), ("work",), ()]
    assert scene.call("work").flags == (("failed",) if how == "throw" else ())


def test_never_awaited_warns_as_ever(scene: Scene) -> None:
    @custom_op("work")
    async def work() -> None: ...

    with scene, pytest.warns(RuntimeWarning, match="never awaited"):
        work()
    assert scene.calls() == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks(scene: Scene, note: Callable[[int], None]) -> None:
    @custom_op("child")
    async def child() -> None:
        note(1)
        await asyncio.sleep(0)
        note(2)

    @custom_op("parent")
    async def parent() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        task = asyncio.create_task(child())
        note(10)
        await task

    with scene:
        asyncio.run(parent())
    assert owners(scene) == [("parent", "child"), ("parent",), ("parent", "child")]


class Asynchronous:
    async def __call__(self) -> int:
        await asyncio.sleep(0)
        return 3


def test_a_coroutine_function_looks_like_one(scene: Scene) -> None:
    @custom_op
    async def work() -> None:
        """What it says."""

    assert inspect.iscoroutinefunction(work)
    assert (work.__name__, work.__doc__) == ("work", "What it says.")
    called = custom_op(Asynchronous())
    assert inspect.iscoroutinefunction(called)
    with scene:
        assert asyncio.run(called()) == 3
    assert len(scene.calls("Asynchronous")) == 1
