"""Own overhead: what it adds up to, and parts without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.attribution.scripted import Act, Run, scripts
from tests.builders import Line, op, session, span

from opscope import store
from opscope.analyse import calls, corrected, notes, overhead, summary
from opscope.analyse.redact import redacted
from opscope.analyse.rows import PART_KEYS
from opscope.model import Flag, Kind, Lane, Process, Session, Sight

COSTS = {
    "call": (10, 100), "op": (3, 30), "task": (5, 50), "wait": (2, 20), "dispatch": (1, 11),
    "runtime": (4, 7), "range": (6, 13), "push": (0, 40), "handover": (0, 60), "write": (0, 9),
}  # fmt: skip


def recorded(lines: list[Line], costs: Any = COSTS, **more: Any) -> Session:
    process = Process(pid=1, complete=True, start_ns=1, end_ns=100_001, costs=costs)
    return session(lines, processes=(process,), **more)


def parts(made: Session, name: str) -> dict[str, int]:
    (row,) = [row for row in calls(corrected(made)) if row.op == name]
    return {key[:-3]: value for key in PART_KEYS if (value := getattr(row, key))}


def test_of_a_lone_call_only_its_inside_is_taken() -> None:
    made = recorded([span(1, "A", Kind.CALL, 0, 1000)])
    assert parts(made, "A") == {"wall": 990, "python": 990}


def test_a_call_in_a_call_is_taken_from_both() -> None:
    made = recorded(
        [span(1, "A", Kind.CALL, 0, 10_000), span(2, "B", Kind.CALL, 1000, 3000, owner=1)]
    )
    assert parts(made, "B") == {"wall": 1990, "python": 1990}
    # Its own inside, the outside of B; and what B was longer.
    assert parts(made, "A") == {"wall": 9880, "python": 8000 - 10 - 100, "sub": 1990}


def test_what_runs_while_a_sub_operator_is_suspended_is_not_taken_from_that() -> None:
    made = recorded(
        [
            span(1, "A", Kind.CALL, 0, 10_000),
            span(2, "G", Kind.CALL, 1000, 9000, owner=1),
            span(3, "suspended", Kind.WAIT, 2000, 8000, owner=2, flags=Flag.SUSPENDED),
            span(4, "B", Kind.CALL, 3000, 5000, owner=1),
            span(5, "collect", Kind.RUNTIME, 6000, 7000),
        ]
    )
    assert parts(made, "B") == {"wall": 1990, "python": 1990}
    wait = 6000 - 2
    assert parts(made, "G") == {"wall": 1970 + wait, "python": 2000 - 10 - 20, "wait": wait}
    assert parts(made, "A") == {
        "wall": 10_000 - 10 - (10 + 100) * 2 - (2 + 20) - (4 + 7),
        "python": 5000 - 10 - 100 - 100 - 7,
        "sub": 1990 + 1990 - (2 + 20),
        "runtime": 1000 - 4,
    }


def test_all_there_is_in_a_sub_operator_is_taken_from_it() -> None:
    made = recorded(
        [
            span(1, "A", Kind.CALL, 0, 10_000),
            span(2, "B", Kind.CALL, 1000, 5000, owner=1),
            span(3, "mul", Kind.OP, 2000, 3000, owner=2),
            span(4, "sleep", Kind.WAIT, 3500, 4000, owner=2),
        ]
    )
    inside_b = 10 + (3 + 30) + (2 + 20)
    assert parts(made, "A") == {
        "wall": 10_000 - 10 - 100 - inside_b,
        "python": 6000 - 10 - 100,
        "sub": 4000 - inside_b,
    }
    assert parts(made, "B") == {
        "wall": 4000 - inside_b, "python": 2500 - 10 - 30 - 20, "sub": 997, "wait": 498,
    }  # fmt: skip


def test_chores_dispatch_and_annotations() -> None:
    made = recorded(
        [
            span(1, "A", Kind.CALL, 0, 10_000),
            span(2, "dispatch", Kind.DISPATCH, 0, 500, owner=1),
            span(3, "gc", Kind.RUNTIME, 600, 700),
            span(4, "note", Kind.RANGE, 1000, 9000),
            span(5, "mul", Kind.OP, 2000, 3000, owner=1),
        ]
    )
    own = 10 + 11 + 7 + (6 + 13) + 30
    assert parts(made, "A") == {
        "wall": 10_000 - own - 1 - 4 - 3,
        "python": 8400 - own,
        "sub": 997,
        "dispatch": 499,
        "runtime": 96,
    }


def test_handing_over_is_taken_from_whoever_did() -> None:
    made = recorded(
        [
            span(1, "A", Kind.CALL, 0, 10_000),
            span(2, "mul", Kind.OP, 2000, 3000, owner=1, lane="w", submitted_ns=1500,
                 submitted_lane="main"),
            span(3, "f", Kind.TASK, 2000, 3000, owner=1, lane="t", submitted_ns=1500,
                 submitted_lane="main"),
            span(4, "add", Kind.OP, 2000, 3000, owner=1, lane="w", submitted_ns=1500,
                 submitted_lane="t"),
        ]
    )  # fmt: skip
    assert parts(made, "A") == {"wall": 9890, "python": 10_000 - 10 - 40 - 60}


def test_what_a_framework_recorded_cost_us_nothing() -> None:
    made = recorded(
        [
            span(1, "A", Kind.CALL, 0, 10_000),
            span(2, "mul", Kind.OP, 2000, 3000, owner=1, flags=Flag.INFERRED),
            span(3, "kernel", Kind.DEVICE, 2000, 3000, owner=1, lane="gpu"),
        ]
    )
    assert parts(made, "A") == {"wall": 9990, "python": 8990, "sub": 1000}
    found = overhead(made)
    assert found is not None
    assert found.events == 1


def test_own_time_of_other_kinds_gives_way_too_and_nothing_falls_below_nothing() -> None:
    native = op("N", native=True)
    made = recorded([span(1, native, Kind.CALL, 0, 1000)])
    assert parts(made, "N") == {"wall": 990, "native": 990}
    blind = [Sight("python", sees=("calls",))]
    made = recorded([span(1, "A", Kind.CALL, 0, 1000)], sight=blind)
    assert parts(made, "A") == {"wall": 990, "untracked": 990}
    short = recorded([span(1, "A", Kind.CALL, 0, 50), span(2, "B", Kind.CALL, 10, 15, owner=1)])
    assert parts(short, "A") == {}
    assert [row.wall_ns for row in calls(corrected(short))] == [0, 0]


def test_without_costs_nothing_changes() -> None:
    made = recorded([span(1, "A", Kind.CALL, 0, 1000)], costs={})
    assert overhead(made) is None
    assert summary(corrected(made)) == summary(made)
    assert not [note for note in notes(made) if note.topic == "own overhead"]


def test_it_is_told_with_every_table() -> None:
    made = recorded(
        [span(1, "A", Kind.CALL, 0, 1000), span(2, "sleep", Kind.WAIT, 10, 20, owner=1)],
        pauses=[(0, 500, 1501)],
    )
    found = overhead(made)
    assert found is not None
    total = (10 + 100) + (2 + 20) + 2 * 9
    assert (found.events, found.total_ns, found.per_event_ns) == (2, total, 75)
    assert found.wall_ns == 100_000 - 1001
    (note,) = [note for note in notes(made) if note.topic == "own overhead"]
    assert note.text == "0.2 % of wall, 75 ns per event"
    (note,) = [note for note in notes(corrected(made)) if note.topic == "own overhead"]
    assert note.text == "0.2 % of wall, 75 ns per event; taken out of the parts above"


def test_every_process_has_costs_of_its_own() -> None:
    cheap = {word: (1, 1) for word in COSTS}
    one, two = (recorded([span(1, "A", Kind.CALL, 0, 1000)], costs) for costs in (COSTS, cheap))
    both = store.merge([one, two])
    assert [process.costs for process in both.processes] == [COSTS, cheap]
    assert [row.wall_ns for row in calls(corrected(both))] == [990, 999]
    assert redacted(both).processes[0].costs == COSTS
    assert store.merge([corrected(one), two]).corrected


def test_of_somebody_else_s_trace_beside_a_recording_it_is_not_known() -> None:
    ours = recorded([span(1, "A", Kind.CALL, 0, 1000)])
    theirs = session(
        [span(1, "B", Kind.CALL, 0, 1000)],
        processes=[Process(pid=2, start_ns=1, end_ns=9 * 10**9)],
        pauses=[(0, 10, 8 * 10**9)],
    )
    alone, both = overhead(ours), overhead(store.merge([ours, theirs]))
    assert both == alone
    (note,) = [
        note
        for note in notes(corrected(store.merge([ours, theirs])))
        if note.topic == "own overhead"
    ]
    assert note.text == (
        "0.1 % of wall, 119 ns per event, in 1 of 2 processes; of others it is not known; "
        "taken out of the parts above"
    )


def test_lanes_of_no_process_and_sessions_without_spans() -> None:
    empty = recorded([])
    assert summary(corrected(empty)) == ()
    found = overhead(empty)
    assert found is not None
    assert (found.events, found.per_event_ns) == (0, 0)
    stray = replace(recorded([span(1, "A", Kind.CALL, 0, 1000)]), lanes=(Lane("main"),))
    assert parts(stray, "A") == {"wall": 990, "python": 990}


@settings(max_examples=60, deadline=None)
@given(scripts())
def test_parts_still_add_up_and_only_ever_shrink(script: list[Act]) -> None:
    run = Run()
    run.call(script)
    made = recorded(run.lines, pauses=run.pauses)
    before = {row.call: row for row in calls(made)}
    for row in calls(corrected(made)):
        assert row.wall_ns == sum(getattr(row, key) or 0 for key in PART_KEYS[1:])
        for key in PART_KEYS:
            value, raw = getattr(row, key), getattr(before[row.call], key)
            assert (value is None) == (raw is None)
            assert value is None or 0 <= value <= raw


@pytest.mark.parametrize("depth", [1, 50])
def test_recursion(depth: int) -> None:
    lines = [
        span(n, "A", Kind.CALL, n * 1000, 1_000_000 - n * 1000, owner=n - 1)
        for n in range(1, depth + 1)
    ]
    rows = calls(corrected(recorded(lines)))
    length = np.array([row.wall_ns for row in rows])
    below = np.arange(depth - 1, -1, -1)
    raw = np.array([998_000 - 2000 * n for n in range(depth)])
    assert (length == raw - 10 - below * 110).all()
