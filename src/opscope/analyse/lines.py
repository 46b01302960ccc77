"""Which lines of an operator's own Python cost what? From samples of the thread that ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from opscope.model import Session

#: Of a normal distribution so many standard deviations leave out one in twenty.
_SPREAD = 1.96

#: What tells one line of one operator apart.
_SAME = ("op", "phase", "file", "line", "function")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """One line. `share` is of all that was sampled in the operator's lines in that phase, 0 to 1,
    and right to within `margin` in 19 of 20 cases. `ns` is an estimate, for all calls together."""

    KEYS: ClassVar[tuple[str, ...]] = (
        *("op", "key", "phase", "file", "line", "function", "body_lines"),
        *("share", "margin", "ns", "samples"),
    )

    op: str
    key: str
    phase: str
    file: str
    line: int
    function: str
    body_lines: tuple[int, ...]  #: of the operator's own function, from which it was reached
    share: float
    margin: float
    ns: int
    samples: int
    op_ns: int  #: of all lines of the operator in that phase
    op_samples: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """What a file was when it was recorded: each (size, CRC-32) it had, none if it was not read."""

    path: str
    seen: frozenset[tuple[int, int]]


def lines(session: Session) -> tuple[LineRow, ...]:
    """A row a line: operators and phases by what they cost, their lines likewise."""
    cells: dict[tuple[Any, ...], list[int]] = {}
    bodies: dict[tuple[Any, ...], set[int]] = {}
    for sample in session.samples:
        if not _is_line(sample):
            continue
        key = tuple(sample[word] for word in _SAME)
        cell = cells.setdefault(key, [0, 0])
        cell[0] += int(sample["samples"])
        cell[1] += int(sample["ns"])
        if sample.get("body_line"):
            bodies.setdefault(key, set()).add(int(sample["body_line"]))
    totals: dict[tuple[Any, ...], list[int]] = {}
    for key, (samples, ns) in cells.items():
        total = totals.setdefault(key[:2], [0, 0])
        total[0] += samples
        total[1] += ns
    names = {op.key: op.name for op in session.ops}
    rows = [
        LineRow(
            op=names.get(key[0], key[0]),
            key=key[0],
            phase=key[1],
            file=key[2],
            line=key[3],
            function=key[4],
            body_lines=tuple(sorted(bodies.get(key, ()))),
            share=ns / totals[key[:2]][1] if totals[key[:2]][1] else 0.0,
            margin=_margin(samples, totals[key[:2]][0]),
            ns=ns,
            samples=samples,
            op_ns=totals[key[:2]][1],
            op_samples=totals[key[:2]][0],
        )
        for key, (samples, ns) in cells.items()
    ]
    return tuple(
        sorted(rows, key=lambda row: (-row.op_ns, row.key, row.phase, -row.ns, row.file, row.line))
    )


def source_files(session: Session) -> dict[str, SourceFile]:
    """The files whose lines were sampled, by path."""
    seen: dict[str, set[tuple[int, int]]] = {}
    for sample in session.samples:
        if _is_line(sample):
            seen.setdefault(sample["file"], set())
        elif isinstance(sample.get("source"), str):
            found = seen.setdefault(sample["source"], set())
            found.add((int(sample.get("size", -1)), int(sample.get("crc32", -1))))
    return {path: SourceFile(path, frozenset(found)) for path, found in seen.items()}


def _is_line(sample: Mapping[str, Any]) -> bool:
    return all(word in sample for word in (*_SAME, "samples", "ns"))


def _margin(samples: int, of: int) -> float:
    """Half the interval (Agresti and Coull's) of a share of which so many samples were counted."""
    count = of + 4
    share = (samples + 2) / count
    return _SPREAD * sqrt(share * (1 - share) / count)
