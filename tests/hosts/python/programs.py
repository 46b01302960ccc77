"""Made-up programs: run under opscope, with the truth about them written down beside it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from tests.hosts.checks import PARTS, Scene, in_thread

from opscope import custom_op


@dataclass(eq=False)
class Node:
    """A call as it truly was, from where it was seen. `parent` is the call it belongs to."""

    name: str
    parent: Node | None = None
    start: int = -1  # -1: not seen yet
    end: int = -1
    flags: set[str] = field(default_factory=set)

    def within(self, other: Node) -> bool:
        return self.parent is not None and (self.parent is other or self.parent.within(other))


@dataclass
class Moment:
    start: int
    end: int
    work: bool
    seen: bool  # recording, and not paused
    stack: list[Node]


def here(fn: Callable[[], object]) -> object:
    return fn()


class World:
    """Runs a program under opscope and writes down what truly happens."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.state = "before"
        self.nodes: list[Node] = []
        self.stack: list[Node] = []
        self.asleep: list[Node] = []
        self.moments: list[Moment] = []
        self.made: list[Iterator[None]] = []

    @property
    def now(self) -> int:
        return self.scene.clock.now()

    def begin(self, node: Node) -> None:
        """The call runs from now on."""
        self.stack.append(node)
        if node.start < 0 and self.state == "on":
            node.parent = next((n for n in reversed(self.stack[:-1]) if n.start >= 0), None)
            node.start = self.now
            self.nodes.append(node)

    def finish(self, node: Node, failed: bool) -> None:
        if node.start >= 0 and node.end < 0 and self.state != "over":
            node.end = self.now
            node.flags |= {"failed"} if failed else set()

    def switch(self, what: str, on: Callable[[Callable[[], object]], object] = here) -> None:
        profile = self.scene.profile
        if what == "start" and self.state == "before":
            on(profile.start)
        elif what == "pause" and self.state in ("on", "paused"):
            on(profile.pause if self.state == "on" else profile.resume)
        elif what == "stop" and self.state in ("on", "paused"):
            # From elsewhere, CPU time up to a pause that is still on would be unknown.
            (here if self.state == "paused" else on)(profile.stop)
            for node in self.nodes:
                if node.end < 0:
                    node.end = self.now
                    node.flags.add("incomplete")
            self.state = "over"
            return
        else:
            return
        self.state = "paused" if self.state == "on" else "on"
        if self.state == "on":
            running, self.stack = self.stack, []
            for node in running:
                found = node.start < 0
                self.begin(node)
                node.flags |= {"clamped"} if found else set()

    def run(self, program: list[Any]) -> None:
        for action, *rest in program:
            if action in ("tick", "idle"):
                before, stack = self.now, list(self.stack)
                getattr(self.scene, action)(rest[0])
                self.moments.append(
                    Moment(before, self.now, action == "tick", self.state == "on", stack)
                )
            elif action == "switch":
                self.switch(*rest)
            elif action == "make":
                self.made.append(self.generator(*rest))
            elif action == "step":
                self.step(self.made, *rest)
            else:
                self.call(action, *rest)

    def call(self, how: str, name: str, body: list[Any]) -> None:
        node, failed = Node(name), how == "fails"

        def inside() -> None:
            self.begin(node)
            try:
                self.run(body)
                if failed:
                    raise KeyError
            finally:
                self.finish(node, failed)
                self.stack.pop()

        try:
            if how == "block":
                with custom_op(name):
                    inside()
            else:
                custom_op(name)(inside)()
        except KeyError:
            assert failed

    def step(self, made: list[Iterator[None]], number: int) -> None:
        """Wake one of the generators that were made, unless it runs already."""
        it = made[number % len(made)] if made else iter(())
        if not inspect.isgenerator(it) or not it.gi_running:
            next(it, None)

    def generator(self, name: str, steps: list[list[Any]]) -> Iterator[None]:
        node = Node(name)

        @custom_op(name)
        def items() -> Iterator[None]:
            for number, step in enumerate(steps):
                found = number > 0 and node.start < 0
                self.begin(node)
                node.flags |= {"clamped"} if found and node.start >= 0 else set()
                if step and step[0][0] == "from":
                    inner = self.generator(*step[0][1:])
                    for _ in inner:
                        self.stack.pop()
                        yield
                        self.begin(node)
                else:
                    self.run(step)
                if number == len(steps) - 1:
                    self.finish(node, False)
                self.stack.pop()
                if number < len(steps) - 1:
                    yield

        return items()

    def truth(self, node: Node) -> dict[str, int]:
        found = dict.fromkeys(PARTS, 0)
        below = [other for other in self.nodes if other.within(node)]
        for moment in self.moments:
            if not moment.seen or not node.start <= moment.start < moment.end <= node.end:
                continue
            part = self._part(node, below, moment)
            found[part] += moment.end - moment.start
            found["wall"] += moment.end - moment.start
        return found

    def _part(self, node: Node, below: list[Node], moment: Moment) -> str:
        """Whatever runs is billed to what is innermost on the stack, and to the rest as `sub`."""
        if node in moment.stack:
            if moment.stack[-1] is not node:
                return "sub"
            return "python" if moment.work else "wait"
        # It is suspended itself: `sub` is also what it caused and what is suspended with it.
        there = any(n.start <= moment.start and moment.end <= n.end for n in below)
        return "sub" if there else "wait"


NAMES = st.sampled_from("abc")


TIMES = st.integers(1, 9)


ACTIONS = st.recursive(
    st.one_of(
        st.tuples(st.sampled_from(["tick", "idle"]), TIMES),
        st.tuples(
            st.just("switch"),
            st.sampled_from(["start", "pause", "pause", "stop"]),
            st.sampled_from([here, in_thread]),
        ),
    ),
    lambda inner: st.tuples(
        st.sampled_from(["call", "block", "fails"]), NAMES, st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


PROGRAMS = st.lists(ACTIONS, max_size=5)


def path(node: Node) -> tuple[str, ...]:
    return (*(path(node.parent) if node.parent else ()), node.name)
