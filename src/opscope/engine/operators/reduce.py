"""Operators that fold axes away: sum, mean, max, argmax; and broadcast_to, their gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..array import Array, apply, to_shape
from ..errors import ShapeError
from .elementwise import unbroadcast
from .table import Shape, define, float_dtype, given_dtype, given_shape, same_dtype

Axis = int | tuple[int, ...] | None


def _axes(ndim: int, axis: Axis) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in axes:
        if not -ndim <= one < ndim:
            raise ShapeError(f"no axis {one} among {ndim}")
    found = {one % ndim for one in axes}
    if len(found) != len(axes):
        raise ShapeError(f"an axis is named twice in {axis}")
    return tuple(sorted(found))


def _kept(shape: Shape, axis: Axis) -> Shape:
    axes = _axes(len(shape), axis)
    return tuple(1 if n in axes else extent for n, extent in enumerate(shape))


def _reduced(shape: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    if keepdims:
        return _kept(shape, axis)
    axes = _axes(len(shape), axis)
    # As in MXNet, folding everything leaves one element on one axis.
    return tuple(extent for n, extent in enumerate(shape) if n not in axes) or (1,)


def _nonempty(shape: Shape, *, axis: Axis, keepdims: bool) -> Shape:
    for one in _axes(len(shape), axis):
        if not shape[one]:
            raise ShapeError(f"no greatest element along axis {one} of shape {shape}")
    return _reduced(shape, axis=axis, keepdims=keepdims)


def _kernel(fn: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(out: Any, a: Any, axis: Axis, keepdims: bool) -> Any:
        result = fn(a, axis=_axes(a.ndim, axis), keepdims=keepdims)
        return np.reshape(result, _reduced(a.shape, axis=axis, keepdims=keepdims))

    return kernel


def _spread(g: Array, like: Array, axis: Axis) -> Array:
    return apply("broadcast_to", g.reshape(_kept(like.shape, axis)), shape=like.shape)


def _mean_grad(g: Array, ins: Any, out: Array, axis: Axis, keepdims: bool) -> tuple[Array]:
    share = max(out.size, 1) / max(ins[0].size, 1)
    return (_spread(g * share, ins[0], axis),)


def _max_grad(g: Array, ins: Any, out: Array, axis: Axis, keepdims: bool) -> tuple[Array]:
    return (_spread(g, ins[0], axis) * (ins[0] == _spread(out, ins[0], axis)),)


def _argmax(out: Any, a: Any, axis: int | None, keepdims: bool) -> Any:
    found = np.argmax(a, axis=axis)
    return np.reshape(found, _reduced(a.shape, axis=axis, keepdims=keepdims))


def _broadcast_to_shape(source: Shape, *, shape: Shape) -> Shape:
    try:
        fits = np.broadcast_shapes(source, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{source} cannot be broadcast to {shape}")
    return given_shape(source, shape=shape)


define(
    "sum",
    _kernel(np.sum),
    _reduced,
    same_dtype,
    lambda g, i, o, axis, keepdims: (_spread(g, i[0], axis),),
)
define("mean", _kernel(np.mean), _reduced, float_dtype, _mean_grad)
define("max", _kernel(np.max), _nonempty, same_dtype, _max_grad)
define("argmax", _argmax, _nonempty, lambda *_, **__: given_dtype())
define(
    "broadcast_to",
    lambda out, a, shape: np.broadcast_to(a, shape),
    _broadcast_to_shape,
    same_dtype,
    lambda g, i, o, shape: (unbroadcast(g, i[0].shape),),
)


def sum_(a: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum over `axis`, or over all. Does not block."""
    return apply("sum", a, axis=axis, keepdims=keepdims)


def mean(a: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over `axis`, or over all. Does not block."""
    return apply("mean", a, axis=axis, keepdims=keepdims)


def max_(a: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The greatest over `axis`, or over all; equal ones share the gradient whole."""
    return apply("max", a, axis=axis, keepdims=keepdims)


def argmax(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the greatest is, as float32, the first of equals. Has no gradient."""
    return apply("argmax", a, axis=axis, keepdims=keepdims)


def broadcast_to(a: Array, shape: Any) -> Array:
    """The elements repeated to fill `shape`. Does not block."""
    return apply("broadcast_to", a, shape=to_shape(shape))
