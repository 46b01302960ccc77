"""Nanoseconds in the unit that suits a whole column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))


@dataclass(frozen=True, slots=True)
class Unit:
    """`decimals` digits after the point of a value divided by `size_ns`."""

    name: str
    size_ns: int
    decimals: int

    def show(self, value_ns: int | None) -> str:
        """`-` for what is not measured, and `<0.1` rather than a zero that is none."""
        if value_ns is None:
            return "-"
        if value_ns == 0:
            return "0"
        smallest = 10.0**-self.decimals
        value = value_ns / self.size_ns
        if 0 < value < smallest / 2:
            return f"<{smallest:.{self.decimals}f}"
        return f"{value:,.{self.decimals}f}"


def unit_for(values: Iterable[int | None]) -> Unit:
    """The unit in which the largest of the values has one to three digits before the point."""
    largest = max((abs(value) for value in values if value), default=0)
    for name, size in _UNITS:
        if largest >= size:
            digits = len(str(largest // size))
            return Unit(name, size, 0 if size == 1 else max(3 - digits, 1))
    return Unit("ns", 1, 0)


def show_time(value_ns: int) -> str:
    """One time with its unit."""
    unit = unit_for([value_ns])
    return f"{unit.show(value_ns)} {unit.name}"
