"""Operators that fold axes away: sum, max, norm ...; and broadcast_to, their gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..array import Array, apply, to_shape
from ..errors import EngineError, ShapeError
from .elementwise import unbroadcast
from .joining import axis_of
from .table import Shape, define, float_dtype, given_dtype, given_shape, same_dtype, same_shape

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


def _prod_back(out: Any, g: Any, a: Any, axis: Axis) -> Any:
    axes = _axes(a.ndim, axis)
    last = tuple(range(a.ndim - len(axes), a.ndim))
    moved = np.moveaxis(a, axes, last)
    flat = moved.reshape(*moved.shape[: a.ndim - len(axes)], -1)
    # The product of all the others, right also where an element is 0.
    one = np.ones((*flat.shape[:-1], 1), flat.dtype)
    before = np.concatenate([one, flat[..., :-1]], -1).cumprod(-1)
    after = np.concatenate([one, flat[..., :0:-1]], -1).cumprod(-1)[..., ::-1]
    return np.moveaxis((before * after).reshape(moved.shape), last, axes) * g


def _prod_grad(g: Array, ins: Any, out: Array, axis: Axis, keepdims: bool) -> tuple[Array]:
    (a,) = ins
    return (apply("_backward_prod", _spread(g, a, axis), a, axis=axis),)


def _norm(out: Any, a: Any, ord: int, axis: Axis, keepdims: bool) -> Any:
    axes = _axes(a.ndim, axis)
    sums = np.sum(np.abs(a) if ord == 1 else np.square(a), axis=axes)
    found = sums if ord == 1 else np.sqrt(sums)
    return np.reshape(found, _reduced(a.shape, axis=axis, keepdims=keepdims))


def _norm_grad(g: Array, ins: Any, out: Array, ord: int, axis: Axis, keepdims: bool) -> Any:
    (a,) = ins
    if ord == 1:
        return (_spread(g, a, axis) * apply("sign", a),)
    return (_spread(g / (out + (out == 0)), a, axis) * a,)  # 0 where all are 0


def _place(fn: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(out: Any, a: Any, axis: int | None, keepdims: bool) -> Any:
        return np.reshape(fn(a, axis=axis), _reduced(a.shape, axis=axis, keepdims=keepdims))

    return kernel


def _broadcast_to_shape(source: Shape, *, shape: Shape) -> Shape:
    try:
        fits = np.broadcast_shapes(source, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{source} cannot be broadcast to {shape}")
    return given_shape(source, shape=shape)


def _widened(shape: Shape, *, axis: Shape, size: Shape) -> Shape:
    if len(axis) != len(size):
        raise ShapeError(f"{len(axis)} axes and {len(size)} sizes")
    found = list(shape)
    for one, extent in zip(axis, size, strict=True):
        place = axis_of(one, len(shape))
        if shape[place] != 1:
            raise ShapeError(f"axis {place} of shape {shape} is not of 1")
        found[place] = extent
    return tuple(found)


define(
    "sum",
    _kernel(np.sum),
    _reduced,
    same_dtype,
    lambda g, i, o, axis, keepdims: (_spread(g, i[0], axis),),
)
define("mean", _kernel(np.mean), _reduced, float_dtype, _mean_grad)
define("prod", _kernel(np.prod), _reduced, same_dtype, _prod_grad)
define("_backward_prod", _prod_back, same_shape, same_dtype)
define("max", _kernel(np.max), _nonempty, same_dtype, _max_grad)
define("min", _kernel(np.min), _nonempty, same_dtype, _max_grad)
define(
    "norm",
    _norm,
    lambda shape, ord, axis, keepdims: _reduced(shape, axis=axis, keepdims=keepdims),
    float_dtype,
    _norm_grad,
)
define("argmax", _place(np.argmax), _nonempty, lambda *_, **__: given_dtype())
define("argmin", _place(np.argmin), _nonempty, lambda *_, **__: given_dtype())
define(
    "broadcast_to",
    lambda out, a, shape: np.broadcast_to(a, shape),
    _broadcast_to_shape,
    same_dtype,
    lambda g, i, o, shape: (unbroadcast(g, i[0].shape),),
)
define(
    "broadcast_axis",
    lambda out, a, axis, size: np.broadcast_to(a, _widened(a.shape, axis=axis, size=size)),
    lambda shape, axis, size: _widened(shape, axis=axis, size=size),
    same_dtype,
    lambda g, i, o, axis, size: (unbroadcast(g, i[0].shape),),
)
define(
    "broadcast_like",
    lambda out, a, like: np.broadcast_to(a, like.shape),
    lambda source, like: _broadcast_to_shape(source, shape=like),
    lambda dtype, _: dtype,
    lambda g, i, o: (unbroadcast(g, i[0].shape), None),
)


def _chosen(ndim: int, axis: Axis, exclude: bool) -> Axis:
    if not isinstance(axis, (int, type(None))) and not axis and not exclude:
        return None  # as in MXNet, no axes are all
    if not exclude or axis is None:
        return axis
    return tuple(sorted(set(range(ndim)) - set(_axes(ndim, axis))))


def sum_(
    a: Array,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: Array | None = None,
) -> Array:
    """The sum over `axis`, over all, or (`exclude`) over all other axes. Does not block."""
    return apply("sum", a, out=out, axis=_chosen(a.ndim, axis, exclude), keepdims=keepdims)


def mean(
    a: Array,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: Array | None = None,
) -> Array:
    """The mean, with axes as for `sum`. Does not block."""
    return apply("mean", a, out=out, axis=_chosen(a.ndim, axis, exclude), keepdims=keepdims)


def prod(
    a: Array,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: Array | None = None,
) -> Array:
    """The product, with axes as for `sum`. Does not block."""
    return apply("prod", a, out=out, axis=_chosen(a.ndim, axis, exclude), keepdims=keepdims)


def max_(
    a: Array,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: Array | None = None,
) -> Array:
    """The greatest, with axes as for `sum`; equal ones each get the gradient whole."""
    return apply("max", a, out=out, axis=_chosen(a.ndim, axis, exclude), keepdims=keepdims)


def min_(
    a: Array,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: Array | None = None,
) -> Array:
    """The least, with axes as for `sum`; equal ones each get the gradient whole."""
    return apply("min", a, out=out, axis=_chosen(a.ndim, axis, exclude), keepdims=keepdims)


def norm(
    a: Array, ord: int = 2, axis: Axis = None, keepdims: bool = False, out: Array | None = None
) -> Array:
    """The norm of order 1 or 2 over `axis`, or over all. Does not block."""
    if ord not in (1, 2):
        raise EngineError(f"norm is of order 1 or 2, not {ord!r}")
    return apply("norm", a, out=out, ord=ord, axis=axis, keepdims=keepdims)


def argmax(
    a: Array, axis: int | None = None, keepdims: bool = False, out: Array | None = None
) -> Array:
    """Where the greatest is, as float32, the first of equals. Has no gradient."""
    return apply("argmax", a, out=out, axis=axis, keepdims=keepdims)


def argmin(
    a: Array, axis: int | None = None, keepdims: bool = False, out: Array | None = None
) -> Array:
    """Where the least is, as float32, the first of equals. Has no gradient."""
    return apply("argmin", a, out=out, axis=axis, keepdims=keepdims)


def broadcast_to(a: Array, shape: Any, out: Array | None = None) -> Array:
    """The elements repeated to fill `shape`, where 0 keeps an extent. Does not block."""
    wanted = to_shape(shape)
    if len(wanted) == a.ndim:
        wanted = tuple(new or old for new, old in zip(wanted, a.shape, strict=True))
    return apply("broadcast_to", a, out=out, shape=wanted)


def broadcast_like(a: Array, like: Array, out: Array | None = None) -> Array:
    """The elements repeated to fill the shape of another array. Does not block."""
    return apply("broadcast_like", a, like, out=out)


def broadcast_axis(a: Array, axis: Any = (), size: Any = (), out: Array | None = None) -> Array:
    """Axes of 1 repeated to these sizes. Does not block."""
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    return apply("broadcast_axis", a, out=out, axis=places, size=to_shape(size))
