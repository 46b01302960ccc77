"""The spans of a session as a data frame of polars or pandas, whichever is installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import SPAN_KEYS
from opscope.errors import UsageError
from opscope.model import Session
from opscope.present.records import LANE_KEYS, LOOK_KEYS, records

#: Columns of whole numbers that differ by lane only, and columns of lists of texts.
_WHOLE = {"process": np.int64, "thread": np.uint64}
_LISTS = ("path", "flags")


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
    found: dict[str, Any] = {}
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
    """All columns, in the order of `SPAN_KEYS`."""
    found = records(session)
    sources = {
        **{key: (found.look, found.looks) for key in LOOK_KEYS},
        **{key: (found.lane, found.lanes) for key in LANE_KEYS},
    }
    made: dict[str, _Numbers | _Coded] = {}
    for key in SPAN_KEYS:
        if key in found.numbers:
            values: NDArray[Any] = np.array(found.numbers[key])
            missing = found.missing.get(key)
            missing = np.zeros(len(values), bool) if missing is None else missing
        else:
            which, every = sources[key]
            listed = [record[key] for record in every]
            if key not in _WHOLE:
                made[key] = _coded(listed, which)
                continue
            values = np.array([value or 0 for value in listed], _WHOLE[key])[which]
            missing = np.array([value is None for value in listed], bool)[which]
        values[missing] = 0
        made[key] = _Numbers(values, missing)
    return made


def _coded(values: list[Any], which: NDArray[Any]) -> _Coded:
    """Data frames keep texts as UTF-8, so lone surrogates become `\\ud800`, as do those texts that
    looked like it: two values may turn out to be one."""
    known: dict[Any, int] = {}
    place = [
        -1 if value is None else known.setdefault(_clean(value), len(known)) for value in values
    ]
    return _Coded(np.array(place, np.int64)[which], list(known))


def _clean(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_clean, value))
    return value.encode("utf-8", "backslashreplace").decode()
