"""Operators that choose elements: slice, take, pick, where."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array, apply
from ..errors import EngineError, ShapeError
from .joining import axis_of
from .shaping import zeros_like
from .table import Shape, define, given_shape, same_dtype


def _positions(indices: Any, extent: int, mode: str) -> Any:
    whole = indices.astype(np.int64)
    if mode == "clip":
        return np.clip(whole, 0, extent - 1)
    if mode == "wrap":
        return whole % extent
    if whole.size and not (whole.min() >= 0 and whole.max() < extent):
        raise IndexError(f"indices from {whole.min()} to {whole.max()} for {extent} elements")
    return whole


def _take_shape(a: Shape, indices: Shape, *, axis: int, mode: str) -> Shape:
    place = axis_of(axis, len(a))
    return (*a[:place], *indices, *a[place + 1 :])


def _take(out: Any, a: Any, indices: Any, axis: int, mode: str) -> Any:
    return np.take(a, _positions(indices, a.shape[axis], mode), axis)


def _take_back(out: Any, g: Any, indices: Any, shape: Shape, axis: int, mode: str) -> Any:
    result = np.zeros(shape, g.dtype)
    where = _positions(indices, shape[axis], mode)
    axis %= len(shape)
    # Indices may repeat, and then their gradients add up.
    np.add.at(result, (slice(None),) * axis + (where,), g)
    return result


def _without(shape: Shape, axis: int) -> Shape:
    place = axis_of(axis, len(shape))
    return shape[:place] + shape[place + 1 :]


def _pick_shape(data: Shape, index: Shape, *, axis: int, keepdims: bool, mode: str) -> Shape:
    rest, place = _without(data, axis), axis % len(data)
    kept = (*rest[:place], 1, *rest[place:])
    if index not in (rest, kept):
        raise ShapeError(f"pick along axis {axis} of {data} needs indices {rest}, not {index}")
    return kept if keepdims else rest or (1,)


def _along(index: Any, shape: Shape, axis: int, mode: str) -> Any:
    kept = list(shape)
    kept[axis] = 1
    return _positions(index, shape[axis], mode).reshape(kept)


def _pick(out: Any, a: Any, index: Any, axis: int, keepdims: bool, mode: str) -> Any:
    found = np.take_along_axis(a, _along(index, a.shape, axis, mode), axis)
    return found if keepdims else found.reshape(_without(a.shape, axis) or (1,))


def _pick_back(out: Any, g: Any, index: Any, shape: Shape, axis: int, mode: str) -> Any:
    result, where = np.zeros(shape, g.dtype), _along(index, shape, axis, mode)
    np.put_along_axis(result, where, g.reshape(where.shape), axis)
    return result


def _where_shape(condition: Shape, x: Shape, y: Shape) -> Shape:
    if x != y:
        raise ShapeError(f"shapes differ: {x} and {y}")
    if condition not in (x, x[:1]):
        raise ShapeError(f"a condition of shape {condition} for arrays of {x}")
    return x


def _where(out: Any, condition: Any, x: Any, y: Any) -> Any:
    if condition.ndim != x.ndim:  # it chooses rows
        condition = condition.reshape(-1, *(1,) * (x.ndim - 1))
    return np.where(condition != 0, x, y)


def _where_grad(g: Array, ins: Any, out: Array) -> tuple[None, Array, Array]:
    none = zeros_like(g)
    return None, where(ins[0], g, none), where(ins[0], none, g)


for _name, _back in (("take", _take_back), ("pick", _pick_back)):
    define(f"_backward_{_name}", _back, given_shape, lambda g, *_, **__: g)
define(
    "take",
    _take,
    _take_shape,
    lambda a, indices, **_: a,
    lambda g, i, o, **params: (apply("_backward_take", g, i[1], shape=i[0].shape, **params), None),
)
define(
    "pick",
    _pick,
    _pick_shape,
    lambda a, index, **_: a,
    lambda g, i, o, axis, keepdims, mode: (
        apply("_backward_pick", g, i[1], shape=i[0].shape, axis=axis, mode=mode),
        None,
    ),
)
define("where", _where, _where_shape, lambda c, x, y: same_dtype(x, y), _where_grad)


def slice_(a: Array, begin: Any, end: Any, step: Any = None, out: Array | None = None) -> Array:
    """A copy of the part from `begin` to `end`, an int or None for each of the first axes."""
    begin, end = _each(begin), _each(end)
    step = (None,) * len(begin) if step is None else _each(step)
    if not len(begin) == len(end) == len(step) <= a.ndim:
        raise ShapeError(f"slice of {a.ndim} axes by {begin}, {end}, {step}")
    return apply("slice", a, out=out, key=tuple(map(slice, begin, end, step)))


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def slice_axis(a: Array, axis: int, begin: int, end: int | None, out: Array | None = None) -> Array:
    """A copy of the part from `begin` to `end` along one axis. Does not block."""
    lead = (slice(None),) * axis_of(axis, a.ndim)
    return apply("slice_axis", a, out=out, key=(*lead, slice(begin, end)))


def take(
    a: Array, indices: Array, axis: int = 0, mode: str = "clip", out: Array | None = None
) -> Array:
    """What is at the indices along an axis. Does not block.

    Indices out of range are clipped or wrapped; in mode "raise" they fail in execution.
    """
    return apply("take", a, indices, out=out, axis=axis, mode=_known(mode))


def pick(
    a: Array,
    index: Array,
    axis: int = -1,
    keepdims: bool = False,
    mode: str = "clip",
    out: Array | None = None,
) -> Array:
    """One element from each line along the axis; modes as for `take`. Does not block."""
    return apply("pick", a, index, out=out, axis=axis, keepdims=keepdims, mode=_known(mode))


def _known(mode: str) -> str:
    if mode not in ("clip", "wrap", "raise"):
        raise EngineError(f"mode must be 'clip', 'wrap' or 'raise', not {mode!r}")
    return mode


def where(condition: Array, x: Array, y: Array, out: Array | None = None) -> Array:
    """`x` where the condition is not 0, else `y`; a condition of one axis chooses rows."""
    return apply("where", condition, x, y, out=out)
