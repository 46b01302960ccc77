"""Mathematical functions, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..array import Array, apply
from .elementwise import Unary, _unary
from .table import define, float_dtype, same_dtype, same_shape, ufunc


def _rsqrt(out: Any, a: Any) -> Any:
    return np.divide(1, np.sqrt(a), out=out)


def _rounded(fn: Callable[..., Any]) -> Callable[..., Any]:
    # NumPy makes floats of integers here, which are round already.
    return lambda out, a: fn(a, out=out) if a.dtype.kind == "f" else a


def _round(a: Any, out: Any = None) -> Any:
    """Halves away from 0, as MXNet."""
    whole = np.trunc(a)
    return np.add(whole, np.copysign(np.abs(a - whole) >= 0.5, a), out=out)


def _rint(a: Any, out: Any = None) -> Any:
    """Halves downwards, as MXNet."""
    below = np.floor(a)
    return np.add(below, a - below > np.ceil(a) - a, out=out)


def _flat(g: Array, ins: Any, out: Array) -> tuple[Array]:
    """The gradient of steps."""
    return (apply("_zeros", shape=g.shape, dtype=g.dtype),)


def _clip(out: Any, a: Any, a_min: float, a_max: float) -> Any:
    return np.minimum(np.maximum(a, a_min), a_max)


def _clip_grad(g: Array, ins: Any, out: Array, a_min: float, a_max: float) -> tuple[Array]:
    return (g * (ins[0] >= a_min) * (ins[0] <= a_max),)


for _name, _kernel, _gradient in (
    ("rsqrt", _rsqrt, lambda g, i, o: (g * o * o * o * -0.5,)),
    ("cbrt", ufunc(np.cbrt), lambda g, i, o: (g / (o * o * 3),)),
    ("reciprocal", lambda out, a: np.divide(1, a, out=out), lambda g, i, o: (-g * o * o,)),
    ("expm1", ufunc(np.expm1), lambda g, i, o: (g * (o + 1),)),
    ("log1p", ufunc(np.log1p), lambda g, i, o: (g / (i[0] + 1),)),
    ("log10", ufunc(np.log10), lambda g, i, o: (g / (i[0] * math.log(10)),)),
    ("log2", ufunc(np.log2), lambda g, i, o: (g / (i[0] * math.log(2)),)),
    ("sin", ufunc(np.sin), lambda g, i, o: (g * cos(i[0]),)),
    ("cos", ufunc(np.cos), lambda g, i, o: (-g * sin(i[0]),)),
    ("tan", ufunc(np.tan), lambda g, i, o: (g * (o * o + 1),)),
    ("sinh", ufunc(np.sinh), lambda g, i, o: (g * cosh(i[0]),)),
    ("cosh", ufunc(np.cosh), lambda g, i, o: (g * sinh(i[0]),)),
    ("arcsin", ufunc(np.arcsin), lambda g, i, o: (g * rsqrt(1 - i[0] * i[0]),)),
    ("arccos", ufunc(np.arccos), lambda g, i, o: (-g * rsqrt(1 - i[0] * i[0]),)),
    ("arctan", ufunc(np.arctan), lambda g, i, o: (g / (i[0] * i[0] + 1),)),
    ("arcsinh", ufunc(np.arcsinh), lambda g, i, o: (g * rsqrt(i[0] * i[0] + 1),)),
    ("arccosh", ufunc(np.arccosh), lambda g, i, o: (g * rsqrt(i[0] * i[0] - 1),)),
    ("arctanh", ufunc(np.arctanh), lambda g, i, o: (g / (1 - i[0] * i[0]),)),
):
    define(_name, _kernel, same_shape, float_dtype, _gradient)

define("abs", ufunc(np.abs), gradient=lambda g, i, o: (g * sign(i[0]),))
define("sign", ufunc(np.sign), gradient=_flat)
define("floor", _rounded(np.floor), gradient=_flat)
define("ceil", _rounded(np.ceil), gradient=_flat)
define("round", _rounded(_round), gradient=_flat)
define("rint", _rounded(_rint), gradient=_flat)
define("fix", _rounded(np.trunc), gradient=_flat)
define("trunc", _rounded(np.trunc), gradient=_flat)
define("clip", _clip, same_shape, same_dtype, _clip_grad)

rsqrt: Unary = _unary("rsqrt")
cbrt: Unary = _unary("cbrt")
reciprocal: Unary = _unary("reciprocal")
expm1: Unary = _unary("expm1")
log1p: Unary = _unary("log1p")
log10: Unary = _unary("log10")
log2: Unary = _unary("log2")
sin: Unary = _unary("sin")
cos: Unary = _unary("cos")
tan: Unary = _unary("tan")
sinh: Unary = _unary("sinh")
cosh: Unary = _unary("cosh")
arcsin: Unary = _unary("arcsin")
arccos: Unary = _unary("arccos")
arctan: Unary = _unary("arctan")
arcsinh: Unary = _unary("arcsinh")
arccosh: Unary = _unary("arccosh")
arctanh: Unary = _unary("arctanh")
abs_: Unary = _unary("abs")
sign: Unary = _unary("sign")
floor: Unary = _unary("floor")
ceil: Unary = _unary("ceil")
round_: Unary = _unary("round")
rint: Unary = _unary("rint")
fix: Unary = _unary("fix")
trunc: Unary = _unary("trunc")


def clip(a: Array, a_min: float, a_max: float, out: Array | None = None) -> Array:
    """Nothing below `a_min` nor above `a_max`. Does not block."""
    return apply("clip", a, out=out, a_min=a_min, a_max=a_max)
