"""JSON lines: one object a line, strict, in ASCII."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from opscope.analyse import link_records
from opscope.model import Session
from opscope.present.records import LOOK_KEYS, portions, records

_encoded = json.JSONEncoder(allow_nan=False).encode


def as_json(row: Any) -> dict[str, Any]:
    """A row of a report as `report --json` prints it: its keys are `type(row).KEYS`."""
    values = ((key, getattr(row, key)) for key in type(row).KEYS)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values}


def write_rows(rows: Iterable[Any], file: TextIO) -> None:
    """The rows of a report."""
    _write((as_json(row) for row in rows), file)


def write_spans(session: Session, file: TextIO) -> None:
    """Every span, with `analyse.SPAN_KEYS`; times in nanoseconds from the session's start."""

    def among(record: dict[str, Any]) -> str:
        return _encoded({key: record[key] for key in LOOK_KEYS if key != "flags"})[1:-1]

    def flags(record: dict[str, Any]) -> str:
        return _encoded({"flags": record["flags"]})[1:]

    def lane(record: dict[str, Any]) -> str:
        return _encoded(record)[1:-1]

    for rows in portions(records(session), "null", among, flags, lane):
        lines = [
            f'{{"id": {ident}, "owner": {owner}, "parent": {parent}, {look}, {place}, '
            f'"start_ns": {start}, "end_ns": {end}, "submitted_ns": {submitted}, '
            f'"cpu_ns": {cpu}, {last}\n'
            for ident, owner, parent, look, place, start, end, submitted, cpu, last in rows
        ]
        file.write("".join(lines))


def write_links(session: Session, file: TextIO) -> None:
    """Every link, with `analyse.LINK_KEYS`."""
    _write(link_records(session), file)


def _write(rows: Iterable[dict[str, Any]], file: TextIO) -> None:
    for record in rows:
        file.write(_encoded(record) + "\n")
