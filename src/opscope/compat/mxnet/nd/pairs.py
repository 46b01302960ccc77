"""Functions of pairs that MXNet writes over operators: either side may be a number."""

from __future__ import annotations

import operator
from typing import Any


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
