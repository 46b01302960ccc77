"""Recording operators and walking back over them. The walk itself is in `backwards`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from .array import Array, apply, zeros
from .backwards import behind, ordered, walk
from .errors import EngineError, ShapeError
from .function import Function
from .tape import Node, edge, state

__all__ = [
    "Function",
    "backward",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
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


def set_recording(is_recording: bool) -> bool:
    """Record, or do not, from now on in this thread; returns what was before."""
    before, state.recording = state.recording, bool(is_recording)
    return before


def set_training(train_mode: bool) -> bool:
    """Run for training, or for prediction, from now on in this thread; returns what was before."""
    before, state.training = state.training, bool(train_mode)
    return before


def mark_variables(
    variables: Array | Sequence[Array],
    gradients: Array | Sequence[Array],
    grad_reqs: str | Sequence[str] = "write",
) -> None:
    """Make the variables leaves whose gradients `backward` puts into these arrays."""
    if isinstance(variables, Array):
        variables = [variables]
    if isinstance(gradients, Array):
        gradients = [gradients]
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise EngineError(
            f"{len(variables)} variables, {len(gradients)} gradients and {len(reqs)} requests"
        )
    for variable, gradient, req in zip(variables, gradients, reqs, strict=True):
        variable.mark(gradient, req)


def backward(
    heads: Array | Sequence[Array],
    head_grads: Array | Sequence[Array | None] | None = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Push the operators that fill the gradients of all leaves the heads were made from.

    Does not block. A missing head gradient is ones. A leaf that no gradient flows to (`a > 0`) gets
    zeros. The tape is freed unless `retain_graph`; EngineError when it was freed before, or when a
    head was not recorded.
    """
    heads, head_grads = _checked(heads, head_grads)
    order = ordered(heads)
    with _scope(False, train_mode):
        found = walk(order, heads, head_grads, add=True)
        for array, gradient in found.leaves.items():
            assert array.grad is not None
            if array.grad_req == "add":
                apply("elemwise_add", array.grad, gradient, out=array.grad)
            else:
                apply("_copyto", gradient, out=array.grad)
        for place in behind(order):
            if not isinstance(place, Array) or place in found.leaves or place.grad is None:
                continue
            if place.grad_req == "write":
                apply("_zeros", shape=place.shape, dtype=place.grad.dtype, out=place.grad)
    if not retain_graph:
        _free(order)


def grad(
    heads: Array | Sequence[Array],
    variables: Array | Sequence[Array],
    head_grads: Array | Sequence[Array | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> Array | list[Array]:
    """The gradients of the heads by these variables, as new arrays; no `grad` is touched.

    One array for one variable, a list for a list. Does not block. EngineError where `backward`
    raises, and for a variable the heads do not depend on. Gradients of gradients (`create_graph`)
    are not recorded here.
    """
    if create_graph:
        raise EngineError("create_graph: gradients are not recorded themselves")
    heads, head_grads = _checked(heads, head_grads)
    wanted = [variables] if isinstance(variables, Array) else list(variables)
    order = ordered(heads)
    places = [edge(variable) for variable in wanted]
    with _scope(False, train_mode):
        found = walk(order, heads, head_grads, add=False, watched=places)
        gradients = [found.at(place) for place in places]
        reached = behind(order)
        for number, (place, variable) in enumerate(zip(places, wanted, strict=True)):
            if gradients[number] is None:
                if place is None or place not in reached:
                    raise EngineError(f"the heads do not depend on variable {number}")
                gradients[number] = zeros(variable.shape, variable.dtype)
    if not retain_graph:
        _free(order)
    some = _apart([one for one in gradients if one is not None], head_grads)
    return some[0] if isinstance(variables, Array) else some


def _apart(gradients: list[Array], given: Sequence[Array | None]) -> list[Array]:
    """Arrays of their own: what only passes a gradient on gives the one it was given."""
    seen = {one.storage.var for one in given if one is not None}
    found = []
    for gradient in gradients:
        shared = gradient.storage.var in seen
        seen.add(gradient.storage.var)
        found.append(apply("_copyto", gradient) if shared else gradient)
    return found


def _checked(
    heads: Array | Sequence[Array], head_grads: Array | Sequence[Array | None] | None
) -> tuple[Sequence[Array], Sequence[Array | None]]:
    if isinstance(heads, Array):
        heads = [heads]
    if isinstance(head_grads, Array):
        head_grads = [head_grads]
    if head_grads is None:
        head_grads = [None] * len(heads)
    if len(head_grads) != len(heads):
        raise EngineError(f"{len(heads)} heads and {len(head_grads)} gradients")
    for head, gradient in zip(heads, head_grads, strict=True):
        if head.node is None and head.grad is None:
            raise EngineError("the array was not made by recorded operators")
        if gradient is not None and gradient.shape != head.shape:
            raise ShapeError(f"a gradient of shape {gradient.shape} for shape {head.shape}")
    return heads, head_grads


def _free(order: list[Node]) -> None:
    for node in order:
        node.free()
