"""Marked async generators: suspended between two items and while they await."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.hosts.checks import Scene

from opscope import custom_op
from opscope.model import Kind


def test_items_awaits_and_the_consumer(scene: Scene, note: Callable[[int], None]) -> None:
    @custom_op("items")
    async def items() -> AsyncIterator[int]:
        for number in (1, 2):
            scene.tick(10)
            await asyncio.sleep(0)
            note(number)
            yield number

    async def main() -> None:
        async for _ in items():
            note(100)

    with scene:
        asyncio.run(main())
    assert scene.parts("items") == {"wall": 223, "python": 20, "sub": 3, "wait": 200}
    assert scene.owners() == [("items",), (), ("items",), ()]
    assert {name for name, op, _ in scene.named(Kind.WAIT) if op} == {"suspended"}


@pytest.mark.parametrize("how", ["aclose", "drop", "loop ends"])
def test_ended_early(how: str, scene: Scene, note: Callable[[int], None]) -> None:
    problems: list[object] = []

    @custom_op("items")
    async def items() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            note(1)
            await asyncio.sleep(0)

    async def main() -> object:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: problems.append(what))
        it = items()
        await anext(it)
        note(10)
        if how == "aclose":
            await it.aclose()
        elif how == "loop ends":
            return it
        del it
        gc.collect()
        for _ in range(9):
            await asyncio.sleep(0)
        return None

    with scene:
        asyncio.run(main())
    assert problems == []
    assert scene.owners() == [(), ("items",)]
    assert scene.call("items").flags == ()
    assert scene.parts("items") == {"wall": 11, "sub": 1, "wait": 10}


def test_several_consumers(scene: Scene, note: Callable[[int], None]) -> None:
    @custom_op("items")
    async def items(ns: int) -> AsyncIterator[int]:
        for _ in range(3):
            note(ns)
            await asyncio.sleep(0)
            yield ns

    async def consume(ns: int) -> None:
        async for _ in items(ns):
            note(1000)

    async def main() -> None:
        await asyncio.gather(consume(1), consume(10))

    with scene:
        asyncio.run(main())
    assert [row.sub_ns for row in scene.calls("items")] == [3, 30]
    assert scene.owners().count(("items",)) == 6
    assert scene.owners().count(()) == 6


def test_as_a_context_manager(scene: Scene, note: Callable[[int], None]) -> None:
    @asynccontextmanager
    @custom_op("managed")
    async def managed() -> AsyncIterator[str]:
        note(1)
        try:
            yield "given"
        except KeyError:
            note(2)
        await asyncio.sleep(0)

    async def main() -> None:
        async with managed() as given:
            assert given == "given"
            note(10)
        async with managed():
            raise KeyError
        with pytest.raises(OSError, match="x"):
            async with managed():
                raise OSError("x")

    with scene:
        asyncio.run(main())
    assert [row.sub_ns for row in scene.calls("managed")] == [1, 3, 1]
    assert [row.flags for row in scene.calls("managed")] == [(), (), ("failed",)]
    assert scene.owners().count(()) == 1
