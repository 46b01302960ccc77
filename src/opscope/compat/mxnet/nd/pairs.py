"""Functions of pairs that MXNet writes over operators: either side may be a number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from opscope.compat.mxnet.nd import functions
from opscope.engine import Array


def add(lhs: Any, rhs: Any) -> Any:
    """Sum, element by element, with broadcasting."""
    return operator.add(lhs, rhs)


def subtract(lhs: Any, rhs: Any) -> Any:
    """Difference."""
    return operator.sub(lhs, rhs)


def multiply(lhs: Any, rhs: Any) -> Any:
    """Product."""
    return operator.mul(lhs, rhs)


def divide(lhs: Any, rhs: Any) -> Any:
    """Quotient."""
    return operator.truediv(lhs, rhs)


true_divide = divide


def modulo(lhs: Any, rhs: Any) -> Any:
    """Remainder, with the sign of the divisor."""
    return operator.mod(lhs, rhs)


def power(base: Any, exp: Any) -> Any:
    """Power."""
    return operator.pow(base, exp)


def equal(lhs: Any, rhs: Any) -> Any:
    """1 where equal, else 0; so below."""
    return lhs == rhs


def not_equal(lhs: Any, rhs: Any) -> Any:
    """1 where not equal."""
    return lhs != rhs


def greater(lhs: Any, rhs: Any) -> Any:
    """1 where greater."""
    return lhs > rhs


def greater_equal(lhs: Any, rhs: Any) -> Any:
    """1 where greater or equal."""
    return lhs >= rhs


def lesser(lhs: Any, rhs: Any) -> Any:
    """1 where less."""
    return lhs < rhs


def lesser_equal(lhs: Any, rhs: Any) -> Any:
    """1 where less or equal."""
    return lhs <= rhs


def maximum(lhs: Any, rhs: Any) -> Any:
    """The greater of each pair."""
    return _pair("maximum", lhs, rhs, max)


def minimum(lhs: Any, rhs: Any) -> Any:
    """The lesser of each pair."""
    return _pair("minimum", lhs, rhs, min)


def logical_and(lhs: Any, rhs: Any) -> Any:
    """1 where both are other than 0; so below."""
    return _pair("logical_and", lhs, rhs, lambda a, b: bool(a and b))


def logical_or(lhs: Any, rhs: Any) -> Any:
    """1 where one is other than 0."""
    return _pair("logical_or", lhs, rhs, lambda a, b: bool(a or b))


def logical_xor(lhs: Any, rhs: Any) -> Any:
    """1 where only one is other than 0."""
    return _pair("logical_xor", lhs, rhs, lambda a, b: bool(a) != bool(b))


def _pair(name: str, lhs: Any, rhs: Any, numbers: Callable[[Any, Any], Any]) -> Any:
    """An operator that does not mind which side is which, of arrays or an array and a number."""
    if not isinstance(lhs, Array):
        if not isinstance(rhs, Array):
            return numbers(lhs, rhs)
        lhs, rhs = rhs, lhs
    pair = isinstance(rhs, Array)
    found = functions.find(f"broadcast_{name}" if pair else f"_{name}_scalar")
    assert found is not None
    return found(lhs, rhs)
