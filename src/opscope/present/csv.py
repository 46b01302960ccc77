"""Spans as comma-separated values: a header with `analyse.SPAN_KEYS`, then one row a span.

In texts, backslashes, control characters and lone surrogates are written as JSON writes them, so
that putting a text between quotes after doubling nothing but quotes and parsing it as JSON gives
the name back. `path` and `flags` are JSON lists. An empty cell is what is not known.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from opscope.analyse import SPAN_KEYS
from opscope.model import Session
from opscope.present.records import LANE_KEYS, LOOK_KEYS, portions, records

_BEFORE = tuple(key for key in LOOK_KEYS if key != "flags")
_UNSAFE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def write_csv(session: Session, file: TextIO) -> None:
    """Write to a text file opened for UTF-8 with newline="". Nanoseconds from the start."""
    file.write(_row(SPAN_KEYS) + "\n")
    texts = (_cells(_BEFORE), _cells(("flags",)), _cells(LANE_KEYS))
    for rows in portions(records(session), "", *texts):
        lines = [
            f"{ident},{owner},{parent},{look},{place},{start},{end},{submitted},{cpu},{flags}\n"
            for ident, owner, parent, look, place, start, end, submitted, cpu, flags in rows
        ]
        file.write("".join(lines))


def _cells(keys: tuple[str, ...]) -> Callable[[dict[str, Any]], str]:
    return lambda record: _row([cell(record[key]) for key in keys])


def _row(cells: Iterable[Any]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(cells)
    return file.getvalue()


def cell(value: Any) -> Any:
    """One value as it stands in a cell."""
    if isinstance(value, str):
        return _UNSAFE.sub(_escape, value)
    return json.dumps(value) if isinstance(value, tuple) else value


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return f"\\u{ord(char):04x}" if char != "\\" else "\\\\"
