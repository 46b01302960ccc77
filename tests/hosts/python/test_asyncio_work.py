"""What a marked coroutine starts, as a task or on a thread, is its own."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import Callable

import pytest
from tests.hosts.checks import Scene, parts

from opscope import custom_op
from opscope.model import Kind


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
    assert scene.owners() == [(), ("parent",), ("parent",), ()]
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
    assert scene.owners() == [()]


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
    assert scene.owners() == [("work",)] * 3
    tasks = [(name.rpartition(".")[2], ns) for name, op, ns in scene.named(Kind.TASK) if op]
    assert tasks == [("on_thread", 10), ("on_thread", 140), ("on_thread", 1800)]


def test_handed_to_a_thread_by_a_block(scene: Scene, note: Callable[[int], None]) -> None:
    suspended = threading.Event()

    def on_thread() -> None:
        suspended.wait(30)
        note(2)

    async def work() -> None:
        with custom_op("block"):
            asyncio.get_running_loop().call_soon(suspended.set)
            await asyncio.to_thread(on_thread)

    with scene:
        asyncio.run(work())
    assert scene.owners() == [("block",)]
    assert scene.call("block").flags == ("crossed",)


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
    assert scene.owners() == [("parent", "child"), ("parent",), ("parent", "child")]
