"""Recording operators and walking back over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from .array import Array, apply
from .errors import EngineError, ShapeError
from .tape import Node, state

__all__ = [
    "backward",
    "is_recording",
    "is_training",
    "pause",
    "predict_mode",
    "record",
    "train_mode",
]


@contextmanager
def _scope(recording: bool | None, training: bool | None) -> Iterator[None]:
    before = state.recording, state.training
    if recording is not None:
        state.recording = recording
    if training is not None:
        state.training = training
    try:
        yield
    finally:
        state.recording, state.training = before


def record(train_mode: bool = True) -> AbstractContextManager[None]:
    """Record the operators that this thread calls."""
    return _scope(True, train_mode)


def pause(train_mode: bool = False) -> AbstractContextManager[None]:
    """Do not record the operators that this thread calls."""
    return _scope(False, train_mode)


def train_mode() -> AbstractContextManager[None]:
    """Operators of this thread run for training."""
    return _scope(None, True)


def predict_mode() -> AbstractContextManager[None]:
    """Operators of this thread run for prediction."""
    return _scope(None, False)


def is_recording() -> bool:
    """True while this thread records."""
    return state.recording


def is_training() -> bool:
    """True while operators of this thread run for training."""
    return state.training


def backward(
    heads: Sequence[Array],
    head_grads: Sequence[Array | None] | None = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Push the operators that fill the gradients of all leaves the heads were made from.

    Does not block. A missing head gradient is ones. The tape is freed unless `retain_graph`;
    EngineError when it was freed before, or when a head was not recorded.
    """
    if head_grads is None:
        head_grads = [None] * len(heads)
    if len(head_grads) != len(heads):
        raise EngineError(f"{len(heads)} heads and {len(head_grads)} gradients")
    for head, grad in zip(heads, head_grads, strict=True):
        if head.node is None and head.grad is None:
            raise EngineError("the array was not made by recorded operators")
        if grad is not None and grad.shape != head.shape:
            raise ShapeError(f"a gradient of shape {grad.shape} for shape {head.shape}")
    order = _order([head.node for head in heads if head.node is not None])
    with _scope(False, train_mode):
        _walk(order, heads, head_grads)
    if not retain_graph:
        for node in order:
            node.free()


def _order(roots: list[Node]) -> list[Node]:
    """All nodes behind the roots, every node before those it was made from."""
    seen: set[Node] = set()
    found: list[Node] = []
    stack: list[tuple[Node, bool]] = [(root, False) for root in roots]
    while stack:
        node, left = stack.pop()
        if left:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            if node.inputs is None:
                raise EngineError(f"the tape behind {node.name!r} was freed; use retain_graph")
            stack.append((node, True))
            stack += [(a.node, False) for a in node.inputs if a.node is not None]
    found.reverse()
    return found


def _walk(order: list[Node], heads: Sequence[Array], head_grads: Sequence[Array | None]) -> None:
    grads: dict[Node, list[Array | None]] = {node: [None] * node.outputs for node in order}
    leaves: dict[Array, Array] = {}

    def give(array: Array, grad: Array) -> None:
        if array.node is not None:
            slots = grads[array.node]
            have = slots[array.index]
            slots[array.index] = grad if have is None else have + grad
        elif array.grad is not None:
            leaves[array] = leaves[array] + grad if array in leaves else grad

    for head, grad in zip(heads, head_grads, strict=True):
        if grad is None:
            grad = apply("_ones", shape=head.shape, dtype=head.dtype)
        give(head, grad)
    for node in order:
        incoming = grads.pop(node)
        if node.inputs is None or node.gradient is None or all(g is None for g in incoming):
            continue
        for array, grad in zip(node.inputs, node.gradient(incoming), strict=True):
            if grad is not None:
                give(array, grad)
    for array, grad in leaves.items():
        assert array.grad is not None
        if array.grad_req == "add":
            apply("elemwise_add", array.grad, grad, out=array.grad)
        else:
            apply("_copyto", grad, out=array.grad)
