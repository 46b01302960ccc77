"""Data frames: the columns of spans.jsonl, exact numbers, a clear word where a library lacks."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.builders import session, span

import opscope
from opscope.analyse import SPAN_KEYS, span_records
from opscope.errors import UsageError
from opscope.model import Kind, Lane, Phase, Session

BIG = 2**60 + 1  # no float has this value


@pytest.fixture
def made() -> Session:
    lines = [
        span(BIG, "A", Kind.CALL, 1000, 2000, phase=Phase.BACKWARD, cpu_ns=7),
        span(2, "x", Kind.OP, 1500, 2500, owner=BIG, lane="w", submitted_ns=1100),
        span(3, "lone \ud800", Kind.RUNTIME, 1600, 1700),
        span(4, "lone \\ud800", Kind.OP, 3000, 3100),
    ]
    return session(lines, lanes=[Lane("main", thread=2**63), Lane("w")])


def expected(made: Session) -> list[dict[str, Any]]:
    rows = list(span_records(made))
    rows[2]["name"], rows[2]["path"] = "lone \\ud800", ["lone \\ud800"]
    return rows


def test_polars(made: Session) -> None:
    pl = pytest.importorskip("polars")
    frame = opscope.to_polars(made)
    assert frame.columns == list(SPAN_KEYS)
    assert frame.to_dicts() == expected(made)
    assert (frame["owner"].dtype, frame["thread"].dtype) == (pl.Int64, pl.UInt64)
    assert (frame["op"].dtype, frame["flags"].dtype) == (pl.Categorical, pl.List(pl.String))


def test_polars_of_nothing() -> None:
    pl = pytest.importorskip("polars")
    none, some = (
        opscope.to_polars(session(lines)) for lines in ([], [span(1, "x", Kind.OP, 0, 1)])
    )
    assert len(none) == 0
    assert none.schema == some.schema
    assert some["op"].to_list() == [None]
    assert pl.concat([none, some]).height == 1


def test_pandas(made: Session) -> None:
    pd = pytest.importorskip("pandas")
    frame = opscope.to_pandas(made)
    assert list(frame.columns) == list(SPAN_KEYS)
    for row, record in zip(frame.to_dict("records"), expected(made), strict=True):
        for key, value in record.items():
            if value is None:
                assert pd.isna(row[key]), key
            else:
                assert row[key] == (tuple(value) if isinstance(value, list) else value), key
    assert {key: str(frame[key].dtype) for key in ("owner", "thread", "op", "path")} == {
        **{"owner": "Int64", "thread": "UInt64", "op": "category", "path": "object"},
    }


def test_pandas_of_nothing() -> None:
    pytest.importorskip("pandas")
    none, some = (
        opscope.to_pandas(session(lines)) for lines in ([], [span(1, "x", Kind.OP, 0, 1)])
    )
    assert len(none) == 0
    kinds = [str(kind) for kind in some.dtypes]
    assert [str(kind) for kind in none.dtypes] == kinds


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_a_library_that_is_missing(
    made: Session, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=rf"{name} is not installed.*opscope\[{name}\]"):
        getattr(opscope, f"to_{name}")(made)
