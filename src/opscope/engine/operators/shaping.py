"""Operators that make arrays or move elements: creation, copy, slice, reshape, transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array, apply
from ..errors import ShapeError
from .table import Shape, define, given_dtype, given_shape, same_dtype


def _fill(out: Any, shape: Shape, value: Any, dtype: Any) -> Any:
    if out is None:
        return np.full(shape, value, dtype)
    out.fill(value)
    return out


def _copy(out: Any, a: Any) -> Any:
    if out is None:
        return a.copy()
    np.copyto(out, a)
    return out


def _part_shape(shape: Shape, *, key: Any) -> Shape:
    # A view on one element: indexing costs no memory and raises IndexError as it should.
    part: Shape = np.broadcast_to(np.empty(()), shape)[key].shape
    return part


def _assign_shape(shape: Shape, source: Shape = (), *, key: Any, scalar: Any = None) -> Shape:
    part = _part_shape(shape, key=key)
    try:
        fits = np.broadcast_shapes(part, source) == part
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"shape {source} does not fit into a part of shape {part}")
    return shape


def _assign(out: Any, a: Any, source: Any = None, *, key: Any, scalar: Any = None) -> Any:
    if out is None:
        out = a.copy()
    elif out is not a:
        np.copyto(out, a)
    out[key] = scalar if source is None else source
    return out


def _put(out: Any, g: Any, shape: Shape, key: Any) -> Any:
    result = np.zeros(shape, g.dtype)
    result[key] = g
    return result


def _reshaped(shape: Shape, *, shape_to: Shape) -> Shape:
    size, known, free = 1, 1, 0
    for extent in shape:
        size *= extent
    for extent in shape_to:
        if not isinstance(extent, (int, np.integer)) or extent < -1:
            raise ShapeError(f"{shape_to} is not a shape")
        free += extent == -1
        known *= 1 if extent == -1 else int(extent)
    if free > 1 or (free and (not known or size % known)) or (not free and known != size):
        raise ShapeError(f"{size} elements of shape {shape} do not fill {shape_to}")
    return tuple(size // known if extent == -1 else int(extent) for extent in shape_to)


def _axes(ndim: int, axes: Any) -> tuple[int, ...]:
    order = tuple(reversed(range(ndim))) if axes is None else tuple(axes)
    if sorted(order) != list(range(ndim)):
        raise ShapeError(f"{axes} does not name each of {ndim} axes once")
    return order


def _transposed(shape: Shape, *, axes: Any) -> Shape:
    return tuple(shape[axis] for axis in _axes(len(shape), axes))


def _transpose_grad(g: Array, ins: Any, out: Array, axes: Any) -> tuple[Array]:
    order = _axes(g.ndim, axes)
    return (transpose(g, tuple(order.index(axis) for axis in range(g.ndim))),)


define("_zeros", lambda out, shape, dtype: _fill(out, shape, 0, dtype), given_shape, given_dtype)
define("_ones", lambda out, shape, dtype: _fill(out, shape, 1, dtype), given_shape, given_dtype)
define("_full", _fill, given_shape, given_dtype)
define("_copyto", _copy, gradient=lambda g, i, o: (g,))
define(
    "slice",
    lambda out, a, key: a[key],
    _part_shape,
    same_dtype,
    lambda g, i, o, key: (apply("_slice_backward", g, shape=i[0].shape, key=key),),
)
define("_slice_backward", _put, given_shape)
define("_slice_assign", _assign, _assign_shape, lambda dtype, *_, **__: dtype)
define("_slice_assign_scalar", _assign, _assign_shape)
define(
    "reshape",
    lambda out, a, shape: a.reshape(shape),
    lambda source, shape: _reshaped(source, shape_to=shape),
    same_dtype,
    lambda g, i, o, shape: (g.reshape(i[0].shape),),
)
define(
    "transpose",
    lambda out, a, axes: a.transpose(axes),
    _transposed,
    same_dtype,
    _transpose_grad,
)
define(
    "one_hot",
    lambda out, a, depth, on_value, off_value, dtype: np.where(
        a[..., None].astype(np.int64) == np.arange(depth), on_value, off_value
    ),
    lambda shape, depth, **_: (*shape, depth),
    given_dtype,
)


def transpose(a: Array, axes: Any = None) -> Array:
    """The axes in another order, reversed if none is given. Does not block."""
    return apply("transpose", a, axes=axes)


def reshape(a: Array, shape: Any) -> Array:
    """The elements in another shape; one extent may be -1. Does not block."""
    return a.reshape(shape)


def one_hot(
    indices: Array, depth: int, on_value: float = 1, off_value: float = 0, dtype: Any = np.float32
) -> Array:
    """A last axis of `depth` with `on_value` at each index; none where it is out of range."""
    if not isinstance(depth, int) or depth < 0:
        raise ShapeError(f"depth must be an int of at least 0, not {depth!r}")
    return apply(
        "one_hot", indices, depth=depth, on_value=on_value, off_value=off_value, dtype=dtype
    )


def zeros_like(a: Array) -> Array:
    """Zeros of the same shape and type."""
    return apply("_zeros", shape=a.shape, dtype=a.dtype)


def ones_like(a: Array) -> Array:
    """Ones of the same shape and type."""
    return apply("_ones", shape=a.shape, dtype=a.dtype)
