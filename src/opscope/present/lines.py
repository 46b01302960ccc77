"""JSON lines: one object a line, strict, in ASCII."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from opscope.analyse import link_records, span_records
from opscope.model import Session


def as_json(row: Any) -> dict[str, Any]:
    """A row of a report as `report --json` prints it: its keys are `type(row).KEYS`."""
    values = ((key, getattr(row, key)) for key in type(row).KEYS)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values}


def write_rows(rows: Iterable[Any], file: TextIO) -> None:
    """The rows of a report."""
    _write((as_json(row) for row in rows), file)


def write_spans(session: Session, file: TextIO) -> None:
    """Every span, with `analyse.SPAN_KEYS`; times in nanoseconds from the session's start."""
    _write(span_records(session), file)


def write_links(session: Session, file: TextIO) -> None:
    """Every link, with `analyse.LINK_KEYS`."""
    _write(link_records(session), file)


def _write(records: Iterable[dict[str, Any]], file: TextIO) -> None:
    encode = json.JSONEncoder(allow_nan=False).encode
    for record in records:
        file.write(encode(record) + "\n")
