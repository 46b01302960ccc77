"""The spans of a session as a data frame of polars or pandas, whichever is installed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import SPAN_KEYS, span_records
from opscope.errors import UsageError
from opscope.model import Session

#: Columns of whole numbers and of lists of texts; the rest are texts.
_INTS = ("id", "owner", "parent", "process", "start_ns", "end_ns", "submitted_ns", "cpu_ns")
_UNSIGNED = ("thread",)
_LISTS = ("path", "flags")

_PORTION = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """A column of whole numbers, and where there are none."""

    values: NDArray[Any]
    missing: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Coded:
    """A column of texts, or of tuples of texts, each different one once; -1 where there is none."""

    codes: NDArray[np.int64]
    choices: list[Any]


def to_polars(session: Session) -> Any:
    """A `polars.DataFrame` with a row for each span and the columns of `spans.jsonl`.

    Nanoseconds count from the session's start; what is not known is null. Texts are categorical,
    `path` and `flags` are lists. Raises UsageError where polars is not installed.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise _missing("polars") from error
    found = {}
    for key, column in _columns(session).items():
        if isinstance(column, _Numbers):
            values = pl.Series(column.values)
            found[key] = values.set(pl.Series(column.missing), None)
            continue
        listed = key in _LISTS
        kind = pl.List(pl.String) if listed else pl.Categorical
        choices = pl.Series([list(c) if listed else c for c in column.choices], dtype=kind)
        codes = pl.Series(column.codes)
        found[key] = choices.gather(codes.set(codes < 0, None)) if len(choices) else (
            pl.Series([None] * len(codes), dtype=kind)
        )  # fmt: skip
    return pl.DataFrame(found)


def to_pandas(session: Session) -> Any:
    """A `pandas.DataFrame` with a row for each span and the columns of `spans.jsonl`.

    Nanoseconds count from the session's start; what is not known is NA. Numbers are `Int64` (the
    thread `UInt64`), texts are categorical, `path` and `flags` are tuples. Raises UsageError where
    pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise _missing("pandas") from error
    found = {}
    for key, column in _columns(session).items():
        if isinstance(column, _Numbers):
            found[key] = pd.arrays.IntegerArray(column.values, column.missing)
        elif key in _LISTS:
            objects = np.empty(len(column.choices), object)
            objects[:] = column.choices
            found[key] = objects[column.codes]
        else:
            choices = pd.Index(column.choices, dtype=object)
            found[key] = pd.Categorical.from_codes(column.codes, categories=choices)
    return pd.DataFrame(found)


def _missing(name: str) -> UsageError:
    return UsageError(f"{name} is not installed: pip install 'opscope[{name}]'")


def _columns(session: Session) -> dict[str, _Numbers | _Coded]:
    """All columns; the records they come from are made some thousand at a time."""
    records = span_records(session)
    parts: dict[str, list[NDArray[Any]]] = {key: [] for key in SPAN_KEYS}
    holes: dict[str, list[NDArray[np.bool_]]] = {key: [] for key in SPAN_KEYS}
    coded: dict[str, dict[Any, int]] = {key: {None: -1} for key in SPAN_KEYS}
    while rows := list(islice(records, _PORTION)):
        for key in SPAN_KEYS:
            values = [row[key] for row in rows]
            if key in (*_INTS, *_UNSIGNED):
                kind = np.int64 if key in _INTS else np.uint64
                parts[key].append(np.array([value or 0 for value in values], kind))
                holes[key].append(np.array([value is None for value in values], bool))
                continue
            known = coded[key]
            if key in _LISTS:
                values = list(map(tuple, values))
            codes = [known.setdefault(value, len(known) - 1) for value in values]
            parts[key].append(np.array(codes, np.int64))
    found: dict[str, _Numbers | _Coded] = {}
    for key in SPAN_KEYS:
        kind = np.uint64 if key in _UNSIGNED else np.int64
        whole = np.concatenate([np.empty(0, kind), *parts[key]])
        if key in (*_INTS, *_UNSIGNED):
            found[key] = _Numbers(whole, np.concatenate([np.empty(0, bool), *holes[key]]))
        else:
            found[key] = _distinct(whole, list(coded[key])[1:])
    return found


def _distinct(codes: NDArray[np.int64], choices: list[Any]) -> _Coded:
    """Data frames keep texts as UTF-8, so lone surrogates become `\\ud800`, as do those texts that
    looked like it: two choices may turn out to be one."""
    known: dict[Any, int] = {}
    place = [known.setdefault(_clean(choice), len(known)) for choice in choices]
    return _Coded(np.array([*place, -1], np.int64)[codes], list(known))


def _clean(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_clean, value))
    return value.encode("utf-8", "backslashreplace").decode()
