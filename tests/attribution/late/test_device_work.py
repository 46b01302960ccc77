"""Device work belongs to whoever owns what launched it."""

from __future__ import annotations

from tests.attribution.late.world import World, call, event

from opscope.attribution.late import Role
from opscope.model import Kind, LinkKind, Phase

FREE = World(unhooked="U", hooked="A")
LAUNCH = LinkKind.LAUNCH
STREAM = 7


def kernel(name: str, start_ns: int, end_ns: int, **more: int):
    """Work on a stream."""
    return event(name, start_ns, end_ns, Role.DEVICE, lane=STREAM, **more)


def test_by_correlation_to_the_owner_of_the_runtime_call() -> None:
    events = [
        event("ns::U", 10, 100),
        event("aten::mul", 20, 60),
        event("launch", 30, 40, Role.API, correlation=5),
        kernel("k", 200, 300, correlation=5),
    ]
    found = FREE.join(events)
    assert (found.kind("k"), found.owner("k"), found.phase("k")) == (
        *(Kind.DEVICE, "U"),
        Phase.FORWARD,
    )
    assert found.inferred("k")
    span = found.span("k")
    assert (span["lane"], span["submitted_lane"], span["submitted_ns"]) == (STREAM, 0, 30)
    assert found.links(LAUNCH) == [(found.span("aten::mul")["id"], span["id"])]
    assert (found.kind("launch"), found.owner("launch")) == (Kind.OP, "U")
    assert found.joined.unattributed == 0


def test_a_waiting_call_of_the_runtime_may_launch_too() -> None:
    events = [
        event("wait", 30, 40, Role.WAIT, correlation=5),
        kernel("k", 35, 38, correlation=5),
    ]
    found = FREE.join(events, [call(1, "A", 10, 100)])
    assert (found.kind("wait"), found.owner("wait"), found.owner("k")) == (Kind.WAIT, "A", "A")


def test_without_an_operator_around_it_the_runtime_call_is_the_source() -> None:
    events = [event("launch", 30, 40, Role.API, correlation=5), kernel("k", 50, 60, correlation=5)]
    for rows in ([], [call(1, "A", 10, 100)]):
        found = FREE.join(events, rows)
        assert found.links(LAUNCH) == [(found.span("launch")["id"], found.span("k")["id"])]
        assert found.owner("k") == ("A" if rows else "")


def test_launched_straight_from_a_call_it_is_that_calls() -> None:
    events = [
        event("ns::U", 10, 100),
        event("launch", 30, 40, Role.API, correlation=5),
        kernel("k", 200, 300, correlation=5),
    ]
    found = FREE.join(events)
    assert found.owner("k") == "U"
    assert found.links(LAUNCH) == [(found.span("U")["id"], found.span("k")["id"])]


def test_without_a_runtime_call_of_its_number_by_that_of_the_operator() -> None:
    events = [
        event("ns::U", 10, 100, external=8),
        event("aten::mul", 20, 60, external=9),
        kernel("of mul", 200, 300, correlation=5, external=9),
        kernel("of U", 300, 400, external=8),
    ]
    found = FREE.join(events)
    assert (found.owner("of mul"), found.owner("of U")) == ("U", "U")
    ids = {name: found.span(name)["id"] for name in ("aten::mul", "U", "of mul", "of U")}
    links = {(ids["aten::mul"], ids["of mul"]), (ids["U"], ids["of U"])}
    assert set(found.links(LAUNCH)) == links


def test_correlation_goes_before_the_operators_number() -> None:
    events = [
        event("aten::add", 1, 5, external=9),
        event("aten::mul", 20, 60),
        event("launch", 30, 40, Role.API, correlation=5),
        kernel("k", 200, 300, correlation=5, external=9),
        kernel("other", 300, 400, correlation=6, external=9),
    ]
    found = FREE.join(events)
    ids = [found.span(name)["id"] for name in ("aten::mul", "k", "aten::add", "other")]
    assert found.links(LAUNCH) == [(ids[0], ids[1]), (ids[2], ids[3])]


def test_work_that_nobody_launched_stays_and_is_counted() -> None:
    events = [
        event("aten::mul", 20, 60),  # numbers of 0 are none
        event("launch", 30, 40, Role.API),
        kernel("no number", 30, 50),
        kernel("lost", 50, 60, correlation=5, external=9),
    ]
    found = FREE.join(events, [call(1, "A", 10, 100, lane=STREAM)])
    assert found.joined.unattributed == 2
    for name in ("no number", "lost"):
        assert (found.kind(name), found.owner(name)) == (Kind.DEVICE, "")
        assert (found.phase(name), found.inferred(name)) == (Phase.NONE, False)
    assert found.links(LAUNCH) == []


def test_work_of_a_backward_node_is_backward() -> None:
    events = [
        event("UBackward", 10, 100, Role.NODE),
        event("launch", 30, 40, Role.API, correlation=5),
        kernel("k", 200, 300, correlation=5),
    ]
    found = FREE.join(events)
    assert (found.owner("k"), found.phase("k")) == ("U", Phase.BACKWARD)


def test_work_of_one_stream_may_overlap_and_is_nobodys_parent() -> None:
    events = [
        event("launch", 10, 20, Role.API, correlation=5, lane=STREAM),
        kernel("k1", 0, 100, correlation=5),
        kernel("k2", 50, 150, correlation=5),
    ]
    found = FREE.join(events)
    assert len(found.links(LAUNCH)) == 2
    assert {source for source, _ in found.links(LAUNCH)} == {found.span("launch")["id"]}
