"""`mx.test_utils`: comparing arrays, no more."""

from __future__ import annotations

from typing import Any

import numpy as np

from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.context import Context, current_context
from opscope.engine import Array

__all__ = ["almost_equal", "assert_almost_equal", "default_context", "same"]

__getattr__ = lacks("mx.test_utils", lambda: __all__)


def default_context() -> Context:
    """Where tests make their arrays."""
    return current_context()


def same(a: Any, b: Any) -> bool:
    """Whether all elements are equal. Blocks."""
    return bool(np.array_equal(_plain(a), _plain(b)))


def almost_equal(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-20, equal_nan: bool = False
) -> bool:
    """Whether all elements are close. Blocks."""
    return bool(np.allclose(_plain(a), _plain(b), rtol=rtol, atol=atol, equal_nan=equal_nan))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
) -> None:
    """AssertionError unless all elements are close. Blocks."""
    np.testing.assert_allclose(
        _plain(a),
        _plain(b),
        rtol=1e-4 if rtol is None else rtol,
        atol=1e-3 if atol is None else atol,
        equal_nan=equal_nan,
        err_msg=f"{names[0]} and {names[1]} differ",
    )


def _plain(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, Array) else np.asarray(value)
