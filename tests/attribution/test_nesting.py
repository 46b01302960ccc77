"""Who lies inside whom: against a check of every pair, and the cases that sorting gets wrong."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import Line, session, span

from opscope.attribution import nest
from opscope.model import Kind


def parents(lines: list[Line]) -> dict[int, int | None]:
    """For each span's id the id of the span around it."""
    spans = session(lines).spans
    found = nest(spans)
    ids = spans["id"].tolist()
    return {ids[row]: ids[up] if up >= 0 else None for row, up in enumerate(found.parent.tolist())}


@st.composite
def forests(draw: st.DrawFn) -> list[tuple[int, int, str, int | None]]:
    """(start, end, lane, index of the parent): nested properly, never of equal times."""
    made: list[tuple[int, int, str, int | None]] = []
    for lane in ("main", "other"):
        clock = 0
        open_: list[int] = []
        for step in draw(st.lists(st.booleans(), max_size=12)):
            clock += 1
            if step or not open_:
                made.append((clock, 0, lane, open_[-1] if open_ else None))
                open_.append(len(made) - 1)
            else:
                index = open_.pop()
                made[index] = (made[index][0], clock, *made[index][2:])
        for index in reversed(open_):
            clock += 1
            made[index] = (made[index][0], clock, *made[index][2:])
    return made


@given(forests(), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_nesting_is_that_of_the_forest(
    forest: list[tuple[int, int, str, int | None]], random: Random
) -> None:
    lines = [
        span(number + 1, "x", Kind.OP, start, end, lane=lane)
        for number, (start, end, lane, _) in enumerate(forest)
    ]
    expected = {
        number + 1: None if parent is None else parent + 1
        for number, (_, _, _, parent) in enumerate(forest)
    }
    random.shuffle(lines)
    assert parents(lines) == expected


def test_a_crossing_span_lies_in_what_it_starts_in_and_says_so() -> None:
    lines = [span(1, "a", Kind.OP, 0, 10), span(2, "b", Kind.OP, 5, 15)]
    assert parents(lines) == {1: None, 2: 1}
    assert nest(session(lines).spans).crosses.tolist() == [False, True]


def test_neighbours_that_touch_are_neighbours() -> None:
    assert parents([span(1, "a", Kind.OP, 0, 10), span(2, "b", Kind.OP, 10, 20)])[2] is None


def test_a_span_of_no_length_at_the_end_lies_inside() -> None:
    assert parents([span(1, "a", Kind.OP, 0, 10), span(2, "b", Kind.OP, 10, 10)])[2] == 1


def test_of_equal_times_the_call_is_around_what_it_owns() -> None:
    lines = [
        span(1, "op", Kind.OP, 0, 10, owner=2),
        span(2, "call", Kind.CALL, 0, 10),
        span(3, "step", Kind.STEP, 0, 10),
    ]
    assert parents(lines) == {3: None, 2: 3, 1: 2}
