"""The t quantile against printed tables, and the intervals of Student and Welch."""

from __future__ import annotations

import math

import pytest

from opscope.analyse.compare_noise import interval, t_quantile, t_tail

#: (probability, degrees of freedom, value), as tables of the t distribution print them.
TABLE = [
    (0.90, 1, 3.077684),
    (0.95, 1, 6.313752),
    (0.975, 1, 12.706205),
    (0.995, 1, 63.656741),
    (0.9995, 1, 636.619249),
    (0.975, 2, 4.302653),
    (0.995, 3, 5.840909),
    (0.975, 4, 2.776445),
    (0.995, 4, 4.604095),
    (0.9995, 4, 8.610302),
    (0.90, 5, 1.475884),
    (0.975, 8, 2.306004),
    (0.995, 8, 3.355387),
    (0.9995, 8, 5.041305),
    (0.99, 10, 2.763769),
    (0.975, 30, 2.042272),
    (0.975, 120, 1.979930),
    (0.975, 1000, 1.962339),
]


@pytest.mark.parametrize(("probability", "freedom", "value"), TABLE)
def test_quantiles_are_those_of_the_tables(
    probability: float, freedom: float, value: float
) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=6e-7)


@pytest.mark.parametrize("freedom", [1.0, 1.7, 4.0, 4.5, 7.93, 60.0, 1e5])
@pytest.mark.parametrize("probability", [0.6, 0.975, 0.9999, 1 - 1e-9])
def test_the_tail_undoes_the_quantile(freedom: float, probability: float) -> None:
    tail = t_tail(t_quantile(probability, freedom), freedom)
    assert tail == pytest.approx(1 - probability, rel=1e-6)


def test_one_degree_of_freedom_is_the_cauchy_distribution() -> None:
    for t in (0.1, 1.0, 3.0, 50.0):
        assert t_tail(t, 1.0) == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-10)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    for t in (0.5, 2.0, 4.0):
        assert t_tail(t, 1e8) == pytest.approx(math.erfc(t / math.sqrt(2)) / 2, rel=1e-6)


def test_quantiles_lie_in_order_and_the_middle_is_0() -> None:
    assert t_quantile(0.5, 4) == pytest.approx(0.0, abs=1e-9)
    values = [t_quantile(p, 4.4) for p in (0.6, 0.9, 0.99, 0.999, 0.999999)]
    assert values == sorted(values)


@pytest.mark.parametrize(("probability", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0), (0.9, -1)])
def test_there_is_no_such_quantile(probability: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        t_quantile(probability, freedom)


def test_equal_spread_gives_students_interval() -> None:
    base, new = [1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0]
    apart, low, high = interval(base, new, 0.05)
    # variance 2.5 on both sides: the error of the difference is 1, with 8 degrees of freedom
    assert apart == 10
    assert (low, high) == pytest.approx((10 - 2.306004, 10 + 2.306004), abs=1e-6)


def test_sides_of_equal_size_share_their_degrees_of_freedom() -> None:
    apart, low, high = interval([7.0] * 5, [11.0, 12.0, 13.0, 14.0, 15.0], 0.05)
    reach = 2.306004 * math.sqrt(0.5)
    assert (apart, low, high) == pytest.approx((6, 6 - reach, 6 + reach), abs=1e-6)


def test_sides_of_unequal_size_get_welchs_interval() -> None:
    base = [1.0, 2.0, 3.0, 4.0, 5.0]
    new = [9.0, 11.0, 12.0, 13.0, 14.0, 15.0, 17.0]
    spread = sum((v - 13) ** 2 for v in new) / 6 / 7
    freedom = (0.5 + spread) ** 2 / (0.25 / 4 + spread**2 / 6)
    apart, low, high = interval(base, new, 0.01)
    reach = t_quantile(0.995, freedom) * math.sqrt(0.5 + spread)
    assert (apart, low, high) == pytest.approx((10, 10 - reach, 10 + reach), abs=1e-9)
    assert 6 < freedom < 10


def test_one_side_without_spread_leaves_the_degrees_of_freedom_of_the_other() -> None:
    apart, low, high = interval([7.0] * 9, [11.0, 12.0, 13.0, 14.0, 15.0], 0.05)
    reach = 2.776445 * math.sqrt(0.5)
    assert (apart, low, high) == pytest.approx((6, 6 - reach, 6 + reach), abs=1e-6)


def test_no_spread_at_all_leaves_the_difference() -> None:
    assert interval([3.0, 3.0], [5.0, 5.0], 0.01) == (2.0, 2.0, 2.0)
