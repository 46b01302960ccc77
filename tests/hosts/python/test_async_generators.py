"""Marked async generators: suspended between two items and while they await."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.hosts.checks import Scene

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
    assert owners(scene) == [("items",), (), ("items",), ()]
    assert {name for name, op, _ in scene.named(Kind.WAIT) if op} == {"suspended"}


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
    assert owners(scene) == [(), ("items",)]
    assert scene.call("items").flags == ()
    assert scene.parts("items") == {"wall": 11, "sub": 1, "wait": 10}


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
    assert owners(scene).count(("items",)) == 6
    assert owners(scene).count(()) == 6


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
    assert owners(scene).count(()) == 1


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
