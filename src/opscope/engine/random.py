"""Random arrays: each has its own generator, so results do not depend on threads."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from . import draws
from .array import Array, apply, to_shape
from .calls import here
from .operators.table import define, given_dtype, given_shape


def _normal(out: Any, shape: Any, loc: float, scale: float, key: Any, dtype: Any) -> Any:
    return draws.generator(key).normal(loc, scale, shape)


def _uniform(out: Any, shape: Any, low: float, high: float, key: Any, dtype: Any) -> Any:
    return draws.generator(key).uniform(low, high, shape)


define("_random_normal", _normal, given_shape, given_dtype)
define("_random_uniform", _uniform, given_shape, given_dtype)


def seed(value: int) -> None:
    """Start over: the calls after it give the same arrays in every run. Not for use in parallel.

    Bodies of custom operators draw from streams of their own, whatever thread runs them. Threads
    that a program starts itself share one stream.
    """
    draws.start(value)


def _push(name: str, shape: Any, dtype: Any, out: Array | None, **params: float) -> Array:
    for key, value in params.items():
        if not isinstance(value, numbers.Real):
            raise TypeError(f"{key} must be a number, not {type(value).__name__}")
    if out is not None:
        shape = out.shape if shape is None else shape
        dtype = out.dtype if dtype is None else dtype
    call = here.call
    return apply(
        name,
        out=out,
        shape=to_shape(1 if shape is None else shape),
        key=(draws.root() if call is None else call.draws).key(),
        dtype=np.float32 if dtype is None else dtype,
        **params,
    )


def normal(
    loc: float = 0, scale: float = 1, shape: Any = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """Normally distributed elements. A negative `scale` fails in execution, at the wait.

    Shape and type are those of `out` if left out, else one element of float32.
    """
    return _push("_random_normal", shape, dtype, out, loc=loc, scale=scale)


def uniform(
    low: float = 0, high: float = 1, shape: Any = None, dtype: Any = None, out: Array | None = None
) -> Array:
    """Uniformly distributed elements, shape and type as for `normal`. Does not block."""
    return _push("_random_uniform", shape, dtype, out, low=low, high=high)
