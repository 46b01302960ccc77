"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array, apply
from ..errors import ShapeError
from .table import Shape, define, same_dtype


def _flip(shape: Shape, flip: bool) -> Shape:
    return shape[::-1] if flip else shape


def _dot_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    if not a or not b:
        raise ShapeError(f"dot cannot multiply shapes {a} and {b}")
    # Of more than two axes the first, or the last, goes to the other end.
    left = (*a[1:], a[0]) if transpose_a else a
    right = (b[-1], *b[:-1]) if transpose_b else b
    if left[-1] != right[0]:
        raise ShapeError(f"dot cannot multiply {left} and {right}")
    return (*left[:-1], *right[1:]) or (1,)


def _dot(out: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if out is not None and a.ndim == b.ndim == 2:
        return np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)
    result = np.tensordot(a, b, (0 if transpose_a else -1, -1 if transpose_b else 0))
    return result if a.ndim + b.ndim > 2 else np.reshape(result, (1,))


def _dot_grad(
    g: Array, ins: Any, out: Array, transpose_a: bool, transpose_b: bool
) -> tuple[Array, Array]:
    a, b = ins
    if max(a.ndim, b.ndim) > 2:
        width = b.shape[-1 if transpose_b else 0]
        tall, wide = (a.size // width, width), (width, b.size // width)
        flat_a, flat_b = (
            a.reshape(_flip(tall, transpose_a)),
            b.reshape(_flip(wide, transpose_b)),
        )
        g = g.reshape(tall[0], wide[1])
        grad_a = (
            dot(flat_b, g, transpose_b, True)
            if transpose_a
            else dot(g, flat_b, transpose_b=not transpose_b)
        )
        grad_b = (
            dot(g, flat_a, True, transpose_a)
            if transpose_b
            else dot(flat_a, g, transpose_a=not transpose_a)
        )
        return grad_a.reshape(a.shape), grad_b.reshape(b.shape)
    # A vector is a row on the left and a column on the right.
    row = a.reshape(1, -1) if a.ndim == 1 else a
    column = b.reshape(-1, 1) if b.ndim == 1 else b
    flip_a, flip_b = transpose_a and a.ndim == 2, transpose_b and b.ndim == 2
    g = g.reshape(_flip(row.shape, flip_a)[0], _flip(column.shape, flip_b)[1])
    grad_a = dot(g, column, transpose_b=not flip_b)
    grad_b = dot(row, g, transpose_a=not flip_a)
    grad_a = grad_a.T if flip_a else grad_a
    grad_b = grad_b.T if flip_b else grad_b
    return _as(grad_a, a.shape), _as(grad_b, b.shape)


def _as(g: Array, shape: Shape) -> Array:
    return g if g.shape == shape else g.reshape(shape)


define("dot", _dot, _dot_shape, same_dtype, _dot_grad)


def _batch_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    if not (len(a) == len(b) == 3 and a[0] == b[0]):
        raise ShapeError(f"batch_dot needs (n, i, j) and (n, j, k), not {a} and {b}")
    return a[0], *_dot_shape(a[1:], b[1:], transpose_a=transpose_a, transpose_b=transpose_b)


def _batch_dot(out: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    left = a.swapaxes(1, 2) if transpose_a else a
    right = b.swapaxes(1, 2) if transpose_b else b
    return np.matmul(left, right, out=out)


def _batch_grad(
    g: Array, ins: Any, out: Array, transpose_a: bool, transpose_b: bool
) -> tuple[Array, Array]:
    a, b = ins
    return (
        batch_dot(b, g, transpose_b, True)
        if transpose_a
        else batch_dot(g, b, False, not transpose_b),
        batch_dot(g, a, True, transpose_a)
        if transpose_b
        else batch_dot(a, g, not transpose_a, False),
    )


define("batch_dot", _batch_dot, _batch_shape, same_dtype, _batch_grad)


def dot(
    a: Array,
    b: Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out: Array | None = None,
) -> Array:
    """The product over the last axis of `a` (the first if `transpose_a`) and the first of `b`
    (the last if `transpose_b`). Does not block.
    """
    return apply("dot", a, b, out=out, transpose_a=transpose_a, transpose_b=transpose_b)


def batch_dot(
    a: Array,
    b: Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out: Array | None = None,
) -> Array:
    """A matrix product for each place on the first axis. Does not block."""
    return apply("batch_dot", a, b, out=out, transpose_a=transpose_a, transpose_b=transpose_b)
