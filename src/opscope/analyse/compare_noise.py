"""How far two means over runs may lie apart by chance: Student's and Welch's interval.

Student (Biometrika 6, 1908) where both sides have as many runs: equal runs spread equally, and for
equal numbers it bears unequal spread well. Else Welch (Biometrika 34, 1947), with the degrees of
freedom of Satterthwaite (Biometrics Bulletin 2, 1946). The t distribution is worked out from the
incomplete beta function (Abramowitz and Stegun, 26.7.1 and the continued fraction 26.5.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: The continued fraction and the search for a quantile end at this relative step.
_CLOSE = 1e-14
_STEPS = 10_000


def interval(
    base: Sequence[float], new: Sequence[float], error: float
) -> tuple[float, float, float]:
    """The difference of the means (new minus base), and the ends of its interval.

    The true difference is outside with probability `error`. Each side needs at least two values.
    """
    apart = _mean(new) - _mean(base)
    of_base, of_new = _square_error(base), _square_error(new)
    both = of_base + of_new
    if both <= 0.0:
        return apart, apart, apart
    freedom = float(len(base) + len(new) - 2)
    if len(base) != len(new):
        freedom = both**2 / (of_base**2 / (len(base) - 1) + of_new**2 / (len(new) - 1))
    reach = t_quantile(1 - error / 2, freedom) * math.sqrt(both)
    return apart, apart - reach, apart + reach


def t_quantile(probability: float, freedom: float) -> float:
    """The value that a t variable stays below with that probability, from 0.5 up to 1."""
    if not 0.5 <= probability < 1.0 or freedom <= 0.0:
        raise ValueError("a probability from 0.5 up to 1 and positive degrees of freedom")
    tail = 1.0 - probability
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > tail:
        low, high = high, high * 2.0
    while high - low > _CLOSE * high:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if t_tail(middle, freedom) > tail else (low, middle)
    return (low + high) / 2.0


def t_tail(t: float, freedom: float) -> float:
    """The probability that a t variable is larger than `t`, which is not negative."""
    return _beta_share(freedom / (freedom + t * t), freedom / 2.0, 0.5) / 2.0


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function I_x(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):  # where the fraction converges fast
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 26.5.8, from numerators and denominators of its approximants."""
    above, above_next = 0.0, 1.0
    below, below_next = 1.0, 1.0
    value = 1.0
    for step in range(1, _STEPS):
        half, odd = divmod(step, 2)
        if odd:
            factor = -(a + half) * (a + b + half) * x / ((a + step - 1) * (a + step))
        else:
            factor = half * (b - half) * x / ((a + step - 1) * (a + step))
        above, above_next = above_next, above_next + factor * above
        below, below_next = below_next, below_next + factor * below
        # Only the ratio counts: scaled, they neither overflow nor vanish.
        above, above_next, below = above / below_next, above_next / below_next, below / below_next
        below_next = 1.0
        if abs(above_next - value) <= _CLOSE * abs(above_next):
            return above_next
        value = above_next
    return value


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _square_error(values: Sequence[float]) -> float:
    """The variance of the mean of the values."""
    middle = _mean(values)
    return math.fsum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values)
