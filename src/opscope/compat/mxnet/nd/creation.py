"""Making arrays, waiting for all of them, and calling custom operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from opscope import engine
from opscope.compat.mxnet.base import MXNetError, outcomes, refusals, refusing
from opscope.compat.mxnet.context import checked
from opscope.compat.mxnet.nd.array import NDArray, adopt
from opscope.engine import Array, EngineError


@refusing
def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """A new array with these elements: float32 unless told, or an array, which keeps its type."""
    checked(ctx)
    if isinstance(source_array, Array):
        dtype = source_array.dtype if dtype is None else dtype
        with outcomes():
            source_array = source_array.asnumpy()
    return _ours(engine.array(source_array, _type(dtype)))


@refusing
def empty(shape: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """An array that nothing has written."""
    checked(ctx)
    return _ours(engine.empty(shape, _type(dtype)))


@refusing
def zeros(shape: Any, ctx: Any = None, dtype: Any = None, out: Any = None) -> NDArray:
    """An array of zeros. Does not block."""
    checked(ctx)
    return _ours(engine.zeros(shape, _type(dtype, out), out))


@refusing
def ones(shape: Any, ctx: Any = None, dtype: Any = None, out: Any = None) -> NDArray:
    """An array of ones. Does not block."""
    checked(ctx)
    return _ours(engine.ones(shape, _type(dtype, out), out))


@refusing
def full(shape: Any, val: Any, ctx: Any = None, dtype: Any = None, out: Any = None) -> NDArray:
    """An array of one value. Does not block."""
    checked(ctx)
    return _ours(engine.full(shape, val, _type(dtype, out), out))


@refusing
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: Any = None,
    ctx: Any = None,
    dtype: Any = None,
) -> NDArray:
    """Evenly spaced values, each `repeat` times. Does not block."""
    checked(ctx)
    return _ours(engine.arange(start, stop, step, _type(dtype), repeat))


@refusing
def eye(N: int, M: int = 0, k: int = 0, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Ones on the `k`-th diagonal, `N` rows and as many columns or `M`. Does not block."""
    checked(ctx)
    return _ours(engine.eye(N, M, k, _type(dtype)))


def concatenate(arrays: Any, axis: int = 0, always_copy: bool = True) -> Any:
    """The arrays one after the other along an axis; one alone comes back unless `always_copy`."""
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    with refusals():
        return adopt(engine.concat(*arrays, dim=axis))


def waitall() -> None:
    """Block until all work has ended. MXNetError for the first failure nobody has heard of."""
    with outcomes():
        engine.waitall()


def Custom(*args: Any, op_type: str, name: str | None = None, **kwargs: Any) -> Any:
    """Call a custom operator. Does not block; MXNetError where its prop raises or refuses."""
    try:
        return adopt(engine.custom(*args, op_type=op_type, **kwargs))
    except (TypeError, MXNetError):
        raise
    except EngineError as error:
        raise MXNetError(str(error)) from error
    except Exception as error:
        raise MXNetError(f"{op_type}: {type(error).__name__}: {error}") from error


def _ours(made: Array) -> NDArray:
    found: NDArray = adopt(made)
    return found


def _type(dtype: Any, out: Any = None) -> Any:
    if dtype is None:
        return np.float32 if out is None else out.dtype
    return dtype
