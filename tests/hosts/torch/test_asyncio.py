"""Every operator under the coroutine that ran it, though torch tells of operators after the fact
and several coroutines were begun on one thread then.

A coroutine of number n runs n plain operators in each step, and a leaf of its own, so what belongs
where can be told without opscope.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.hosts.torch.ops import (
    custom,
    library,
    negative,
    owned,
    record,
    rows,
    sees_threads,
    torch,
    wrong_yet,
)

import opscope

STEPS = 5
NUMBERS = range(1, 7)
LEAVES: dict[str, Callable[..., Any]] = {"custom_op": custom, "library": library}
x = torch.ones(3)


@pytest.fixture(params=list(LEAVES))
def leaf(request: pytest.FixtureRequest) -> Callable[[int], Any]:
    """Gives the leaf of a number: with a hook, or one that only torch's events tell of."""
    made = {number: LEAVES[request.param](f"leaf{number}", negative) for number in NUMBERS}
    return made.__getitem__


def work(number: int, leaf: Callable[[int], Any], plain: Callable[..., Any] = torch.sin) -> None:
    """One step's operators."""
    for _ in range(number):
        plain(x)
    leaf(number)(x)


def step(number: int, leaf: Callable[[int], Any], times: int = 1) -> Counter[str]:
    """What a coroutine owns after so many steps."""
    return Counter({"aten::sin": number * times, leaf(number)._qualname: times})


def test_coroutines_that_take_turns(leaf: Callable[[int], Any]) -> None:
    async def body(number: int) -> None:
        for _ in range(STEPS):
            work(number, leaf)
            await asyncio.sleep(0)

    marked = {number: opscope.custom_op(f"turn{number}")(body) for number in NUMBERS}

    async def main() -> None:
        await asyncio.gather(*(marked[number](number) for number in NUMBERS))
        work(1, leaf, torch.cos)

    session = record(lambda: asyncio.run(main()))
    for number in NUMBERS:
        (call,) = rows(session, f"turn{number}")
        assert owned(session, call) == step(number, leaf, STEPS)
    free = owned(session, 0)
    assert free["aten::sin"] == 0
    assert free["aten::cos"] == 1
    assert free[leaf(1)._qualname] == 1


def test_calls_of_one_operator_that_take_turns(leaf: Callable[[int], Any]) -> None:
    @opscope.custom_op("one")
    async def one(number: int) -> None:
        for _ in range(STEPS):
            work(number, leaf)
            await asyncio.sleep(0)

    @opscope.custom_op("outer")
    async def outer(number: int) -> None:
        torch.cos(x)
        await one(number)
        torch.cos(x)

    async def main() -> None:
        await asyncio.gather(*(outer(number) for number in NUMBERS))

    session = record(lambda: asyncio.run(main()))
    parents = set()
    for number in NUMBERS:
        leaves = rows(session, leaf(number))
        assert [row.path for row in leaves] == [("outer", "one", leaf(number)._qualname)] * STEPS
        (parent,) = {row.parent for row in leaves}
        assert owned(session, parent) == step(number, leaf, STEPS)
        parents.add(parent)
    assert len(parents) == len(NUMBERS)
    for row in rows(session, "outer"):
        assert owned(session, row) == {"aten::cos": 2, "one": 1}


def test_coroutines_that_nobody_marked_own_nothing(leaf: Callable[[int], Any]) -> None:
    """They run while marked ones are suspended, on the same thread."""

    @opscope.custom_op("marked")
    async def marked(number: int) -> None:
        for _ in range(STEPS):
            work(number, leaf)
            await asyncio.sleep(0)

    async def plain(number: int) -> None:
        for _ in range(STEPS):
            work(number, leaf, torch.cos)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(marked(1), plain(2), marked(3), plain(4), marked(5))

    session = record(lambda: asyncio.run(main()))
    found = [owned(session, row) for row in rows(session, "marked")]
    assert found == [step(number, leaf, STEPS) for number in (1, 3, 5)]
    free = owned(session, 0)
    assert free["aten::sin"] == 0
    assert free["aten::cos"] == 6 * STEPS
    for number in (2, 4):
        assert free[leaf(number)._qualname] == STEPS


def test_tasks_made_inside_a_coroutine_are_its_own(leaf: Callable[[int], Any]) -> None:
    async def child(number: int) -> None:
        for _ in range(STEPS):
            work(number, leaf)
            await asyncio.sleep(0)

    @opscope.custom_op("parent")
    async def parent(*numbers: int) -> None:
        torch.cos(x)
        await asyncio.gather(*(child(number) for number in numbers))
        torch.cos(x)

    async def main() -> None:
        await asyncio.gather(parent(1, 2), parent(3, 4))

    session = record(lambda: asyncio.run(main()))
    one, two = rows(session, "parent")
    both = Counter({"aten::cos": 2})
    wanted = [step(1, leaf, STEPS) + step(2, leaf, STEPS) + both]
    wanted += [step(3, leaf, STEPS) + step(4, leaf, STEPS) + both]
    assert [owned(session, one), owned(session, two)] == wanted


@sees_threads
@pytest.mark.parametrize("way", ["to_thread", "run_in_executor", "context", "own_pool"])
def test_work_on_other_threads_is_the_coroutines(way: str, leaf: Callable[[int], Any]) -> None:
    """All of them wait for each other, so all are suspended while their threads work."""
    together = threading.Barrier(len(NUMBERS))
    pool = ThreadPoolExecutor(len(NUMBERS))

    def on_thread(number: int) -> None:
        together.wait(30)
        work(number, leaf)
        together.wait(30)

    async def hand_over(number: int) -> None:
        loop = asyncio.get_running_loop()
        if way == "to_thread":
            await asyncio.to_thread(on_thread, number)
        elif way == "run_in_executor":
            await loop.run_in_executor(None, on_thread, number)
        elif way == "context":
            context = contextvars.copy_context()
            await loop.run_in_executor(pool, context.run, on_thread, number)
        else:
            await asyncio.wrap_future(pool.submit(on_thread, number))

    @opscope.custom_op("work")
    async def coroutine(number: int) -> None:
        torch.cos(x)
        for _ in range(STEPS):
            await hand_over(number)
        torch.cos(x)

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(NUMBERS)))
        await asyncio.gather(*(coroutine(number) for number in NUMBERS))

    session = record(lambda: asyncio.run(main()))
    pool.shutdown()
    found = [owned(session, row) for row in rows(session, "work")]
    wanted = [step(number, leaf, STEPS) + Counter({"aten::cos": 2}) for number in NUMBERS]
    assert found == wanted
    assert not {"aten::sin", "aten::cos"} & owned(session, 0).keys()


def test_a_coroutine_in_the_kernel_of_an_operator(leaf: Callable[[int], Any]) -> None:
    @opscope.custom_op("inside")
    async def inside(number: int) -> None:
        for _ in range(STEPS):
            work(number, leaf)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(inside(1), inside(2))
        torch.cos(x)

    def kernel(x: Any) -> Any:
        asyncio.run(main())
        return torch.neg(x)

    outer = library("outer", kernel)
    session = record(lambda: outer(x))
    (call,) = rows(session, outer)
    assert owned(session, call) == {"inside": 2, "aten::cos": 1, "aten::neg": 1}
    found = [owned(session, row) for row in rows(session, "inside")]
    assert found == [step(1, leaf, STEPS), step(2, leaf, STEPS)]


def test_generators_that_take_turns(leaf: Callable[[int], Any]) -> None:
    @opscope.custom_op("rows")
    def generator(number: int) -> Iterator[int]:
        for place in range(STEPS):
            work(number, leaf)
            yield place

    @opscope.custom_op("consumer")
    def consumer() -> None:
        for _ in zip(*(generator(number) for number in NUMBERS), strict=True):
            torch.cos(x)

    session = record(consumer)
    found = [owned(session, row) for row in rows(session, "rows")]
    assert found == [step(number, leaf, STEPS) for number in NUMBERS]
    (call,) = rows(session, "consumer")
    assert owned(session, call) == {"rows": len(NUMBERS), "aten::cos": STEPS}


def test_asynchronous_generators(leaf: Callable[[int], Any]) -> None:
    @opscope.custom_op("stream")
    async def stream(number: int) -> AsyncIterator[int]:
        for place in range(STEPS):
            work(number, leaf)
            await asyncio.sleep(0)
            work(number, leaf)
            yield place

    async def read(number: int) -> None:
        async for _ in stream(number):
            torch.cos(x)

    async def main() -> None:
        await asyncio.gather(*(read(number) for number in NUMBERS))

    session = record(lambda: asyncio.run(main()))
    found = [owned(session, row) for row in rows(session, "stream")]
    assert found == [step(number, leaf, 2 * STEPS) for number in NUMBERS]
    assert owned(session, 0)["aten::cos"] == STEPS * len(NUMBERS)


def test_a_block_that_an_await_crosses_does_not_own_what_others_run(
    leaf: Callable[[int], Any],
) -> None:
    async def blocked() -> None:
        with opscope.custom_op("block"):
            work(2, leaf)
            await asyncio.sleep(0)
            work(2, leaf)

    async def other() -> None:
        work(3, leaf, torch.cos)

    async def main() -> None:
        await asyncio.gather(blocked(), other())

    session = record(lambda: asyncio.run(main()))
    (call,) = rows(session, "block")
    assert "crossed" in call.flags
    with wrong_yet(True, "what torch ran while a block stood still is the block's"):
        assert owned(session, call) == step(2, leaf, 2)
        assert owned(session, 0)["aten::cos"] == 3


@sees_threads
def test_a_coroutine_that_another_thread_goes_on_with(leaf: Callable[[int], Any]) -> None:
    @opscope.custom_op("moving")
    async def moving() -> None:
        for number in NUMBERS:
            work(number, leaf)
            await asyncio.sleep(0)

    def program() -> None:
        coroutine = moving()
        coroutine.send(None)
        torch.cos(x)
        threads = [threading.Thread(target=coroutine.send, args=(None,)) for _ in NUMBERS[1:]]
        for thread in threads:
            thread.start()
            thread.join()
            torch.cos(x)
        with pytest.raises(StopIteration):
            coroutine.send(None)

    session = record(program)
    (call,) = rows(session, "moving")
    wanted: Counter[str] = Counter()
    for number in NUMBERS:
        wanted += step(number, leaf)
    assert owned(session, call) == wanted
    assert owned(session, 0)["aten::cos"] == len(NUMBERS)
