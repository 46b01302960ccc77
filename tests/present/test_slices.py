"""Grouping of rows that look alike, whatever the numbers in their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.present.slices import distinct

SMALL, HUGE = st.integers(-1, 3), st.sampled_from([-(2**40), 0, 1, 2**40])


@given(st.lists(st.tuples(SMALL, HUGE, HUGE, SMALL), max_size=12))
def test_distinct(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    first, group = distinct(*columns)
    known: dict[Any, int] = {}
    assert group.tolist() == [known.setdefault(row, len(known)) for row in rows]
    assert first.tolist() == [rows.index(row) for row in known]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64])
def test_distinct_of_columns_of_any_width(kind: Any) -> None:
    info = np.iinfo(kind)
    column = np.array([info.max // 2, info.min // 2, info.max // 2], kind)
    assert [part.tolist() for part in distinct(column)] == [[0, 1], [0, 1, 0]]
