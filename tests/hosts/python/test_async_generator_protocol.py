"""Marked async generators do for their consumer exactly what the bare ones do."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import pytest
from tests.hosts.checks import Scene

from opscope import custom_op


def test_asend_athrow_and_exceptions(scene: Scene) -> None:
    log: list[Any] = []
    sent, inside = KeyError("sent in"), OSError("inside")

    @custom_op("talkative")
    async def talkative() -> AsyncGenerator[int, str]:
        for number in range(9):
            await asyncio.sleep(0)
            try:
                log.append((yield number))
            except KeyError as error:
                log.append(error)
            if number == 3:
                raise inside

    async def main() -> None:
        it = talkative()
        assert await anext(it) == 0
        assert await it.asend("a") == 1
        assert await it.athrow(sent) == 2
        assert await it.asend("b") == 3
        with pytest.raises(OSError, match="inside") as caught:
            await it.asend("c")
        assert caught.value is inside
        assert [item async for item in it] == []

    with scene:
        asyncio.run(main())
    assert log == ["a", sent, "b", "c"]
    assert scene.call("talkative").flags == ("failed",)


async def swallowing() -> AsyncGenerator[int, None]:
    try:
        yield 1
    except GeneratorExit:
        return


async def stubborn() -> AsyncGenerator[int, None]:
    try:
        yield 1
    except GeneratorExit:
        yield 2


@pytest.mark.parametrize("fn", [swallowing, stubborn])
@pytest.mark.parametrize("how", ["aclose", "athrow"])
def test_what_it_makes_of_its_end_is_up_to_it(
    fn: Callable[[], AsyncGenerator[int, None]], how: str, scene: Scene
) -> None:
    async def end(it: AsyncGenerator[int, None]) -> object:
        await anext(it)
        try:
            return await (it.aclose() if how == "aclose" else it.athrow(GeneratorExit("x")))
        except BaseException as error:
            return type(error), str(error)

    with scene:
        assert asyncio.run(end(custom_op("marked")(fn)())) == asyncio.run(end(fn()))


def test_cancelled_while_it_awaits(scene: Scene) -> None:
    @custom_op("items")
    async def items() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(3600)

    async def consume() -> None:
        async for _ in items():
            pass

    async def main() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with scene:
        asyncio.run(main())
    assert scene.call("items").flags == ("failed",)


def test_it_looks_like_one_and_holds_nothing_longer(scene: Scene) -> None:
    class Big: ...

    @custom_op
    async def items(first: Any) -> AsyncIterator[Any]:
        """What it says."""
        del first
        yield Big()
        yield None

    assert inspect.isasyncgenfunction(items)
    assert (items.__name__, items.__doc__) == ("items", "What it says.")

    async def main() -> None:
        given = Big()
        it = items(given)
        seen = [weakref.ref(given), weakref.ref(await anext(it))]
        del given
        assert [ref() for ref in seen] == [None, None]
        await it.aclose()

    with scene:
        asyncio.run(main())
