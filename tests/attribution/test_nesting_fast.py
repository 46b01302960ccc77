"""All lanes at once against the stack, which takes one span after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.builders import Line, session, span

from opscope.attribution import Nesting, nest, nesting
from opscope.attribution.order import lane_order
from opscope.model import Kind, Rows

#: (start, length, kind, lane), few of each, so that equal times and crossings are common.
Drawn = list[tuple[int, int, Kind, str]]
TIES = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(-1, 6),
        st.sampled_from([Kind.CALL, Kind.OP, Kind.STEP, Kind.WAIT]),
        st.sampled_from(["main", "other"]),
    ),
    max_size=14,
)


def spans_of(drawn: Drawn) -> Rows:
    lines: list[Line] = [
        span(number * 7 % 5, "x", kind, start, start + length, lane=lane)
        for number, (start, length, kind, lane) in enumerate(drawn)
    ]
    return session(lines).spans


def by_stack(spans: Rows) -> Nesting:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_ROOM", 0)
        return nest(spans)


def no_stack(*_: object) -> None:
    raise AssertionError("the stack was asked")


def same(one: Nesting, other: Nesting) -> bool:
    pairs: list[tuple[NDArray[np.generic], NDArray[np.generic]]] = [
        (one.parent, other.parent),
        (one.depth, other.depth),
        (one.crosses, other.crosses),
    ]
    return all(np.array_equal(mine, yours) for mine, yours in pairs)


@given(TIES)
@example([(0, 5, Kind.OP, "main"), (5, 0, Kind.OP, "main")])
@example([(0, 5, Kind.OP, "main"), (5, 0, Kind.OP, "main"), (5, 2, Kind.OP, "main")])
@example([(0, 9, Kind.OP, "main"), (5, 0, Kind.OP, "main"), (5, 0, Kind.OP, "main")])
@example([(0, 9, Kind.OP, "main"), (1, 3, Kind.OP, "main"), (2, 3, Kind.OP, "main")])
@settings(max_examples=1500, deadline=None)
def test_all_at_once_finds_what_the_stack_finds(drawn: Drawn) -> None:
    spans = spans_of(drawn)
    assert same(nest(spans), by_stack(spans))


@given(TIES)
@settings(max_examples=300, deadline=None)
def test_the_order_is_that_of_sorting_by_every_key(drawn: Drawn) -> None:
    spans = spans_of(drawn)
    end = np.maximum(spans["end_ns"], spans["start_ns"])
    rank = [{Kind.STEP: 0, Kind.CALL: 3, Kind.WAIT: 6}.get(kind, 5) for kind in spans["kind"]]
    keys = [
        (*map(int, (row["lane"], row["start_ns"], -end[i], rank[i], row["id"], i)),)
        for i, row in enumerate(spans)
    ]
    assert lane_order(spans, end).tolist() == [key[-1] for key in sorted(keys)]


def test_a_lane_in_order_needs_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nesting, "_nest_lane", no_stack)
    drawn = [
        (0, 100, Kind.STEP, "main"),
        (10, 50, Kind.CALL, "main"),
        (10, 50, Kind.OP, "main"),
        (20, 0, Kind.OP, "main"),
        (60, 0, Kind.WAIT, "main"),  # at the very end of two others
        (60, 40, Kind.OP, "other"),
        (70, 30, Kind.OP, "other"),
    ]
    found = nest(spans_of(drawn))
    assert found.parent.tolist() == [-1, 0, 1, 2, 2, -1, 5]
    assert found.depth.tolist() == [0, 1, 2, 3, 3, 0, 1]
    assert not found.crosses.any()


def test_only_the_lane_that_crosses_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    stack = nesting._nest_lane

    def watched(rows: NDArray[np.int64], *rest: object) -> None:
        asked.append(rows.tolist())
        stack(rows, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(nesting, "_nest_lane", watched)
    drawn = [
        (0, 9, Kind.OP, "main"),
        (1, 2, Kind.OP, "main"),
        (0, 5, Kind.OP, "other"),
        (2, 5, Kind.OP, "other"),
    ]
    assert nest(spans_of(drawn)).parent.tolist() == [-1, 0, -1, 2]
    assert asked == [[2, 3]]


def test_very_deep_nests_are_done_at_once_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nesting, "_nest_lane", no_stack)
    n = 2**15 + 10
    spans = np.resize(spans_of([(0, 0, Kind.OP, "main")]), n)
    spans["start_ns"] = np.arange(n)
    spans["end_ns"] = 3 * n - np.arange(n)
    found = nest(spans)
    assert found.depth.tolist() == list(range(n))
    assert found.parent.tolist() == list(range(-1, n - 1))


def test_times_too_far_apart_to_add_up_are_nested_all_the_same() -> None:
    far = 2**62
    drawn = [
        (-far, 2 * far - 1, Kind.OP, "main"),
        (-far, 10, Kind.OP, "main"),
        (-far, far, Kind.OP, "other"),
        (-5, 5, Kind.OP, "other"),
    ]
    assert nest(spans_of(drawn)).parent.tolist() == [-1, 0, -1, 2]
