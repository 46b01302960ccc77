"""Nanoseconds in the unit that suits a whole column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
#: Where many of the values are less than a tenth of a unit, and none is this many of it, the next
#: smaller unit tells more.
_FEW = 10


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


def unit_for(values: Iterable[int | None], *, fine: bool = False) -> Unit:
    """The unit in which the largest of the values has one to three digits before the point, or
    four where many of them would be nearly nothing else. `fine` gives those a digit more where the
    unit must stay."""
    known = sorted(abs(value) for value in values if value)
    largest = known[-1] if known else 0
    middle, low = (known[len(known) // 2], known[(len(known) - 1) // 4]) if known else (0, 0)
    for name, size in _UNITS:
        small = low if name == "s" else middle  # between s and ms there is most to lose
        if largest >= size and not (largest < _FEW * size and small * 10 < size):
            digits = len(str(largest // size))
            least = 2 if fine and low * 10 < size else 1
            return Unit(name, size, 0 if size == 1 else max(3 - digits, least))
    return Unit("ns", 1, 0)


def moment_unit(values: Iterable[int | None]) -> Unit:
    """For moments counted from one start: fine enough to tell one from the next."""
    largest = max((value for value in values if value), default=0)
    if largest >= 10**6:
        return Unit("ms", 10**6, 2)
    return Unit("us", 10**3, 1) if largest >= 10**3 else Unit("ns", 1, 0)


def show_time(value_ns: int) -> str:
    """One time with its unit."""
    unit = unit_for([value_ns])
    return f"{unit.show(value_ns)} {unit.name}"
