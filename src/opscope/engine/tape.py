"""What this thread records for gradients; `autograd` walks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    from .array import Array


class State(threading.local):
    """Per thread: are operators recorded, and do they run for training?"""

    recording = False
    training = False


state = State()

# Where an input came from: an output of a node, a leaf, or nowhere that gradients go to.
Edge = Union[tuple["Node", int], "Array", None]

# From the gradients of the outputs, and arrays to add an input's gradient to where there is one,
# to the gradients of the inputs: None where nothing flows, or where it was added already.
Gradient = Callable[
    [list[Optional["Array"]], Sequence[Optional["Array"]]], Sequence[Optional["Array"]]
]


class Node:
    """One recorded operator. It holds no elements of its own; `gradient` does.

    One without a gradient is recorded because what is behind it depends on the heads all the same:
    its gradient is 0, which is not the one of the last backward pass.
    """

    __slots__ = ("flows", "gradient", "inputs", "name", "outputs")

    def __init__(
        self, name: str, inputs: Sequence[Array], outputs: int, gradient: Gradient | None
    ) -> None:
        self.name = name
        # None: freed by a backward pass
        self.inputs: tuple[Edge, ...] | None = tuple([edge(array) for array in inputs])
        self.outputs = outputs
        self.gradient = gradient
        self.flows = gradient is not None

    def free(self) -> None:
        """Let go of everything the backward pass would need."""
        self.inputs = self.gradient = None


def edge(array: Array) -> Edge:
    """Where this array came from, as the tape keeps it."""
    if array.node is not None:
        return array.node, array.index
    return array if array.grad is not None else None


def known(array: Array) -> bool:
    """True if the tape knows where this array came from."""
    return array.node is not None or array.grad is not None


def tracked(array: Array) -> bool:
    """True if a gradient flows into or through this array."""
    return array.grad is not None if array.node is None else array.node.flows


def wanted(inputs: Sequence[Array]) -> bool:
    """True if an operator with these inputs is to be recorded now, with its gradient."""
    return state.recording and any(tracked(array) for array in inputs)


def record(
    name: str, inputs: Sequence[Array], outputs: Sequence[Array], gradient: Gradient | None
) -> None:
    """Put an operator on the tape, if anything behind it is."""
    node = Node(name, inputs, len(outputs), gradient) if any(map(known, inputs)) else None
    for index, array in enumerate(outputs):
        array.node, array.index = node, index
