"""Whose a launch is where the event that tells it is part of a call, or no operator."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from tests.attribution.late.forest import Forest, forests
from tests.attribution.late.test_any_run import KNOWN
from tests.attribution.late.test_real_traces import FILES, found_in, launchers, loaded
from tests.attribution.late.world import World, call, event, node, row, text_of

from opscope.attribution.late import Role
from opscope.model import Kind, LinkKind

FREE = World(unhooked="U", hooked="A")


def kernel(**more: int):
    """Work on a stream."""
    return event("k", 200, 300, Role.DEVICE, lane=7, **more)


def launch(start_ns: int, end_ns: int):
    """A runtime call that launches it."""
    return event("launch", start_ns, end_ns, Role.API, correlation=5)


def source(found) -> str:
    """The name of the span from which the only launch link starts."""
    ((start, _),) = found.links(LinkKind.LAUNCH)
    return {int(span["id"]): name for name in NAMES for span in found.spans(name)}.get(start, "?")


NAMES = ("U", "A", "launch", "aten::mul", "MulBackward0", "range", "outer launch", "engine")


def test_a_launch_from_an_operator_entered_again_starts_at_the_call() -> None:
    twice = [event("ns::U", 10, 100), event("ns::U", 20, 90, external=9)]
    assert source(FREE.join([*twice, launch(30, 40), kernel(correlation=5)])) == "U"
    assert source(FREE.join([*twice, kernel(external=9)])) == "U"


def test_work_told_by_the_number_of_a_recorded_calls_event_is_the_calls() -> None:
    found = FREE.join(
        [event("ns::A", 10, 100, external=9), kernel(external=9)], [call(1, "A", 40, 60)]
    )
    assert (found.owner("k"), source(found)) == ("A", "A")
    assert found.phase("k") == found.phase("A")


def test_a_launch_told_by_a_nodes_number_starts_at_the_node() -> None:
    engine = event("engine", 5, 120, Role.ENGINE)
    found = FREE.join([engine, node("MulBackward0", 10, 100, external=9), kernel(external=9)])
    assert source(found) == "MulBackward0"


def test_annotations_and_runtime_calls_around_a_runtime_call_are_no_operators() -> None:
    events = [event("aten::mul", 10, 100), event("range", 20, 90, Role.RANGE)]
    events.append(event("outer launch", 25, 50, Role.API))
    assert source(FREE.join([*events, launch(30, 40), kernel(correlation=5)])) == "aten::mul"
    assert source(FREE.join([*events[1:], launch(30, 40), kernel(correlation=5)])) == "launch"


def test_operators_in_tasks_of_an_unhooked_call_make_its_nodes() -> None:
    events = [
        event("ns::U", 10, 100),
        event("aten::mul", 30, 40, lane=1, thread=2, sequence=7),
        node("MulBackward0", 200, 210, 7, forward_thread=2),
    ]
    rows = [
        row(1, "task", Kind.TASK, 25, 50, lane=1, submitted_lane=0, submitted_ns=20),
    ]
    found = FREE.join(events, rows)
    assert found.times("U") == [(10, 100), (200, 210)]


@given(forests())
@settings(max_examples=150, deadline=None)
def test_both_ends_of_every_link_are_spans(forest: Forest) -> None:
    found = KNOWN.join(forest.events(), forest.rows())
    for _, start, end in found.joined.links:
        assert {start, end} <= found.told.keys()


@pytest.mark.parametrize("name", [each[0] for each in FILES])
def test_kernels_are_counted_at_the_operator_that_launched_them(name: str) -> None:
    raw, found = loaded(name), found_in(name)
    expected = Counter(by["name"] for by in launchers(raw) if by is not None)
    sources = [source for source, _ in found.links(LinkKind.LAUNCH)]
    assert Counter(text_of(int(found.told[source]["name"])) for source in sources) == expected


def test_a_replayed_graphs_kernels_belong_to_the_call_of_the_runtime() -> None:
    found = found_in("graph_replay_ownerless_kernels")
    replay = found.span("hipGraphLaunch")["id"]
    assert sum(start == replay for start, _ in found.links(LinkKind.LAUNCH)) > 500
