"""Histograms and slowest calls, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import session, span

from opscope.analyse import summary
from opscope.analyse.spread import BINS, SlowCall, call_spreads, histogram
from opscope.model import Flag, Kind


@given(st.lists(st.integers(0, 10**13), max_size=60))
def test_every_value_is_in_the_bin_of_its_edges(values: list[int]) -> None:
    edges, counts = histogram(np.sort(np.array(values, np.int64)))
    if not values:
        assert (edges, counts) == ((), ())
        return
    assert len(edges) == len(counts) + 1
    assert list(edges) == sorted(set(edges))
    assert 1 <= len(counts) <= BINS
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        assert count == sum(low <= max(value, 1) < high for value in values)
    assert sum(counts) == len(values)
    assert counts[0]
    assert counts[-1]


@pytest.mark.parametrize("value", [0, 1, 2, 9, 10, 99_999, 100_000, 10**12])
def test_one_value_is_one_bin(value: int) -> None:
    edges, counts = histogram(np.array([value, value], np.int64))
    assert counts == (2,)
    assert edges[0] <= max(value, 1) < edges[1]


def test_bins_are_finer_where_values_lie_close() -> None:
    near, _ = histogram(np.array([1000, 1900], np.int64))
    far, _ = histogram(np.array([10, 10**9], np.int64))
    assert near[1] / near[0] < far[1] / far[0]


def test_the_slowest_calls_of_each_path_the_slowest_first() -> None:
    walls = [50, 70, 70, 10, 20, 30, 40]
    lines = [
        span(n + 1, "A", Kind.CALL, 1000 * n + 5, 1000 * n + 5 + wall)
        for n, wall in enumerate(walls)
    ]
    lines.append(span(8, "A", Kind.CALL, 7005, 9000, flags=Flag.INCOMPLETE))
    lines.append(span(9, "B", Kind.CALL, 9100, 9200, flags=Flag.INCOMPLETE))
    made = session(lines)
    rows = {row.op: row.node for row in summary(made)}
    found = call_spreads(made, slowest=3)
    assert found[rows["A"]].slowest == (
        SlowCall(2, 1000, 70, "main"),
        SlowCall(3, 2000, 70, "main"),
        SlowCall(1, 0, 50, "main"),
    )
    assert sum(found[rows["A"]].counts) == len(walls)
    assert found[rows["B"]] == type(found[0])()


def test_a_session_of_nothing_has_none() -> None:
    assert call_spreads(session([])) == ()
