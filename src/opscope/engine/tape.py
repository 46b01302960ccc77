"""What this thread records for gradients; `autograd` walks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .array import Array


class State(threading.local):
    """Per thread: are operators recorded, and do they run for training?"""

    recording = False
    training = False


state = State()

Gradient = Callable[[list["Array | None"]], Sequence["Array | None"]]


class Node:
    """One recorded operator: from the gradients of its outputs to those of its inputs."""

    __slots__ = ("gradient", "inputs", "name", "outputs")

    def __init__(
        self, name: str, inputs: tuple[Array, ...], outputs: int, gradient: Gradient
    ) -> None:
        self.name = name
        self.inputs: tuple[Array, ...] | None = inputs  # None: freed by a backward pass
        self.outputs = outputs
        self.gradient: Gradient | None = gradient

    def free(self) -> None:
        """Let go of everything the backward pass would need."""
        self.inputs = self.gradient = None


def tracked(array: Array) -> bool:
    """True if a gradient flows into or through this array."""
    return array.node is not None or array.grad is not None


def wanted(inputs: Sequence[Array]) -> bool:
    """True if an operator with these inputs is to be recorded now."""
    return state.recording and any(tracked(array) for array in inputs)
