"""Operators that put arrays together, take them apart, or repeat them."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ..array import Array, apply, several, to_shape
from ..errors import ShapeError
from .table import Shape, define, same_dtype


def axis_of(axis: int, ndim: int) -> int:
    """The axis counted from the front; ShapeError if there is none."""
    if not -ndim <= operator.index(axis) < ndim:
        raise ShapeError(f"no axis {axis} among {ndim}")
    return axis % ndim


def _concat_shape(*shapes: Shape, dim: int) -> Shape:
    first = shapes[0]
    axis = axis_of(dim, len(first))
    for shape in shapes[1:]:
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != (
            first[:axis] + first[axis + 1 :]
        ):
            raise ShapeError(f"shapes {first} and {shape} cannot be joined along axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _stack_shape(*shapes: Shape, axis: int) -> Shape:
    if len(set(shapes)) > 1:
        raise ShapeError(f"shapes differ: {' and '.join(map(str, shapes))}")
    place = axis_of(axis, len(shapes[0]) + 1)
    return (*shapes[0][:place], len(shapes), *shapes[0][place:])


def _split_shape(shape: Shape, *, num_outputs: int, axis: int, squeeze_axis: bool) -> Any:
    place = axis_of(axis, len(shape))
    if num_outputs < 1 or shape[place] % num_outputs:
        raise ShapeError(f"axis {axis} of {shape} cannot be split into {num_outputs}")
    share = shape[place] // num_outputs
    if squeeze_axis and share != 1:
        raise ShapeError(f"parts of {share} along axis {axis} cannot be squeezed")
    middle = () if squeeze_axis else (share,)
    return [(*shape[:place], *middle, *shape[place + 1 :])] * num_outputs


def _split(out: Any, a: Any, num_outputs: int, axis: int, squeeze_axis: bool) -> Any:
    parts = np.split(a, num_outputs, axis)
    return [part.squeeze(axis) for part in parts] if squeeze_axis else parts


def _concat_grad(g: Array, ins: Any, out: Array, dim: int) -> list[Array]:
    axis, start, found = dim % g.ndim, 0, []
    for part in ins:
        stop = start + part.shape[axis]
        found.append(g[(slice(None),) * axis + (slice(start, stop),)])
        start = stop
    return found


def _stack_grad(g: Array, ins: Any, out: Array, axis: int) -> list[Array]:
    lead = (slice(None),) * (axis % g.ndim)
    keys = [(*lead, number) for number in range(len(ins))]
    return [g[key] for key in keys]


def _split_grad(
    g: Any, ins: Any, outs: Any, num_outputs: int, axis: int, squeeze_axis: bool
) -> list[Array]:
    grads = [
        apply("_zeros", shape=out.shape, dtype=out.dtype) if one is None else one
        for one, out in zip(g, outs, strict=True)
    ]
    if squeeze_axis:
        return [apply("stack", *grads, axis=axis)]
    return [apply("concat", *grads, dim=axis)]


define("concat", lambda out, *a, dim: np.concatenate(a, dim), _concat_shape, gradient=_concat_grad)
define("stack", lambda out, *a, axis: np.stack(a, axis), _stack_shape, gradient=_stack_grad)
define("split", _split, _split_shape, same_dtype, _split_grad, several=True)
define(
    "add_n",
    lambda out, *a: functools.reduce(np.add, a),
    gradient=lambda g, i, o: (g,) * len(i),
)


# Repeating


def _tiles(shape: Shape, reps: Shape) -> tuple[Shape, Shape]:
    """Shape and repetitions, each led by ones until they are equally long."""
    more = len(reps) - len(shape)
    return (1,) * more + shape, (1,) * -more + reps


def _tile_shape(shape: Shape, *, reps: Shape) -> Shape:
    return tuple(extent * times for extent, times in zip(*_tiles(shape, reps), strict=True))


def _tile_grad(g: Array, ins: Any, out: Array, reps: Shape) -> tuple[Array]:
    pairs = [
        pair for one in zip(*reversed(_tiles(ins[0].shape, reps)), strict=True) for pair in one
    ]
    axes = tuple(range(0, len(pairs), 2))
    return (apply("sum", g.reshape(pairs), axis=axes, keepdims=False).reshape(ins[0].shape),)


def _repeat_shape(shape: Shape, *, repeats: int, axis: int | None) -> Shape:
    if repeats < 0:
        raise ShapeError(f"repeats must be at least 0, not {repeats}")
    if axis is None:
        return (int(np.prod(shape)) * repeats,)
    place = axis_of(axis, len(shape))
    return (*shape[:place], shape[place] * repeats, *shape[place + 1 :])


def _repeat_grad(g: Array, ins: Any, out: Array, repeats: int, axis: int | None) -> tuple[Array]:
    shape = ins[0].shape
    place = len(shape) - 1 if axis is None else axis % len(shape)
    apart = g.reshape(*shape[: place + 1], repeats, *shape[place + 1 :])
    return (apply("sum", apart, axis=place + 1, keepdims=False).reshape(shape),)


define("tile", lambda out, a, reps: np.tile(a, reps), _tile_shape, same_dtype, _tile_grad)
define(
    "repeat",
    lambda out, a, repeats, axis: np.repeat(a, repeats, axis),
    _repeat_shape,
    same_dtype,
    _repeat_grad,
)


def concat(*arrays: Array, dim: int = 1, out: Array | None = None) -> Array:
    """The arrays one after the other along an axis. Does not block."""
    if not arrays:
        raise ShapeError("concat needs at least one array")
    return apply("concat", *arrays, out=out, dim=dim)


def add_n(*arrays: Array, out: Array | None = None) -> Array:
    """The sum of the arrays, which have one shape. Does not block."""
    if not arrays:
        raise ShapeError("add_n needs at least one array")
    return apply("add_n", *arrays, out=out)


def stack(*arrays: Array, axis: int = 0, out: Array | None = None) -> Array:
    """The arrays side by side along a new axis. Does not block."""
    if not arrays:
        raise ShapeError("stack needs at least one array")
    return apply("stack", *arrays, out=out, axis=axis)


def split(
    a: Array,
    num_outputs: int,
    axis: int = 1,
    squeeze_axis: bool = False,
    out: Any = None,
) -> Any:
    """Equal parts along an axis, as a list; a single part comes alone. Does not block."""
    out = [out] if isinstance(out, Array) else out
    params = {"num_outputs": num_outputs, "axis": axis, "squeeze_axis": squeeze_axis}
    parts = several("split", a, out=out, **params)
    return parts[0] if len(parts) == 1 else parts


def tile(a: Array, reps: Any, out: Array | None = None) -> Array:
    """The array repeated as a whole, `reps` times along each axis. Does not block."""
    return apply("tile", a, out=out, reps=to_shape(reps))


def repeat(a: Array, repeats: int, axis: int | None = None, out: Array | None = None) -> Array:
    """Each element repeated in place, along an axis or flattened. Does not block."""
    return apply("repeat", a, out=out, repeats=operator.index(repeats), axis=axis)
