"""Random arrays: each call has its own generator, so results do not depend on threads."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from .array import Array, apply, to_shape
from .operators.table import define, given_dtype, given_shape

_stream: tuple[int, count[int]] = (int(np.random.SeedSequence().generate_state(1)[0]), count())


def _normal(out: Any, shape: Any, loc: float, scale: float, key: Any, dtype: Any) -> Any:
    return np.random.default_rng(key).normal(loc, scale, shape)


def _uniform(out: Any, shape: Any, low: float, high: float, key: Any, dtype: Any) -> Any:
    return np.random.default_rng(key).uniform(low, high, shape)


define("_random_normal", _normal, given_shape, given_dtype)
define("_random_uniform", _uniform, given_shape, given_dtype)


def seed(value: int) -> None:
    """Start over: the calls after it give the same arrays in every run. Not for use in parallel."""
    global _stream
    _stream = (int(value), count())


def _key() -> tuple[int, int]:
    start, calls = _stream
    return start, next(calls)


def normal(loc: float = 0, scale: float = 1, shape: Any = 1, dtype: Any = np.float32) -> Array:
    """Normally distributed elements. A negative `scale` fails in execution, at the wait."""
    shape = to_shape(shape)
    return apply("_random_normal", shape=shape, loc=loc, scale=scale, key=_key(), dtype=dtype)


def uniform(low: float = 0, high: float = 1, shape: Any = 1, dtype: Any = np.float32) -> Array:
    """Uniformly distributed elements. Does not block."""
    shape = to_shape(shape)
    return apply("_random_uniform", shape=shape, low=low, high=high, key=_key(), dtype=dtype)
