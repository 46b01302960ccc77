"""Operators that make arrays or copy parts of them: creation, copy, slice, one_hot."""

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
    extra = len(source) - len(part)
    if extra > 0 and set(source[:extra]) == {1}:  # as NumPy and MXNet have it
        source = source[extra:]
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
    if source is None:
        out[key] = scalar
    else:
        extra = source.ndim - len(_part_shape(out.shape, key=key))
        out[key] = source if extra <= 0 else source.reshape(source.shape[extra:])
    return out


def _put(out: Any, g: Any, shape: Shape, key: Any) -> Any:
    result = np.zeros(shape, g.dtype)
    if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
        np.add.at(result, key, g)  # indices may repeat, and then their gradients add up
    else:
        result[key] = g
    return result


def _arange(
    out: Any, shape: Shape, start: float, stop: float, step: float, repeat: int, dtype: Any
) -> Any:
    values: Any = np.arange(start, stop, step, dtype=dtype)
    return np.repeat(values, repeat)


define("_zeros", lambda out, shape, dtype: _fill(out, shape, 0, dtype), given_shape, given_dtype)
define("_ones", lambda out, shape, dtype: _fill(out, shape, 1, dtype), given_shape, given_dtype)
define("_full", _fill, given_shape, given_dtype)
define("_copyto", _copy, gradient=lambda g, i, o: (g,))
define("identity", _copy, gradient=lambda g, i, o: (g,))
define("BlockGrad", _copy)
for _name in ("slice", "slice_axis"):
    define(
        _name,
        lambda out, a, key: a[key],
        _part_shape,
        same_dtype,
        lambda g, i, o, key: (apply("_slice_backward", g, shape=i[0].shape, key=key),),
    )
define("_slice_backward", _put, given_shape)
define("_slice_assign", _assign, _assign_shape, lambda dtype, *_, **__: dtype)
define("_slice_assign_scalar", _assign, _assign_shape)
define("_arange", _arange, given_shape, given_dtype)
define(
    "_eye",
    lambda out, shape, k, dtype: np.eye(shape[0], shape[1], k, dtype),
    given_shape,
    given_dtype,
)
define("zeros_like", lambda out, a: _fill(out, a.shape, 0, a.dtype))
define("ones_like", lambda out, a: _fill(out, a.shape, 1, a.dtype))
define(
    "one_hot",
    lambda out, a, depth, on_value, off_value, dtype: np.where(
        a[..., None].astype(np.int64) == np.arange(depth), on_value, off_value
    ),
    lambda shape, depth, **_: (*shape, depth),
    given_dtype,
)


def one_hot(
    indices: Array,
    depth: int,
    on_value: float = 1,
    off_value: float = 0,
    dtype: Any = np.float32,
    out: Array | None = None,
) -> Array:
    """A last axis of `depth` with `on_value` at each index; none where it is out of range."""
    if not isinstance(depth, int) or depth < 0:
        raise ShapeError(f"depth must be an int of at least 0, not {depth!r}")
    values = {"on_value": on_value, "off_value": off_value, "dtype": dtype}
    return apply("one_hot", indices, out=out, depth=depth, **values)


def zeros_like(a: Array, out: Array | None = None) -> Array:
    """Zeros of the same shape and type."""
    return apply("zeros_like", a, out=out)


def ones_like(a: Array, out: Array | None = None) -> Array:
    """Ones of the same shape and type."""
    return apply("ones_like", a, out=out)


def identity(a: Array, out: Array | None = None) -> Array:
    """A copy. Does not block."""
    return apply("identity", a, out=out)


def stop_gradient(a: Array, out: Array | None = None) -> Array:
    """A copy through which no gradient flows. Does not block."""
    return apply("BlockGrad", a, out=out)


def cast(a: Array, dtype: Any, out: Array | None = None) -> Array:
    """The elements in another type; a gradient comes back in the first. Does not block."""
    return apply("cast", a, out=out, dtype=np.dtype(dtype))


BlockGrad = stop_gradient
