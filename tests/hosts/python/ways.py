"""Ways to be inside a call, and a check that nothing of it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from tests.hosts.checks import Scene, check

from opscope import custom_op
from opscope.record import scope

#: Runs `body` on this thread, on another one, three calls deep, in a step of a generator ...
Way = Callable[[Scene, Callable[[], None]], None]


def plainly(scene: Scene, body: Callable[[], None]) -> None:
    custom_op("it")(body)()


def in_a_block(scene: Scene, body: Callable[[], None]) -> None:
    with custom_op("it"):
        body()


def in_a_generator(scene: Scene, body: Callable[[], None]) -> None:
    @custom_op("it")
    def it() -> Iterator[None]:
        yield
        body()
        yield

    steps = it()
    next(steps)
    scene.idle(1000)
    next(steps)
    scene.idle(1000)
    steps.close()


def in_a_coroutine(scene: Scene, body: Callable[[], None]) -> None:
    @custom_op("it")
    async def it() -> None:
        await asyncio.sleep(0)
        body()
        await asyncio.sleep(0)

    asyncio.run(it())


def in_an_async_generator(scene: Scene, body: Callable[[], None]) -> None:
    @custom_op("it")
    async def it() -> AsyncIterator[None]:
        yield
        await asyncio.sleep(0)
        body()
        yield

    async def consume() -> None:
        async for _ in it():
            pass

    asyncio.run(consume())


WAYS: dict[str, Way] = {
    "function": plainly,
    "block": in_a_block,
    "generator": in_a_generator,
    "coroutine": in_a_coroutine,
    "async generator": in_an_async_generator,
}


way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def finish(scene: Scene) -> None:
    scene.profile.stop()
    check(scene.session)
    assert scope.held() is None
    assert scene.session.processes[0].broken == ()


Act = Callable[[Callable[[], object]], None]


Sub = Callable[[int], None]
