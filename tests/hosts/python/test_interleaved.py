"""Generators and coroutines woken from anywhere: every nanosecond is billed to whoever ran."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Coroutine, Generator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.hosts.checks import PARTS, check
from tests.hosts.python.programs import NAMES, TIMES, Node, World, path
from tests.present import trace

from opscope import custom_op
from opscope.analyse import calls, own_time
from opscope.model import Session
from opscope.testing import assert_restored


@st.composite
def bodies(draw: st.DrawFn, times: tuple[str, ...], deep: int = 3) -> list[Any]:
    """What a call does: let time pass, call, make generators and wake any that was made."""
    body: list[Any] = []
    for _ in range(draw(st.integers(0, 4))):
        what = draw(st.sampled_from([*times, "step", "step", "call", "fails", "make"]))
        if what in times:
            body.append((what, draw(TIMES)))
        elif what == "step":
            body.append((what, draw(st.integers(0, 3))))
        elif deep:
            inner = (steps if what == "make" else bodies)(times, deep - 1)
            body.append((what, draw(NAMES), draw(inner)))
    return body


@st.composite
def steps(draw: st.DrawFn, times: tuple[str, ...], deep: int) -> list[Any]:
    """What a generator does, step by step; a step may be to `yield from` another one."""
    found: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        if deep and draw(st.booleans()):
            found.append([("from", draw(NAMES), draw(steps(times, deep - 1)))])
        else:
            found.append(draw(bodies(times, deep)))
    return found


def truths(world: World, session: Session, guesses: bool = False) -> None:
    """Parts of all calls, and when each was what ran. Where it is said to be an estimate only the
    sum of Python and waiting may be right."""
    check(session)
    trace.check(session)
    assert session.processes[0].broken == ()
    rows = calls(session)
    own: dict[int, list[tuple[int, int]]] = defaultdict(list)
    found = own_time(session)
    for call, start, end in zip(
        session.spans["id"][found.call].tolist(),
        found.start_ns.tolist(),
        found.end_ns.tolist(),
        strict=True,
    ):
        own[call].append((start, end))
    seen, unsure = [], set()
    for row in rows:
        parts = {part: getattr(row, f"{part}_ns") or 0 for part in PARTS}
        seen.append((row.path, joined(own[row.call]), tuple(parts.items())))
        if guesses and "estimated" in row.flags:
            unsure.add(row.path)
    expected = []
    for node in world.nodes:
        ran = joined([(m.start, m.end) for m in world.moments if m.stack[-1:] == [node]])
        expected.append((path(node), ran, tuple(world.truth(node).items())))

    def known(row: Any) -> Any:
        name, ran, parts = row
        if name in unsure:
            found = dict(parts)
            parts = (found["wall"], found["sub"], found["python"] + found["wait"])
        return name, ran, parts

    assert sorted(map(known, seen)) == sorted(map(known, expected))


def joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, with what touches made one. No two may share time."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        assert not found or start >= found[-1][1]
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def played(program: list[Any], keep: bool) -> World:
    """The program in a call and outside; what it made is closed, or suspended as recording ends."""
    world = World()
    with assert_restored():
        world.switch("start")
        world.run([("call", "main", program), ("tick", 5), *program])
        if not keep:
            world.made.clear()
            for node in world.nodes:
                if node.end < 0:
                    node.end = world.now
        world.switch("stop")
        world.made.clear()
    # What a call made itself may not run around it: a limit, see the page on it.
    stacks = [moment.stack for moment in world.moments]
    assume(not any(a.within(b) for stack in stacks for a, b in combinations(stack, 2)))
    return world


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(program=bodies(("tick",)), keep=st.booleans())
def test_generators_woken_from_anywhere(program: list[Any], keep: bool) -> None:
    world = played(program, keep)
    truths(world, world.scene.session)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(program=bodies(("tick", "idle", "tick")), keep=st.booleans())
def test_generators_that_also_wait(program: list[Any], keep: bool) -> None:
    """Of one that waits in some steps and works in others, a call that holds but some of them can
    only estimate which; it says so, and all else is exact."""
    world = played(program, keep)
    truths(world, world.scene.session, guesses=True)


class Driven:
    """Steps of a coroutine, of which the world's stack knows."""

    def __init__(self, world: World, node: Node, inner: Coroutine[Any, Any, None]) -> None:
        self.world, self.node, self.inner = world, node, inner

    def __await__(self) -> Generator[Any, Any, None]:
        world, node = self.world, self.node
        node.start = world.now
        world.nodes.append(node)
        while True:
            world.stack.append(node)
            try:
                item = self.inner.send(None)
            except StopIteration:
                node.end = world.now
                return
            finally:
                world.stack.pop()
            yield item


def coroutine(world: World, parent: Node | None, name: str, body: list[Any]) -> Awaitable[None]:
    """A marked one that waits, awaits others, starts tasks, and gathers."""
    node = Node(name, parent)

    async def run() -> None:
        tasks = []
        for action, *rest in body:
            if action == "sleep":
                await asyncio.sleep(0)
            elif action == "await":
                await coroutine(world, node, *rest)
            elif action == "task":
                tasks.append(asyncio.ensure_future(coroutine(world, node, *rest)))
            elif action == "plain":
                await nobody()
            else:
                world.run([(action, *rest)])
        await asyncio.gather(*tasks)

    @custom_op(name)
    async def marked() -> None:
        await Driven(world, node, run())

    async def nobody() -> None:
        """Work between two awaits in which no marked coroutine but its caller's runs."""
        world.run([("tick", 2)])
        await asyncio.sleep(0)

    return marked()


COROUTINES = st.recursive(
    st.tuples(st.sampled_from(["tick", "idle"]), TIMES)
    | st.tuples(st.just("sleep"))
    | st.tuples(st.just("plain")),
    lambda inner: st.tuples(
        st.sampled_from(["await", "task", "call"]),
        NAMES,
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


def tamed(body: list[Any], plain: bool) -> list[Any]:
    """In a plain call nothing is awaited."""
    found = []
    for action, *rest in body:
        if action in ("await", "task", "call"):
            name, inside = rest
            if plain or action == "call":
                found.append(("call", name, tamed(inside, True)))
            else:
                found.append((action, name, tamed(inside, False)))
        elif not (plain and action in ("sleep", "plain")):
            found.append((action, *rest))
    return found


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(bodies=st.lists(st.lists(COROUTINES, max_size=5), min_size=1, max_size=3))
def test_coroutines_that_run_by_turns(bodies: list[list[Any]]) -> None:
    world = World()
    outer = Node("outer")

    @custom_op("outer")
    def run() -> None:
        async def main() -> None:
            roots = [
                coroutine(world, outer, f"root {number}", tamed(body, False))
                for number, body in enumerate(bodies)
            ]
            world.run([("tick", 3)])
            await asyncio.gather(*roots)

        world.begin(outer)
        world.run([("tick", 1)])
        asyncio.run(main())
        world.run([("idle", 2)])
        world.finish(outer, False)
        world.stack.pop()

    with assert_restored():
        world.switch("start")
        run()
        world.switch("stop")
    truths(world, world.scene.session)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_loader_does_not_hide_the_python_of_the_loop(steps: int) -> None:
    world = World()
    made = ("make", "load", [[("tick", 10)] for _ in range(steps + 1)])
    loop = [("step", 0), ("tick", 100)] * steps
    with assert_restored():
        world.switch("start")
        world.call("call", "train", [made, *loop])
        world.switch("stop")
        world.made.clear()
    (train, load) = calls(world.scene.session)
    assert (train.python_ns, train.sub_ns, train.sub_wait_ns) == (100 * steps, 10 * steps, 0)
    assert (load.python_ns, load.wait_ns) == (10 * steps, 100 * steps)
    own = own_time(world.scene.session)
    assert np.diff([own.start_ns, own.end_ns], axis=0).sum() == 110 * steps
