"""Calls that were open when the file ended: incomplete, up to the last moment the file knows of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opscope.model import SPAN, Flag, Kind, Session
from opscope.store import MemorySink


def row(id: int, start_ns: int, end_ns: int = 0, flags: int = 0, cpu_ns: int = -1) -> list[int]:
    return [id, 0, 0, int(Kind.CALL), 0, flags, 0, 0, start_ns, end_ns, 0, cpu_ns]


def spans(*rows: list[int]) -> tuple[str, bytes]:
    return "spans", np.array([tuple(row) for row in rows], SPAN).tobytes()


def session(*facts: tuple[str, Any]) -> Session:
    sink = MemorySink()
    process = {"pid": 1, "command": [], "machine": "", "versions": {}, "start_ns": 100}
    for word, data in (("process", process), ("names", [0, ["f"]]), *facts):
        sink.put(word, data)
    return sink.session()


def told(session: Session) -> list[tuple[int, int, int, int, int]]:
    words = ["id", "start_ns", "end_ns", "flags", "cpu_ns"]
    return [tuple(map(int, row)) for row in session.spans[words].tolist()]


INCOMPLETE = int(Flag.INCOMPLETE)


@pytest.mark.parametrize(
    ("facts", "last"),
    [
        ([], 300),  # its own begin
        ([("anchor", [900, 5])], 900),
        ([spans(row(5, 200, 800))], 800),
        ([("open", [row(6, 700)])], 700),
        ([("pauses", [[600, 650]])], 650),
        ([("drops", [[600, 660, 1]])], 660),
        ([("anchor", [900, 5]), ("anchor", [950, 6]), spans(row(5, 200, 960))], 960),
        ([("anchor", [900, 5]), ("end", {"end_ns": 1000})], 1000),
        ([("anchor", [900, 5]), ("end", {"end_ns": 0})], 300),  # never before its begin
    ],
)
def test_it_ends_at_the_last_moment_known(facts: Sequence[Any], last: int) -> None:
    found = session(("open", [row(3, 300, cpu_ns=7)]), *facts)
    assert (3, 300, last, INCOMPLETE, -1) in told(found)


def test_a_later_end_wins() -> None:
    found = session(
        ("open", [row(3, 300)]), ("anchor", [500, 1]), spans(row(3, 300, 400, cpu_ns=9))
    )
    assert told(found) == [(3, 300, 400, 0, 9)]


def test_an_end_wins_wherever_it_stands() -> None:
    found = session(spans(row(3, 300, 400)), ("open", [row(3, 300)]), ("anchor", [500, 1]))
    assert told(found) == [(3, 300, 400, 0, -1)]


def test_the_last_word_about_an_open_call_counts() -> None:
    found = session(
        ("open", [row(3, 300), row(4, 310)]),
        ("open", [row(3, 300, flags=int(Flag.CROSSED))]),
        ("anchor", [500, 1]),
    )
    assert sorted(told(found)) == [
        (3, 300, 500, INCOMPLETE | int(Flag.CROSSED), -1),
        (4, 310, 500, INCOMPLETE, -1),
    ]


def test_a_process_without_an_end_is_not_complete() -> None:
    found = session(("anchor", [500, 1]))
    assert not found.processes[0].complete
    assert found.processes[0].end_ns == 500
    assert found.processes[0].damage == ""


def test_an_end_at_zero_is_an_end() -> None:
    assert session(("end", {"end_ns": 0})).processes[0].complete
