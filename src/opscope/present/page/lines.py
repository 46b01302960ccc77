"""Hot lines as data: for each operator and phase its functions, their lines and the source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from opscope.analyse import LineRow, lines
from opscope.model import Session
from opscope.present.sources import Source, sources

#: Of one operator and phase so many lines are listed, the costliest.
LINES = 40
#: Between two lines so many that were not sampled are shown rather than left out.
GAP = 2
#: A longer line of source is cut: it is no longer for people.
LONGEST = 400

Row = dict[str, Any]


def hot_lines(session: Session) -> list[Row]:
    """One entry for each operator (`key`) and `phase` of which lines were sampled.

    `functions` are [function, file, why there is no source, lines]; a line is [number, source or
    null, share, margin, ns], or with nulls behind the source where it was not sampled.
    """
    rows = lines(session)
    if not rows:
        return []
    known = sources(session)
    return [
        _entry(list(group), known) for _, group in groupby(rows, lambda row: (row.key, row.phase))
    ]


def _entry(rows: Sequence[LineRow], known: dict[str, Source]) -> Row:
    functions: dict[tuple[str, str], list[LineRow]] = {}
    for row in rows[:LINES]:
        functions.setdefault((row.file, row.function), []).append(row)
    first = rows[0]
    return {
        "key": first.key,
        "phase": first.phase,
        "ns": first.op_ns,
        "samples": first.op_samples,
        "left_out": max(len(rows) - LINES, 0),
        "functions": [
            [function, file, known[file].why, _lines(found, known[file])]
            for (file, function), found in functions.items()
        ],
    }


def _lines(rows: Sequence[LineRow], source: Source) -> list[list[Any]]:
    found: list[list[Any]] = []
    before = 0
    for row in sorted(rows, key=lambda row: row.line):
        between = range(before + 1, row.line) if before else range(0)
        if source.lines and 0 < len(between) <= GAP:
            found += [[line, _text(source, line), None, None, None] for line in between]
        text = _text(source, row.line)
        found.append([row.line, text, round(row.share, 5), round(row.margin, 5), row.ns])
        before = row.line
    return found


def _text(source: Source, line: int) -> str | None:
    text = source.text(line)
    return None if text is None else text.expandtabs(4)[:LONGEST]
