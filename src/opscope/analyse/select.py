"""Which rows to show, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from opscope.errors import UsageError

Row = TypeVar("Row", bound=Any)


def select(
    rows: Sequence[Row],
    keys: Sequence[str],
    *,
    sort: str | None = None,
    limit: int | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> tuple[Row, ...]:
    """The rows whose operator matches one of `include` (none given: all) and none of `exclude`.

    Sorted by one of `keys`, the `KEYS` of their class: numbers falling, texts rising, what is not
    measured last. Raises UsageError for another key, and for globs where the rows have no operator.
    """
    if (include or exclude) and "op" not in keys:
        raise UsageError("operators can only be chosen by name where rows are about operators")
    chosen = list(rows)
    if include or exclude:
        chosen = [row for row in rows if _wanted(row.op, include, exclude)]
    if sort is not None:
        if sort not in keys:
            raise UsageError(f"cannot sort by {sort!r}: choose one of {', '.join(keys)}")
        chosen.sort(key=lambda row: _rank(getattr(row, sort)))
    if limit is not None:
        chosen = chosen[: max(limit, 0)]
    return tuple(chosen)


def _wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    if include and not any(fnmatchcase(name, glob) for glob in include):
        return False
    return not any(fnmatchcase(name, glob) for glob in exclude)


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return (1, 0)
    return (0, -value if isinstance(value, int) else value)
