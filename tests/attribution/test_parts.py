"""Parts equal a truth that was acted out, and add up to the wall time for any session at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.attribution.scripted import Act, Run, scripts
from tests.builders import Line, op, session, span

from opscope.attribution import UNKNOWN, attribute
from opscope.model import Flag, Kind, Sight

PARTS = ("python", "native", "sub", "wait", "dispatch", "runtime", "untracked")


def parts_of(found: object, call: int) -> dict[str, int]:
    """The parts of the call with that id."""
    columns = found.parts  # type: ignore[attr-defined]
    ids = found.session.spans["id"][columns.rows]  # type: ignore[attr-defined]
    place = int(np.flatnonzero(ids == call)[0])
    return {part: int(getattr(columns, part)[place]) for part in ("wall", *PARTS)}


@given(scripts())
@settings(max_examples=300, deadline=None)
def test_parts_equal_the_truth(acts: list[Act]) -> None:
    run = Run()
    run.call(acts)
    found = attribute(session(run.lines, pauses=run.pauses, sight=[]))
    for call, truth in run.truth.items():
        parts = parts_of(found, call)
        expected = {part: truth[part] for part in ("wall", *PARTS)}
        expected["native"] = UNKNOWN
        assert parts == expected


lines = st.builds(
    lambda id, kind, start, length, owner, lane, cpu, flags: span(
        id, "x", kind, start, start + length, owner=owner, lane=lane, cpu_ns=cpu, flags=flags
    ),
    id=st.integers(1, 12),
    kind=st.sampled_from(list(Kind)),
    start=st.integers(0, 60),
    length=st.integers(0, 60),
    owner=st.integers(0, 12),
    lane=st.sampled_from(["main", "other"]),
    cpu=st.integers(-1, 60),
    flags=st.sampled_from([0, Flag.SUSPENDED, Flag.INCOMPLETE]),
)


@given(
    st.lists(lines, max_size=12, unique_by=lambda line: line.id),
    st.lists(st.tuples(st.just(0), st.integers(0, 50), st.integers(50, 99)), max_size=2),
    st.lists(
        st.tuples(st.just(0), st.integers(0, 50), st.integers(50, 99), st.just(1)), max_size=1
    ),
)
@settings(max_examples=400, deadline=None)
def test_parts_always_add_up(
    spans: list[Line], pauses: list[tuple[int, int, int]], drops: list[tuple[int, int, int, int]]
) -> None:
    found = attribute(session(spans, pauses=pauses, drops=drops, sight=[]))
    columns = found.parts
    total = sum(np.maximum(getattr(columns, part), 0) for part in PARTS)
    assert (total == columns.wall).all()
    for part in PARTS:
        assert (getattr(columns, part) >= UNKNOWN).all()


def test_without_cpu_time_the_gap_is_untracked_but_known_waits_are_waits() -> None:
    spans = [span(1, "A", Kind.CALL, 0, 100), span(2, "w", Kind.WAIT, 10, 30, owner=1)]
    parts = parts_of(attribute(session(spans, sight=[])), 1)
    assert (parts["python"], parts["wait"], parts["untracked"]) == (UNKNOWN, 20, 80)


def test_a_host_that_reports_all_waits_needs_no_cpu_time() -> None:
    spans = [span(1, "A", Kind.CALL, 0, 100), span(2, "w", Kind.WAIT, 10, 30, owner=1)]
    seen = [Sight("python", sees=("all waits",))]
    parts = parts_of(attribute(session(spans, sight=seen)), 1)
    assert (parts["python"], parts["wait"], parts["untracked"]) == (80, 20, 0)


def test_a_native_operator_owns_its_gap() -> None:
    native = op("N", native=True)
    spans = [span(1, native, Kind.CALL, 0, 100, cpu_ns=60), span(2, "o", Kind.OP, 0, 40, owner=1)]
    parts = parts_of(attribute(session(spans, sight=[])), 1)
    assert (parts["native"], parts["sub"], parts["python"], parts["wait"]) == (60, 40, 0, 0)


def test_calls_that_overlap_a_loss_are_lossy_and_the_others_are_not() -> None:
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=100),
        span(2, "A", Kind.CALL, 200, 300, cpu_ns=100),
        span(3, "A", Kind.CALL, 400, 500, cpu_ns=100),
    ]
    found = attribute(session(spans, drops=[(0, 50, 60, 7), (0, 450, 460, 1)], sight=[]))
    assert [bool(flags & Flag.LOSSY) for flags in found.flags] == [True, False, True]
    assert parts_of(found, 1)["untracked"] == parts_of(found, 3)["untracked"] == 100
    assert parts_of(found, 2)["python"] == 100


def test_a_guessed_child_makes_the_split_an_estimate() -> None:
    known = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=90),
        span(2, "o", Kind.OP, 0, 40, owner=1, cpu_ns=40),
    ]
    guessed = [known[0], span(2, "o", Kind.OP, 0, 40, owner=1)]
    assert not attribute(session(known, sight=[])).flags[0] & Flag.ESTIMATED
    assert attribute(session(guessed, sight=[])).flags[0] & Flag.ESTIMATED


@pytest.mark.parametrize("start", [100, 150])
def test_what_a_worker_runs_after_the_call_does_not_touch_the_split(start: int) -> None:
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=100),
        span(2, "o", Kind.OP, start, 240, owner=1),
    ]
    found = attribute(session(spans, sight=[]))
    assert parts_of(found, 1)["python"] == 100
    assert not found.flags[0] & Flag.ESTIMATED
    assert found.flags[0] & Flag.OUTLIVED
    assert (found.beside.elsewhere[0], found.beside.span[0]) == (240 - start, 240)


def test_each_instant_counts_for_the_first_that_covers_it() -> None:
    """Sub-operators, suspension, chores, the wrapper, known waits; what the consumer of a generator
    has collected meanwhile is not the generator's."""
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=15),
        span(2, "o", Kind.OP, 0, 20, owner=1, cpu_ns=0),
        span(3, "suspended", Kind.WAIT, 10, 40, owner=1, flags=Flag.SUSPENDED),
        span(4, "gc", Kind.RUNTIME, 30, 35),
        span(5, "dispatch", Kind.DISPATCH, 50, 70, owner=1, cpu_ns=0),
        span(6, "gc", Kind.RUNTIME, 60, 64),
        span(7, "sleep", Kind.WAIT, 65, 90, owner=1),
        span(8, "gc", Kind.RUNTIME, 80, 85),
    ]
    parts = parts_of(attribute(session(spans, sight=[])), 1)
    assert {part: ns for part, ns in parts.items() if ns > 0} == {
        "wall": 100, "sub": 20, "wait": 20 + 15 + 10, "runtime": 4 + 5, "dispatch": 16,
        "python": 10,
    }  # fmt: skip
