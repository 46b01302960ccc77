"""Sums, groups and unions against the plain way to get them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.attribution.cover import Axis
from opscope.attribution.totals import distinct, totals


@pytest.mark.parametrize("large", [1, 2**53, 2**60])
def test_sums_are_exact_however_large(large: int) -> None:
    values = np.array([large, 1, 1, -3])
    assert totals(np.array([1, 1, 0, 3]), values, 5).tolist() == [1, large + 1, 0, -3, 0]


@given(
    st.lists(
        st.tuples(st.integers(-1, 3), st.integers(0, 2), st.sampled_from([0, 5, 10**6, 2**62])),
        max_size=20,
    )
)
@settings(max_examples=300, deadline=None)
def test_distinct_rows_come_sorted_and_every_entry_knows_its_own(
    rows: list[tuple[int, int, int]],
) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    found, which = distinct(table[:, 0].astype(np.int8), table[:, 1], table[:, 2])
    assert list(map(tuple, found.tolist())) == sorted(set(rows))
    assert found[which].tolist() == table.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 25), st.integers(-1, 9)), max_size=12),
)
@settings(max_examples=400, deadline=None)
def test_covered_counts_each_nanosecond_once(
    groups: list[tuple[int, int]], drawn: list[tuple[int, int, int]]
) -> None:
    spans = [(group % len(groups), start, start + length) for group, start, length in drawn]
    moments: list[set[int]] = [set() for _ in groups]
    for group, start, end in spans:
        low, length = groups[group]
        moments[group] |= set(range(start, end)) & set(range(low, low + length))
    low, length = np.array(groups, np.int64).T
    columns = np.array(spans, np.int64).reshape(-1, 3).T
    assert Axis(low, low + length).covered(*columns).tolist() == list(map(len, moments))
