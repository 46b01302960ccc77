"""Random arrays: `mx.random` and `mx.nd.random`."""

from __future__ import annotations

from typing import Any

from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.base import refusals
from opscope.compat.mxnet.context import checked
from opscope.compat.mxnet.nd.array import NDArray, adopt
from opscope.engine import random

__all__ = ["normal", "seed", "uniform"]

__getattr__ = lacks("mx.random", lambda: __all__)


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Start over: the calls after it give the same arrays in every run."""
    random.seed(seed_state)


def uniform(
    low: float = 0,
    high: float = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> NDArray:
    """Uniformly distributed elements; shape and type are those of `out`. Does not block."""
    return _drawn(random.uniform, low, high, shape, dtype, ctx, out)


def normal(
    loc: float = 0,
    scale: float = 1,
    shape: Any = None,
    dtype: Any = None,
    ctx: Any = None,
    out: Any = None,
) -> NDArray:
    """Normally distributed elements; shape and type are those of `out`. Does not block."""
    return _drawn(random.normal, loc, scale, shape, dtype, ctx, out)


def _drawn(draw: Any, a: float, b: float, shape: Any, dtype: Any, ctx: Any, out: Any) -> NDArray:
    checked(ctx)
    with refusals():
        found: NDArray = adopt(draw(a, b, shape, None if dtype == "None" else dtype, out))
    return found
