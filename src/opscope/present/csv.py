"""Spans as comma-separated values: a header with `analyse.SPAN_KEYS`, then one row a span.

In texts, backslashes, control characters and lone surrogates are written as JSON writes them, so
that putting a text between quotes after doubling nothing but quotes and parsing it as JSON gives
the name back. `path` and `flags` are JSON lists. An empty cell is what is not known.
"""

from __future__ import annotations

import csv
import json
import re
from typing import Any, TextIO

from opscope.analyse import SPAN_KEYS, span_records
from opscope.model import Session

_UNSAFE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def write_csv(session: Session, file: TextIO) -> None:
    """Write to a text file opened for UTF-8 with newline="". Nanoseconds from the start."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(SPAN_KEYS)
    for record in span_records(session):
        writer.writerow([cell(record[key]) for key in SPAN_KEYS])


def cell(value: Any) -> Any:
    """One value as it stands in a cell."""
    if isinstance(value, str):
        return _UNSAFE.sub(_escape, value)
    return json.dumps(value) if isinstance(value, list) else value


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return f"\\u{ord(char):04x}" if char != "\\" else "\\\\"
