"""Deep trees of calls get what pairs of every span and every call above it would give."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import Line, session, span

from opscope.analyse import inside, own_time, subs
from opscope.attribution import Attribution, ancestors, attribute, deep, owners
from opscope.model import Flag, Kind, Process, Session

_KINDS = (Kind.CALL, Kind.CALL, Kind.CALL, Kind.OP, Kind.TASK, Kind.DEVICE, Kind.WAIT, Kind.RUNTIME)


@st.composite
def forests(draw: st.DrawFn) -> Session:
    """Spans that cross, lie before their owners, own each other in circles, or lack their owner."""
    count = draw(st.integers(1, 24))
    chain = draw(st.booleans())
    lines: list[Line] = []
    for number in range(1, count + 1):
        start = draw(st.integers(0, 40))
        near = st.integers(max(number - 2, 0), max(number - 1, 0))
        lines.append(
            span(
                number,
                draw(st.sampled_from("AB")),
                draw(st.sampled_from(_KINDS)),
                start,
                start + draw(st.integers(-1, 20)),
                owner=draw(near if chain else st.integers(0, count + 1)),
                lane=draw(st.sampled_from(("main", "w", "other"))),
                cpu_ns=draw(st.integers(-1, 9)),
                flags=draw(st.sampled_from((0, 0, int(Flag.SUSPENDED), int(Flag.INCOMPLETE)))),
            )
        )
    moments = st.integers(0, 60)
    pauses = draw(st.lists(st.tuples(st.integers(0, 1), moments, moments), max_size=3))
    pair = [Process(pid=1, complete=True), Process(pid=2, complete=True)]
    return session(lines, pauses=pauses, processes=pair)


def columns(found: Attribution) -> dict[str, list[Any]]:
    tables = (found.beside, found.parts)
    return {
        f"{type(table).__name__}.{field.name}": getattr(table, field.name).tolist()
        for table in tables
        for field in fields(table)
    } | {"flags": found.flags.tolist()}


@settings(max_examples=200, deadline=None)
@given(
    found=forests(),
    deepest=st.sampled_from((0, 1, 3, 9, 12)),
    portion=st.sampled_from((1, 5, 1 << 21)),
)
def test_a_deep_tree_is_what_its_pairs_are(found: Session, deepest: int, portion: int) -> None:
    pairs = columns(attribute(found))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owners, "DEEPEST", deepest)
        patch.setattr(deep, "_PORTION", portion)
        assert columns(attribute(found)) == pairs


@settings(max_examples=100, deadline=None)
@given(found=forests(), deepest=st.sampled_from((0, 64)))
def test_elsewhere_is_what_counting_each_nanosecond_gives(found: Session, deepest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owners, "DEEPEST", deepest)
        attributed = attribute(found)
    spans, calls = found.spans, attributed.calls.tolist()
    asleep = {
        moment
        for process, first, last in found.pauses.tolist()
        for moment in range(first, last)
        if process == 0
    }
    below, above = ancestors(attributed.owner, np.arange(len(spans)))
    host = {Kind.CALL, Kind.OP, Kind.TASK}
    for place, call in enumerate(calls):
        lanes: dict[int, set[int]] = {}
        for row in below[above == call].tolist():
            one = spans[row]
            later = one["start_ns"] >= spans["end_ns"][call]
            if one["kind"] in host and (one["lane"] != spans["lane"][call] or later):
                lasted = range(max(one["start_ns"], spans["start_ns"][call]), one["end_ns"])
                lanes.setdefault(one["lane"], set()).update(set(lasted) - asleep)
        assert attributed.beside.elsewhere[place] == sum(map(len, lanes.values()))
        assert attributed.beside.elsewhere_union[place] == len(set().union(*lanes.values()))


@settings(max_examples=150, deadline=None)
@given(found=forests(), steps=st.integers(0, 2))
def test_what_has_ended_is_left_out_where_spans_cross_and_nothing_else_is(
    found: Session, steps: int
) -> None:
    def told() -> list[Any]:
        own = own_time(found)
        return [*(getattr(own, field.name).tolist() for field in fields(own)), subs(found)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inside, "_STEPS", len(found.spans))
        whole = told()
        patch.setattr(inside, "_STEPS", steps)
        assert told() == whole


def test_coroutines_that_each_start_the_next_have_few_pairs() -> None:
    many = 5000
    spans = [span(n + 1, "step", Kind.CALL, 10 * n, 10 * n + 15, owner=n) for n in range(many)]
    found = attribute(session(spans))
    assert found.nesting.depth.max() == many - 1
    below, _ = inside.pairs(found.session.spans, found.nesting.parent, np.arange(many))
    assert len(below) < 20 * many
    lineage = owners.lineage(found.session.spans, found.owner, np.arange(many))
    assert len(lineage[0]) < 4 * many
