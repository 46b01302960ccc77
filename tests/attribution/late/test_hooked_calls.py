"""A hook's record and the framework's events of the same call are one span."""

from __future__ import annotations

from tests.attribution.late.world import DISPATCH, World, call, event

from opscope.attribution.late import Role
from opscope.model import Flag, Kind, Phase

US = 1_000
HOOKED = World(hooked="A B", functions="F")


def test_the_event_around_a_bracket_widens_it_and_what_is_left_is_dispatch() -> None:
    found = HOOKED.join([event("ns::A", 10, 100)], [call(1, "A", 40, 80, cpu_ns=35)])
    assert not found.spans("ns::A")
    assert found.times("A") == [(10, 100)]
    assert int(found.span("A")["cpu_ns"]) == 35 + 30 + 20
    assert found.times(DISPATCH) == [(10, 40), (80, 100)]
    for part, cpu in zip(found.spans(DISPATCH), (30, 20), strict=True):
        assert (part["owner"], part["kind"], part["phase"]) == (1, Kind.DISPATCH, Phase.FORWARD)
        assert (part["cpu_ns"], part["flags"]) == (cpu, Flag.ESTIMATED)


def test_a_side_without_a_wrapper_has_no_dispatch() -> None:
    found = HOOKED.join([event("ns::A", 40, 100)], [call(1, "A", 40, 80)])
    assert found.times(DISPATCH) == [(80, 100)]
    assert int(found.span("A")["cpu_ns"]) == -1


def test_a_bracket_that_begins_within_the_slack_before_its_event_is_still_its_own() -> None:
    rows = [call(1, "A", 99 * US, 181 * US)]
    found = HOOKED.join([event("ns::A", 100 * US, 180 * US)], rows)
    assert found.times("A") == [(99 * US, 181 * US)]
    assert not found.spans("ns::A")
    assert not found.spans(DISPATCH)


def test_a_call_that_was_cut_off_ends_where_it_was_seen_last() -> None:
    rows = [call(1, "A", 40, 80, flags=Flag.INCOMPLETE)]
    found = HOOKED.join([event("ns::A", 10, 100)], rows)
    assert found.times("A") == [(10, 80)]
    assert found.times(DISPATCH) == [(10, 40)]


def test_the_event_inside_a_bracket_is_the_call_and_does_not_move_it() -> None:
    rows = [call(1, "F", 10 * US, 100 * US)]
    events = [event("F", 20 * US, 90 * US), event("aten::mul", 30 * US, 40 * US)]
    found = HOOKED.join(events, rows)
    assert found.times("F") == [(10 * US, 100 * US)]
    assert found.owner("aten::mul") == "F"
    assert not found.spans(DISPATCH)
    assert found.span("F").tobytes() == found.recorded[0].tobytes()


def test_only_the_first_event_inside_a_bracket_is_the_call() -> None:
    rows = [call(1, "F", 10 * US, 100 * US)]
    events = [event("F", 20 * US, 30 * US), event("F", 40 * US, 50 * US)]
    found = HOOKED.join(events, rows)
    assert found.times("F") == [(10 * US, 100 * US), (40 * US, 50 * US)]
    assert [Kind(span["kind"]) for span in found.spans("F")] == [Kind.CALL, Kind.OP]


def test_the_dispatcher_entered_twice_is_one_call_from_the_outer_event() -> None:
    events = [event("ns::A", 10, 100), event("ns::A", 20, 90), event("aten::mul", 50, 60)]
    found = HOOKED.join(events, [call(1, "A", 40, 80)])
    assert not found.spans("ns::A")
    assert found.times("A") == [(10, 100)]
    assert found.times(DISPATCH) == [(10, 40), (80, 100)]
    assert found.owner("aten::mul") == "A"


def test_the_frameworks_own_way_to_the_function_is_part_of_the_call() -> None:
    events = [
        event("ns::A", 10, 100),
        event("GeneratedBackwardFor_ns_A", 20, 90, Role.WRAPPER),
        event("aten::mul", 50, 60),
    ]
    found = HOOKED.join(events, [call(1, "A", 40, 80)])
    assert not found.spans("ns::A")
    assert not found.spans("GeneratedBackwardFor_ns_A")
    assert found.times("A") == [(10, 100)]
    assert found.owner("aten::mul") == "A"


def test_a_wrapper_of_nobodys_call_stays() -> None:
    found = HOOKED.join([event("GeneratedBackwardFor_ns_A", 20, 90, Role.WRAPPER)])
    assert found.kind("GeneratedBackwardFor_ns_A") == Kind.OP


def test_an_operator_inside_itself_keeps_each_call_with_its_own_event() -> None:
    around = [(10 * US, 100 * US), (30 * US, 80 * US)]
    events = [event("ns::A", *both) for both in around]
    rows = [call(2, "A", 40 * US, 70 * US, owner=1), call(1, "A", 20 * US, 90 * US)]
    found = HOOKED.join([*events, event("aten::mul", 45 * US, 50 * US)], rows)
    assert not found.spans("ns::A")
    assert found.times("A") == around
    assert [int(span["id"]) for span in found.spans("A")] == [1, 2]
    assert found.span("aten::mul")["owner"] == 2


def test_of_two_calls_in_one_event_the_first_has_it() -> None:
    rows = [call(1, "A", 20, 40), call(2, "A", 50, 70)]
    found = HOOKED.join([event("ns::A", 10, 100)], rows)
    assert found.times("A") == [(10, 100), (50, 70)]
    assert [int(span["id"]) for span in found.spans("A")] == [1, 2]
    assert all(part["owner"] == 1 for part in found.spans(DISPATCH))


def test_a_call_does_not_take_an_event_further_out_that_is_anothers() -> None:
    events = [event("ns::A", 10, 100), event("ns::A", 50, 90)]
    found = HOOKED.join(events, [call(1, "A", 20, 40), call(2, "A", 60, 80)])
    assert not found.spans("ns::A")
    assert found.times("A") == [(10, 100), (50, 90)]
    assert [int(span["id"]) for span in found.spans("A")] == [1, 2]


def test_another_operators_event_is_not_the_calls() -> None:
    found = HOOKED.join([event("ns::B", 10, 100)], [call(1, "A", 20, 40)])
    assert found.times("ns::B") == [(10, 100)]
    assert found.times("A") == [(20, 40)]


def test_the_event_of_another_lane_is_not_the_calls() -> None:
    found = HOOKED.join([event("ns::A", 10, 100, lane=1)], [call(1, "A", 20, 40)])
    assert found.times("ns::A") == [(10, 100)]


def test_a_record_without_an_event_stays_as_it_is() -> None:
    found = HOOKED.join([], [call(1, "A", 20, 40, cpu_ns=5)])
    assert len(found.joined.rows) == 0
    assert found.span("A").tobytes() == found.recorded[0].tobytes()


def test_an_event_without_a_record_was_not_a_call_of_the_function() -> None:
    found = HOOKED.join([event("ns::A", 10, 100), event("aten::mul", 50, 60)])
    assert found.kind("ns::A") == Kind.OP
    assert found.owner("aten::mul") == ""


def test_forward_and_backward_of_one_operator_have_their_own_events() -> None:
    events = [event("ABackward", 10, 100, Role.NODE), event("ns::A", 200, 300)]
    rows = [call(1, "A", 20, 90, phase=Phase.BACKWARD), call(2, "A", 210, 290)]
    found = HOOKED.join(events, rows)
    assert found.times("A") == [(10, 100), (200, 300)]
    assert not found.spans("ABackward")
    assert not found.spans("ns::A")


def test_a_forward_bracket_in_the_backward_event_is_not_that_events_call() -> None:
    found = HOOKED.join([event("ABackward", 10, 100, Role.NODE)], [call(1, "A", 20, 90)])
    assert found.times("ABackward") == [(10, 100)]
    assert found.times("A") == [(20, 90)]
