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
    if op.several:
        raise EngineError(f"{name} has several outputs")
    shape = op.shape(*(array.shape for array in inputs), **params)
    dtype = op.dtype(*(array.dtype for array in inputs), **params)
    if out is None:
        result = make(Storage(Cell(shape, dtype)))
    else:
        check_out(name, out, shape, inputs)
        result = out
    storages = tuple(array.storage for array in inputs)
    reads, writes = tidy([storage.var for storage in storages], (result.storage.var,))
    # Where the promised type is not the output's, the result is made apart and cast.
    run = _runner(op, storages, result.storage, dtype == result.dtype, params)
    get().push_task(Task(run, op.name, reads, writes, pushed_by=here.call))
    if tape.state.recording:
        flows = op.gradient is not None and tape.wanted(inputs)
        gradient = _gradient(op, inputs, result.detach(), params) if flows else None
        tape.record(op.name, inputs, (result,), gradient)
    return result


def check_out(name: str, out: Array, shape: tuple[int, ...], inputs: Sequence[Array]) -> None:
    """Raise unless `name` may write this array now."""
    if out.shape != shape:
        raise ShapeError(f"{name} makes shape {shape}, the array has {out.shape}")
    if not tape.state.recording:
        return
    # A gradient may need the elements that would be lost.
    if tape.tracked(out) or (
        tape.wanted(inputs) and any(array.storage.var is out.storage.var for array in inputs)
    ):
        raise EngineError("arrays cannot be changed in place while gradients are recorded")


def _gradient(
    op: Operator, inputs: tuple[Array, ...], output: Array, params: dict[str, Any]
) -> tape.Gradient:
    def gradient(grads: list[Array | None], into: Sequence[Array | None]) -> Sequence[Array | None]:
        assert op.gradient is not None
        return op.gradient(grads[0], plain, output, **params)

    # Without their own nodes: what a gradient computes must not hold the whole tape.
    plain = tuple(array.detach() for array in inputs)
    return gradient


# Several outputs


def several(
    make: Callable[[Storage], Array],
    name: str,
    inputs: tuple[Array, ...],
    out: Sequence[Array] | None,
    params: dict[str, Any],
) -> list[Array]:
    """As `apply`, for an operator with several outputs, pushed as one task."""
    op = find(name)
    if not op.several:
        return [apply(make, name, inputs, None if out is None else out[0], params)]
    shapes = op.shape(*(array.shape for array in inputs), **params)
    dtype = op.dtype(*(array.dtype for array in inputs), **params)
    if out is None:
        results = [make(Storage(Cell(shape, dtype))) for shape in shapes]
    else:
        results = list(out)
        if len(results) != len(shapes):
            raise ShapeError(f"{name} has {len(shapes)} outputs, not {len(results)}")
        for array, shape in zip(results, shapes, strict=True):
            check_out(name, array, shape, inputs)
    sources = tuple(array.storage for array in inputs)
    targets = tuple(array.storage for array in results)
    reads, writes = tidy([s.var for s in sources], [s.var for s in targets])
    run = _runner_of_several(op, sources, targets, params)
    get().push_task(Task(run, op.name, reads, writes, pushed_by=here.call))
    if tape.state.recording:
        flows = op.gradient is not None and tape.wanted(inputs)
        plain = [array.detach() for array in results]
        gradient = _gradient_of_several(op, inputs, plain, params) if flows else None
        tape.record(op.name, inputs, results, gradient)
    return results


def _runner_of_several(
    op: Operator,
    inputs: tuple[Storage, ...],
    outputs: tuple[Storage, ...],
    params: dict[str, Any],
) -> Callable[[], None]:
    def run() -> None:
        buffers = tuple([storage.cell.get() for storage in inputs])
        with np.errstate(all="ignore"):
            made = op.kernel(None, *buffers, **params)
        for storage, result in zip(outputs, made, strict=True):
            storage.cell.put(result, buffers)

    return run


def _gradient_of_several(
    op: Operator, inputs: tuple[Array, ...], outputs: list[Array], params: dict[str, Any]
) -> tape.Gradient:
    def gradient(grads: list[Array | None], into: Sequence[Array | None]) -> Sequence[Array | None]:
        assert op.gradient is not None
        return op.gradient(grads, plain, outputs, **params)

    plain = tuple(array.detach() for array in inputs)
    return gradient
