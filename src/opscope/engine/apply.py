"""Calling an operator: check, allocate, push one task, record it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tape
from .calls import here
from .current import get
from .errors import EngineError, ShapeError
from .graph import Task, tidy
from .operators.table import Operator, find
from .storage import Cell, Storage

if TYPE_CHECKING:
    from .array import Array


def _runner(
    op: Operator,
    inputs: tuple[Storage, ...],
    output: Storage,
    in_place: bool,
    params: dict[str, Any],
) -> Callable[[], None]:
    # The task holds the storages, so that their variables outlive it.
    def run() -> None:
        buffers = tuple([storage.cell.get() for storage in inputs])
        cell = output.cell
        with np.errstate(all="ignore"):
            cell.put(op.kernel(cell.value if in_place else None, *buffers, **params), buffers)

    return run


def apply(
    make: Callable[[Storage], Array],
    name: str,
    inputs: tuple[Array, ...],
    out: Array | None,
    params: dict[str, Any],
) -> Array:
    """Run the operator `name`; the result is `out`, or a new array from `make`.

    Does not block. ShapeError, TypeError or EngineError at once where arguments do not fit.
    """
    op = find(name)
    shape = op.shape(*(array.shape for array in inputs), **params)
    dtype = op.dtype(*(array.dtype for array in inputs), **params)
    if out is None:
        result = make(Storage(Cell(shape, dtype)))
    else:
        if out.shape != shape:
            raise ShapeError(f"{name} makes shape {shape}, the array has {out.shape}")
        if tape.state.recording and (tape.tracked(out) or tape.wanted(inputs)):
            raise EngineError("arrays cannot be changed in place while gradients are recorded")
        result = out
    storages = tuple(array.storage for array in inputs)
    reads, writes = tidy([storage.var for storage in storages], (result.storage.var,))
    # Where the promised type is not the output's, the result is made apart and cast.
    run = _runner(op, storages, result.storage, dtype == result.dtype, params)
    get().push_task(Task(run, op.name, reads, writes, pushed_by=here.call))
    if out is None and op.gradient is not None and tape.wanted(inputs):
        result.node = _node(op, inputs, result.detach(), params)
    return result


def _node(
    op: Operator, inputs: tuple[Array, ...], output: Array, params: dict[str, Any]
) -> tape.Node:
    def gradient(grads: list[Array | None]) -> Sequence[Array | None]:
        assert op.gradient is not None
        return op.gradient(grads[0], plain, output, **params)

    # Without their own nodes: what a gradient computes must not hold the whole tape.
    plain = tuple(array.detach() for array in inputs)
    return tape.Node(op.name, inputs, 1, gradient)
