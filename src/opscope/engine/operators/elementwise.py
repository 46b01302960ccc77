"""Operators that work element by element, with scalars and with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..array import Array, apply, array
from .table import (
    broadcast_shape,
    define,
    float_dtype,
    given_dtype,
    reversed_ufunc,
    same_dtype,
    same_shape,
    scalar_dtype,
    scalar_ufunc,
    ufunc,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Grads = tuple[Array | None, ...]


class Unary(Protocol):
    """A function of one array."""

    def __call__(self, a: Any, out: Array | None = None) -> Array: ...


def unbroadcast(g: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which its input was broadcast."""
    if g.shape == shape:
        return g
    lead = g.ndim - len(shape)
    axes = [axis for axis in range(g.ndim) if axis < lead or shape[axis - lead] != g.shape[axis]]
    return apply("sum", g, axis=tuple(axes), keepdims=True).reshape(shape)


def _float_scalar(dtype: np.dtype[Any], *, scalar: Any) -> np.dtype[Any]:
    return float_dtype(dtype)


def _sigmoid(out: Any, a: Any) -> Any:
    # tanh does not overflow where exp does
    return np.multiply(np.tanh(np.multiply(a, 0.5)) + 1, 0.5, out=out)


def _power(out: Any, a: Any, scalar: Any) -> Any:
    # NumPy refuses negative powers of integers
    return np.power(a if a.dtype.kind == "f" else a.astype(np.float32), scalar, out=out)


def _power_grad(g: Array, ins: Any, out: Array, scalar: Any) -> Grads:
    return (g * ins[0] ** (scalar - 1) * scalar,)


define("_plus_scalar", scalar_ufunc(np.add), same_shape, scalar_dtype, lambda g, i, o, scalar: (g,))
define(
    "_minus_scalar",
    scalar_ufunc(np.subtract),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (g,),
)
define(
    "_rminus_scalar",
    reversed_ufunc(np.subtract),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (-g,),
)
define(
    "_mul_scalar",
    scalar_ufunc(np.multiply),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (g * scalar,),
)
define(
    "_div_scalar",
    scalar_ufunc(np.true_divide),
    same_shape,
    _float_scalar,
    lambda g, i, o, scalar: (g / scalar,),
)
define(
    "_rdiv_scalar",
    reversed_ufunc(np.true_divide),
    same_shape,
    _float_scalar,
    lambda g, i, o, scalar: (-g * o / i[0],),
)
define("_power_scalar", _power, same_shape, _float_scalar, _power_grad)
define(
    "_maximum_scalar",
    scalar_ufunc(np.maximum),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (g * (i[0] >= scalar),),
)
define(
    "_minimum_scalar",
    scalar_ufunc(np.minimum),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (g * (i[0] <= scalar),),
)


def _add_grad(g: Array, ins: Any, out: Array) -> Grads:
    return unbroadcast(g, ins[0].shape), unbroadcast(g, ins[1].shape)


def _sub_grad(g: Array, ins: Any, out: Array) -> Grads:
    return unbroadcast(g, ins[0].shape), unbroadcast(-g, ins[1].shape)


def _mul_grad(g: Array, ins: Any, out: Array) -> Grads:
    a, b = ins
    return unbroadcast(g * b, a.shape), unbroadcast(g * a, b.shape)


def _div_grad(g: Array, ins: Any, out: Array) -> Grads:
    a, b = ins
    share = g / b
    return unbroadcast(share, a.shape), unbroadcast(-share * out, b.shape)


def _maximum_grad(g: Array, ins: Any, out: Array) -> Grads:
    a, b = ins
    return unbroadcast(g * (a >= b), a.shape), unbroadcast(g * (a < b), b.shape)


def _minimum_grad(g: Array, ins: Any, out: Array) -> Grads:
    a, b = ins
    return unbroadcast(g * (a <= b), a.shape), unbroadcast(g * (a > b), b.shape)


def _pair(stem: str, fn: Callable[..., Any], dtype: Any, gradient: Callable[..., Any]) -> None:
    define(f"elemwise_{stem}", ufunc(fn), same_shape, dtype, gradient)
    define(f"broadcast_{stem}", ufunc(fn), broadcast_shape, dtype, gradient)


_pair("add", np.add, same_dtype, _add_grad)
_pair("sub", np.subtract, same_dtype, _sub_grad)
_pair("mul", np.multiply, same_dtype, _mul_grad)
_pair("div", np.true_divide, float_dtype, _div_grad)
define("maximum", ufunc(np.maximum), broadcast_shape, same_dtype, _maximum_grad)
define("minimum", ufunc(np.minimum), broadcast_shape, same_dtype, _minimum_grad)

define("sqrt", ufunc(np.sqrt), same_shape, float_dtype, lambda g, i, o: (g / o * 0.5,))
define("square", ufunc(np.square), gradient=lambda g, i, o: (g * i[0] * 2,))
define("exp", ufunc(np.exp), same_shape, float_dtype, lambda g, i, o: (g * o,))
define("log", ufunc(np.log), same_shape, float_dtype, lambda g, i, o: (g / i[0],))
define("negative", ufunc(np.negative), gradient=lambda g, i, o: (-g,))
define(
    "relu",
    lambda out, a: np.maximum(a, 0, out=out),
    gradient=lambda g, i, o: (g * (o > 0),),
)
define("sigmoid", _sigmoid, same_shape, float_dtype, lambda g, i, o: (g * o * (1 - o),))
define("tanh", ufunc(np.tanh), same_shape, float_dtype, lambda g, i, o: (g * (1 - o * o),))
define(
    "cast",
    lambda out, a, dtype: a.astype(dtype),
    same_shape,
    given_dtype,
    lambda g, i, o, dtype: (g.astype(i[0].dtype),),
)

for _stem, _fn in {
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}.items():
    # Zeros and ones in the type of the inputs, as masks to multiply with.
    define(f"_{_stem}_scalar", lambda out, a, scalar, fn=_fn: fn(a, scalar))
    define(f"broadcast_{_stem}", lambda out, a, b, fn=_fn: fn(a, b), broadcast_shape)
define("logical_not", lambda out, a: np.logical_not(a))


def _unary(name: str) -> Unary:
    def call(a: Any, out: Array | None = None) -> Array:
        return apply(name, a if isinstance(a, Array) else array(a), out=out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The operator {name}, element by element. Does not block."
    return call


sqrt = _unary("sqrt")
square = _unary("square")
exp = _unary("exp")
log = _unary("log")
negative = _unary("negative")
relu = _unary("relu")
sigmoid = _unary("sigmoid")
tanh = _unary("tanh")
logical_not = _unary("logical_not")


def maximum(a: Array | float, b: Array | float, out: Array | None = None) -> Array:
    """The greater of each pair. Does not block."""
    return _symmetric("maximum", a, b, out)


def minimum(a: Array | float, b: Array | float, out: Array | None = None) -> Array:
    """The lesser of each pair. Does not block."""
    return _symmetric("minimum", a, b, out)


def _symmetric(name: str, a: Any, b: Any, out: Array | None) -> Array:
    if isinstance(a, Array) and isinstance(b, Array):
        return apply(name, a, b, out=out)
    if isinstance(b, Array):
        a, b = b, a
    return apply(f"_{name}_scalar", a, out=out, scalar=b)
