"""The table as text and as JSON, in the shape people know from MXNet."""

from __future__ import annotations

import json
from collections.abc import Callable

from opscope.compat.mxnet.profiler.aggregate import Row, Table

_KEYS: dict[str, Callable[[Row], float | None]] = {
    "total": lambda row: row.total,
    "avg": lambda row: row.average,
    "min": lambda row: row.least,
    "max": lambda row: row.most,
    "count": lambda row: row.count,
}
SORTS = tuple(_KEYS)
FORMATS = ("table", "json")


def ordered(table: Table, sort_by: str, ascending: bool) -> Table:
    """Each domain's rows in order, the largest first unless `ascending`; equal ones by name."""
    value = _KEYS[sort_by]

    def place(item: tuple[str, Row]) -> float:
        found = value(item[1])
        return float("-inf") if found is None else found

    return {
        domain: dict(sorted(sorted(rows.items()), key=place, reverse=not ascending))
        for domain, rows in table.items()
    }


def as_json(table: Table) -> str:
    """Time / domain / name / Count, Total, Min, Max, Avg; memory is not measured."""
    time = {
        domain: {
            name: {
                "Count": row.count,
                "Total": row.total,
                "Min": row.least,
                "Max": row.most,
                "Avg": row.average,
            }
            for name, row in rows.items()
        }
        for domain, rows in table.items()
    }
    whole = {"Time": time, "Memory": {}, "Unit": {"Time": "ms", "Memory": "kB"}}
    return json.dumps(whole, indent=4, allow_nan=False)


def as_text(table: Table) -> str:
    """A block for each domain, a line for each name."""
    lines = ["", "Profile Statistics:"]
    titles = ("Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
    for domain, rows in table.items():
        width = max(30, *(len(name) + 2 for name in rows)) if rows else 30
        lines += ["", domain, "=" * 17]
        for words in (("Name", *titles), ("----", *("-" * len(title) for title in titles))):
            lines.append(_line(width, words))
        for name, row in rows.items():
            numbers = (row.total, row.least, row.most, row.average)
            lines.append(_line(width, (name, str(row.count), *map(_number, numbers))))
    return "\n".join([*lines, ""])


def _line(width: int, words: tuple[str, ...]) -> str:
    return f"{words[0]:<{width}}{words[1]:>11}" + "".join(f"{word:>17}" for word in words[2:])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
