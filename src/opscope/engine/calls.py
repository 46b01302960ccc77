"""Calls of custom operators, and what this thread is doing now."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import draws
from .draws import Draws

if TYPE_CHECKING:
    from .bulk import Segment
    from .graph import Task


@dataclass(frozen=True, slots=True)
class CustomOpInfo:
    """A custom operator: the `registration`-th of its qualified name in this process.

    `prop` is what the class it was made from derives from, or that class.
    """

    name: str
    registration: int
    prop: type
    file: str
    line: int
    kind: str = "CustomOp"
    qualified: str = ""  # empty: the name


class Call:
    """One forward or backward of one custom operator. Without a `task` it runs where it was called.

    `forward` is the forward call a backward one belongs to, `outer` the call whose body pushed it,
    `error` what its body raised, `thread` the ident while it runs, `draws` its random numbers.
    `note` is free for one watcher.
    """

    __slots__ = (
        "direction",
        "draws",
        "error",
        "forward",
        "gates",
        "note",
        "op",
        "outer",
        "pending",
        "task",
        "thread",
    )

    def __init__(
        self, op: CustomOpInfo, direction: str, forward: Call | None, outer: Call | None
    ) -> None:
        self.op = op
        self.direction = direction
        self.forward = forward
        self.outer = outer
        # Taken when it is pushed, which for one body is always in the same order.
        self.draws: Draws = (draws.root() if outer is None else outer.draws).branch()
        self.task: Task | None = None
        self.error: BaseException | None = None
        self.thread: int | None = None
        self.note: Any = None
        self.pending = 0  # tasks its body pushed, and theirs, that have not ended
        self.gates: list[threading.Lock] = []  # its own waits for all of them

    def __repr__(self) -> str:
        return f"<Call {self.direction} of {self.op.name!r}>"

    def within(self, call: Call) -> bool:
        """True if this is `call`, or was pushed, however deep, by its body."""
        here: Call | None = self
        while here is not None and here is not call:
            here = here.outer
        return here is call


class Here(threading.local):
    """What this thread is doing.

    `call` is the call whose body it runs for the engine, `innermost` that or one inside it that
    runs where it was called: to the engine, whose body waits for itself alone, that one is part of
    what is around it. `segment` is its open bulk segment.
    """

    call: Call | None = None
    innermost: Call | None = None
    segment: Segment | None = None


here = Here()

_running: dict[int, list[Call]] = {}


def enter(call: Call) -> None:
    """The calling thread enters the wrapper of this call."""
    call.thread = ident = threading.get_ident()
    stack = _running.get(ident)
    if stack is None:
        _running[ident] = [call]
    else:
        stack.append(call)


def leave(call: Call) -> None:
    """The calling thread leaves the wrapper it entered last."""
    ident = threading.get_ident()
    stack = _running[ident]
    stack.pop()
    if not stack:
        del _running[ident]
    call.thread = None


def running_calls() -> list[Call]:
    """The calls whose wrapper is on some thread now, outermost first on each. Any thread."""
    return [call for stack in list(_running.values()) for call in list(stack)]


def forget_other_threads() -> None:
    """In a forked child: the other threads are gone, and their calls with them."""
    mine = threading.get_ident()
    for ident in list(_running):
        if ident != mine:
            del _running[ident]
