"""Marked coroutines: current only while they run, whatever else the loop does."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import Scene

from opscope import custom_op


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
    assert scene.owners() == [(), ("work",)]


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
    assert scene.owners() == [("outer", "inner"), ("outer",)]


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
    assert set(scene.owners()) == {("all", "work")}


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
    assert scene.owners() == [("work",), ()]


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
    assert scene.owners() == [(), ("work",), ()]
    assert scene.call("work").flags == (("failed",) if how == "throw" else ())


def test_never_awaited_warns_as_ever(scene: Scene) -> None:
    @custom_op("work")
    async def work() -> None: ...

    with scene, pytest.warns(RuntimeWarning, match="never awaited"):
        work()
    assert scene.calls() == []


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
