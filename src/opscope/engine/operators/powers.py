"""Powers, remainders, and the pairs that are broadcast under MXNet's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..array import Array, apply
from .elementwise import _float_scalar, _maximum_grad, _minimum_grad, log, unbroadcast
from .maths import floor
from .table import (
    broadcast_shape,
    define,
    float_dtype,
    same_dtype,
    same_shape,
    scalar_dtype,
    ufunc,
)


def _floats(a: Any) -> Any:
    # NumPy refuses negative powers of integers
    return a if getattr(a, "dtype", None) is None or a.dtype.kind == "f" else a.astype(np.float32)


def _power(out: Any, a: Any, b: Any) -> Any:
    return np.power(_floats(a), _floats(b), out=out)


def _mod(a: Any, b: Any) -> Any:
    # As in Python, but 0 where MXNet says so.
    return np.where(np.equal(b, 0), 0, np.mod(a, b))


def _rpower(out: Any, a: Any, scalar: float) -> Any:
    return np.power(float(scalar), _floats(a), out=out)


def _rpower_grad(g: Array, ins: Any, out: Array, scalar: float) -> tuple[Array]:
    slope = math.log(scalar) if scalar > 0 else 0.0 if scalar == 0 else math.nan
    return (g * out * slope,)


def _power_grad(g: Array, ins: Any, out: Array) -> tuple[Array, Array]:
    a, b = ins
    return unbroadcast(g * b * a ** (b - 1), a.shape), unbroadcast(g * out * log(a), b.shape)


def _mod_grad(g: Array, ins: Any, out: Array) -> tuple[Array, Array]:
    a, b = ins
    return unbroadcast(g, a.shape), unbroadcast(-g * floor(a / b), b.shape)


define("_rpower_scalar", _rpower, same_shape, _float_scalar, _rpower_grad)
define(
    "_mod_scalar",
    lambda out, a, scalar: _mod(a, scalar),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (g,),
)
define(
    "_rmod_scalar",
    lambda out, a, scalar: _mod(scalar, a),
    same_shape,
    scalar_dtype,
    lambda g, i, o, scalar: (-g * floor(scalar / i[0]),),
)
define("broadcast_power", _power, broadcast_shape, float_dtype, _power_grad)
define("broadcast_mod", lambda out, a, b: _mod(a, b), broadcast_shape, same_dtype, _mod_grad)
define("broadcast_maximum", ufunc(np.maximum), broadcast_shape, same_dtype, _maximum_grad)
define("broadcast_minimum", ufunc(np.minimum), broadcast_shape, same_dtype, _minimum_grad)


def power(a: Array, b: Array, out: Array | None = None) -> Array:
    """`a` to the power of `b`, broadcast. Does not block."""
    return apply("broadcast_power", a, b, out=out)


def mod(a: Array, b: Array, out: Array | None = None) -> Array:
    """The remainder, with the sign of the divisor; 0 where that is 0. Does not block."""
    return apply("broadcast_mod", a, b, out=out)
