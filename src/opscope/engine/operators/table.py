"""The table of operators: kernel, shape rule, dtype rule, gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import EngineError, ShapeError

if TYPE_CHECKING:
    from ..array import Array

Shape = tuple[int, ...]
DType = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """One row.

    `kernel(out, *buffers, **params)` returns the result; `out` is None or a buffer of the right
    shape and type that it may fill and return. `shape(*shapes, **params)` and
    `dtype(*dtypes, **params)` run at the call and raise ShapeError or TypeError there.
    `gradient(g, inputs, output, **params)` pushes operators and returns an array, or None, for
    each input; without it nothing flows back. Where an operator has `several` outputs, `shape`,
    `kernel` and the gradient's `g` and `output` are sequences, and `g` may hold None.
    """

    name: str
    kernel: Callable[..., Any]
    shape: Callable[..., Any]
    dtype: Callable[..., DType]
    gradient: Callable[..., Sequence[Array | None]] | None
    several: bool = False


TABLE: dict[str, Operator] = {}


def find(name: str) -> Operator:
    """The row of this name; EngineError if there is none."""
    try:
        return TABLE[name]
    except KeyError:
        raise EngineError(f"no operator {name!r}") from None


def same_shape(shape: Shape, *others: Shape, **_: Any) -> Shape:
    """All inputs have one shape, and so has the output."""
    for other in others:
        if other != shape:
            raise ShapeError(f"shapes differ: {shape} and {other}")
    return shape


def broadcast_shape(*shapes: Shape, **_: Any) -> Shape:
    """The inputs are broadcast to the output, as in NumPy."""
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(f"shapes cannot be broadcast: {' and '.join(map(str, shapes))}") from None


def given_shape(*_: Shape, shape: Shape, **__: Any) -> Shape:
    """The shape is a parameter."""
    return shape


def same_dtype(*dtypes: DType, **_: Any) -> DType:
    """The common type of the inputs."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    common: DType = np.result_type(*dtypes)
    return common


def float_dtype(*dtypes: DType, **_: Any) -> DType:
    """The common type if it is a float, else float32."""
    common = same_dtype(*dtypes)
    if common.kind == "f":
        return common
    return np.dtype(np.float32)


def scalar_dtype(dtype: DType, *, scalar: Any, **_: Any) -> DType:
    """The input's type, unless a float meets integers."""
    if dtype.kind == "f" or not isinstance(scalar, float):
        return dtype
    return np.dtype(np.float32)


def given_dtype(*_: DType, dtype: Any = np.float32, **__: Any) -> DType:
    """The type is a parameter, float32 if left out."""
    found: DType = np.dtype(dtype)
    return found


def define(
    name: str,
    kernel: Callable[..., Any],
    shape: Callable[..., Any] = same_shape,
    dtype: Callable[..., DType] = same_dtype,
    gradient: Callable[..., Sequence[Array | None]] | None = None,
    several: bool = False,
) -> None:
    """Add a row; EngineError if the name is taken."""
    if name in TABLE:
        raise EngineError(f"operator {name!r} is defined twice")
    TABLE[name] = Operator(name, kernel, shape, dtype, gradient, several)


def ufunc(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that applies a NumPy ufunc."""
    return lambda out, *buffers: fn(*buffers, out=out)


def scalar_ufunc(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel `fn(array, scalar)`."""
    return lambda out, a, scalar: fn(a, scalar, out=out)


def reversed_ufunc(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel `fn(scalar, array)`."""
    return lambda out, a, scalar: fn(scalar, a, out=out)
