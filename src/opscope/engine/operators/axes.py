"""Operators that give the same elements another shape, or another order of axes."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..array import Array, apply
from ..errors import ShapeError
from .joining import axis_of
from .table import Shape, define, same_dtype


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


def plain_shape(shape: Shape, wanted: Any, reverse: bool = False) -> Shape:
    """What MXNet's codes in a shape for `reshape` mean, -1 apart, which stays.

    0 keeps an extent, -2 keeps the rest, -3 joins two, -4 splits one into the next two.
    With `reverse` they count from the last axis.
    """
    left, found = list(shape), []
    try:
        codes = [operator.index(code) for code in to_tuple(wanted)]
    except TypeError:
        raise ShapeError(f"{wanted!r} is not a shape") from None
    if reverse:
        if -4 in codes:
            raise ShapeError(f"{wanted}: -4 is not known in reverse")
        return plain_shape(shape[::-1], codes[::-1])[::-1]
    if 0 in shape or not any(code in (0, -2, -3, -4) for code in codes):
        return tuple(codes)
    try:
        while codes:
            code = codes.pop(0)
            if code == -2:
                found += left
                left = []
            elif code == -3:
                found.append(left.pop(0) * left.pop(0))
            elif code == -4:
                whole, first, second = left.pop(0), codes.pop(0), codes.pop(0)
                first = whole // second if first == -1 else first
                second = whole // first if second == -1 else second
                found += [first, second]
            else:
                # The place counts: a 0 after it keeps the extent that is there.
                kept = left.pop(0) if left or code == 0 else 0
                found.append(kept if code == 0 else code)
    except (IndexError, ZeroDivisionError):
        raise ShapeError(f"{wanted} does not fit shape {shape}") from None
    return tuple(found)


def resolved_shape(shape: Shape, wanted: Any, reverse: bool = False) -> Shape:
    """The shape that `reshape` gives; ShapeError if there is none."""
    return _reshaped(shape, shape_to=plain_shape(shape, wanted, reverse))


def to_tuple(value: Any) -> tuple[Any, ...]:
    """A shape, or the axes, from an int or a sequence."""
    return (value,) if isinstance(value, (int, np.integer)) else tuple(value)


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


def _expanded(shape: Shape, *, axis: int) -> Shape:
    place = axis_of(axis, len(shape) + 1)
    return (*shape[:place], 1, *shape[place:])


def _squeezed(shape: Shape, *, axis: Any) -> Shape:
    gone = [n for n, extent in enumerate(shape) if extent == 1]
    if axis is not None:
        gone = [axis_of(one, len(shape)) for one in to_tuple(axis)]
    for one in gone:
        if shape[one] != 1:
            raise ShapeError(f"axis {one} of shape {shape} cannot be left out")
    # As in MXNet, one axis stays.
    return tuple(extent for n, extent in enumerate(shape) if n not in gone) or (1,)


def _swapped(shape: Shape, dim1: int, dim2: int) -> Shape:
    first, second = axis_of(dim1, len(shape)), axis_of(dim2, len(shape))
    found = list(shape)
    found[first], found[second] = shape[second], shape[first]
    return tuple(found)


def _flattened(shape: Shape) -> Shape:
    if not shape:
        raise ShapeError("an array without axes cannot be flattened")
    return shape[0], math.prod(shape[1:])


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
    "SwapAxis",
    lambda out, a, dim1, dim2: np.swapaxes(a, dim1, dim2),
    lambda shape, dim1, dim2: _swapped(shape, dim1, dim2),
    same_dtype,
    lambda g, i, o, dim1, dim2: (swapaxes(g, dim1, dim2),),
)
define(
    "reverse",
    lambda out, a, axis: np.flip(a, axis),
    lambda shape, axis: shape,
    same_dtype,
    lambda g, i, o, axis: (reverse(g, axis),),
)
for _name, _shape in (("expand_dims", _expanded), ("squeeze", _squeezed), ("Flatten", _flattened)):
    define(
        _name,
        lambda out, a, shape=_shape, **params: a.reshape(shape(a.shape, **params)),
        _shape,
        same_dtype,
        lambda g, i, o, **_: (g.reshape(i[0].shape),),
    )


def transpose(a: Array, axes: Any = None, out: Array | None = None) -> Array:
    """The axes in another order, reversed if none is given. Does not block."""
    return apply("transpose", a, out=out, axes=axes or None)


def reshape(a: Array, shape: Any, out: Array | None = None, *, reverse: bool = False) -> Array:
    """The elements in another shape; one extent may be -1, and MXNet's codes are known.

    0 keeps an extent, -2 keeps the rest, -3 joins two, -4 splits one into the next two.
    With `reverse` they count from the last axis.
    """
    return apply("reshape", a, out=out, shape=plain_shape(a.shape, shape, reverse))


def expand_dims(a: Array, axis: int, out: Array | None = None) -> Array:
    """A new axis of one at this place. Does not block."""
    return apply("expand_dims", a, out=out, axis=axis)


def squeeze(a: Array, axis: Any = None, out: Array | None = None) -> Array:
    """Without these axes of one, or without any; one axis stays. Does not block."""
    return apply("squeeze", a, out=out, axis=axis)


def flatten(a: Array, out: Array | None = None) -> Array:
    """All axes but the first made one. Does not block."""
    return apply("Flatten", a, out=out)


Flatten = flatten


def swapaxes(a: Array, dim1: int = 0, dim2: int = 0, out: Array | None = None) -> Array:
    """Two axes in each other's place. Does not block."""
    return apply("SwapAxis", a, out=out, dim1=dim1, dim2=dim2)


def reverse(a: Array, axis: Any, out: Array | None = None) -> Array:
    """The elements in the opposite order along these axes. Does not block."""
    axes = tuple(axis_of(one, a.ndim) for one in to_tuple(axis))
    return apply("reverse", a, out=out, axis=axes)


SwapAxis = swapaxes
