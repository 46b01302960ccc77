"""Nodes of the backward graph belong to the call whose operator made them."""

from __future__ import annotations

from tests.attribution.late.world import World, call, event, node

from opscope.attribution.late import Role
from opscope.model import Flag, Kind, LinkKind, Phase

FREE = World(unhooked="U V", hooked="A", again=("CheckpointBackward",))
BACK = LinkKind.BACKWARD


def test_a_node_of_an_exact_name_is_a_backward_call_even_if_nothing_else_is_known() -> None:
    found = FREE.join([node("UBackward", 10, 100), event("aten::mul", 20, 30)])
    assert found.times("U") == [(10, 100)]
    assert (found.kind("U"), found.phase("U")) == (Kind.CALL, Phase.BACKWARD)
    assert (found.owner("aten::mul"), found.phase("aten::mul")) == ("U", Phase.BACKWARD)
    assert found.links(BACK) == []


def test_a_node_of_an_exact_name_is_joined_to_the_call_with_its_number() -> None:
    events = [
        event("ns::U", 10, 20, sequence=4),
        event("ns::U", 30, 40, sequence=5),
        node("UBackward", 100, 110, 4),
    ]
    found = FREE.join(events)
    first, _, back = (int(span["id"]) for span in found.spans("U"))
    assert found.links(BACK) == [(back, first)]


def test_the_name_wins_over_the_number() -> None:
    found = FREE.join([event("ns::V", 10, 20, sequence=4), node("UBackward", 100, 110, 4)])
    assert (found.kind("U"), found.phase("U")) == (Kind.CALL, Phase.BACKWARD)
    assert found.links(BACK) == []


def test_only_a_node_is_a_backward_call() -> None:
    found = FREE.join([event("UBackward", 10, 100)])
    assert (found.kind("UBackward"), found.phase("UBackward")) == (Kind.OP, Phase.NONE)


def test_a_node_whose_name_says_nothing_belongs_to_whoever_made_it() -> None:
    events = [
        event("ns::U", 10, 50),
        event("aten::mul", 20, 30, sequence=7),
        node("MulBackward0", 100, 110, 7, lane=1, thread=2),
    ]
    found = FREE.join(events)
    forward, back = found.spans("U")
    assert (back["start_ns"], back["end_ns"], back["lane"]) == (100, 110, 1)
    assert (back["kind"], back["phase"]) == (Kind.CALL, Phase.BACKWARD)
    assert found.links(BACK) == [(back["id"], forward["id"])]
    assert not found.spans("MulBackward0")


def test_operators_of_nobody_have_nodes_of_nobody() -> None:
    events = [event("aten::mul", 20, 30, sequence=7), node("MulBackward0", 100, 110, 7)]
    found = FREE.join(events)
    assert (found.kind("MulBackward0"), found.phase("MulBackward0")) == (Kind.OP, Phase.BACKWARD)
    assert found.owner("MulBackward0") == ""


def test_of_operators_with_one_number_the_last_before_the_node_made_it() -> None:
    # An operator that makes no node repeats the number; one after the node is not its maker.
    events = [
        *(event("ns::V", 10, 20), event("aten::detach", 12, 14, sequence=7)),
        *(event("ns::U", 30, 40), event("aten::mul", 32, 34, sequence=7)),
        node("MulBackward0", 100, 110, 7),
        *(event("ns::V", 200, 210), event("aten::detach", 202, 204, sequence=7)),
    ]
    found = FREE.join(events)
    forward, back = found.spans("U")
    assert found.links(BACK) == [(back["id"], forward["id"])]
    assert len(found.spans("V")) == 2


def test_a_number_that_no_operator_had_before_is_nobodys() -> None:
    events = [
        *(event("ns::U", 10, 50), event("aten::mul", 20, 30, sequence=7)),
        *(node("SinBackward0", 100, 110, 6), node("CosBackward0", 120, 130, 8)),
        node("TanBackward0", 140, 150, 7, forward_thread=2),
        *(event("ns::U", 200, 250), event("aten::cos", 220, 230, sequence=8)),
    ]
    found = FREE.join(events)
    assert found.times("U") == [(10, 50), (200, 250)]
    assert found.links(BACK) == []


def test_numbers_are_counted_on_each_thread() -> None:
    events = [
        *(event("ns::U", 10, 50), event("aten::mul", 20, 30, sequence=7)),
        event("ns::V", 10, 50, lane=1, thread=2),
        event("aten::mul", 25, 35, lane=1, thread=2, sequence=7),
        node("MulBackward0", 100, 110, 7, lane=2, thread=3, forward_thread=1),
        event("AccumulateGrad", 111, 112, Role.NODE, lane=2, thread=3),
        node("MulBackward0", 120, 130, 7, lane=2, thread=3, forward_thread=2),
    ]
    found = FREE.join(events)
    assert found.times("U") == [(10, 50), (100, 110)]
    assert found.times("V") == [(10, 50), (120, 130)]


def composite(*nodes: tuple[str, int, int, int]) -> list:
    """A call of U with two operators in it, one of V, and nodes (name, start, end, number)."""
    return [
        *(event("ns::U", 10, 50), event("aten::mul", 20, 30, sequence=7)),
        event("aten::add", 31, 40, sequence=8),
        *(event("ns::V", 60, 70), event("aten::sin", 61, 69, sequence=9)),
        *(node(*each) for each in nodes),
    ]


def test_nodes_of_one_call_that_follow_each_other_are_one_backward_call() -> None:
    nodes = [("SinBackward0", 90, 95, 9), ("AddBackward0", 100, 110, 8)]
    events = composite(*nodes, ("MulBackward0", 120, 130, 7))
    found = FREE.join([*events, event("aten::neg", 125, 126)])
    forward, back = found.spans("U")
    assert (back["start_ns"], back["end_ns"]) == (100, 130)
    assert (back["kind"], back["phase"]) == (Kind.CALL, Phase.BACKWARD)
    assert back["flags"] == Flag.INFERRED
    for name in ("AddBackward0", "MulBackward0", "aten::neg"):
        assert (found.kind(name), found.owner(name)) == (Kind.OP, "U")
        assert (found.span(name)["owner"], found.phase(name)) == (back["id"], Phase.BACKWARD)
    made = found.spans("V")
    assert sorted(found.links(BACK)) == sorted(
        [(back["id"], forward["id"]), (made[1]["id"], made[0]["id"])]
    )


def test_another_calls_node_between_them_parts_them() -> None:
    nodes = [("AddBackward0", 100, 110, 8), ("SinBackward0", 112, 118, 9)]
    found = FREE.join(composite(*nodes, ("MulBackward0", 120, 130, 7)))
    assert found.times("U") == [(10, 50), (100, 110), (120, 130)]
    assert len(found.links(BACK)) == 3


def test_a_recorded_node_between_them_parts_them() -> None:
    nodes = [("AddBackward0", 100, 110, 8), ("MulBackward0", 120, 130, 7)]
    rows = [call(1, "A", 113, 117, phase=Phase.BACKWARD)]
    found = FREE.join([*composite(*nodes), node("ABackward", 112, 118, 3)], rows)
    assert found.times("U") == [(10, 50), (100, 110), (120, 130)]


def test_what_the_engine_did_for_them_and_for_parameters_is_theirs() -> None:
    nodes = [("AddBackward0", 100, 110, 8), ("MulBackward0", 120, 130, 7)]
    engine = [
        event("first", 98, 111, Role.ENGINE),
        event("for a parameter", 112, 118, Role.ENGINE),
        event("second", 119, 133, Role.ENGINE),
        event("later", 134, 140, Role.ENGINE),
    ]
    found = FREE.join([*composite(*nodes), *engine, node("AccumulateGrad", 113, 117)])
    assert found.times("U") == [(10, 50), (98, 133)]
    for name in ("first", "for a parameter", "AccumulateGrad", "second"):
        assert found.owner(name) == "U"
        assert found.phase(name) == Phase.BACKWARD
    assert found.owner("later") == ""


def test_a_node_inside_its_own_forward_call_stays_an_operator() -> None:
    events = [
        *(event("ns::U", 10, 200), event("aten::mul", 20, 30, sequence=7)),
        node("MulBackward0", 100, 110, 7),
        event("aten::neg", 105, 106),
    ]
    found = FREE.join(events)
    assert found.times("U") == [(10, 200)]
    assert (found.kind("MulBackward0"), found.owner("MulBackward0")) == (Kind.OP, "U")
    assert (found.owner("aten::neg"), found.phase("aten::neg")) == ("U", Phase.BACKWARD)


def test_a_forward_operator_of_the_join_before_is_remembered() -> None:
    before = FREE.join([event("ns::U", 10, 50), event("aten::mul", 20, 30, sequence=7)])
    made = int(before.span("U")["id"])
    later = World(unhooked="U", earlier=before.joined.forward)
    found = later.join([node("MulBackward0", 100, 110, 7)])
    assert found.kind("U") == Kind.CALL
    assert [target for _, target in found.links(BACK)] == [made]


def test_operators_in_a_recorded_call_make_its_nodes() -> None:
    events = [
        event("aten::mul", 20, 30, sequence=7),
        node("MulBackward0", 100, 110, 7),
    ]
    found = FREE.join(events, [call(1, "A", 10, 50)])
    assert found.times("A") == [(10, 50), (100, 110)]
    assert found.links(BACK) == [(int(found.spans("A")[1]["id"]), 1)]


def test_a_recorded_backward_call_is_joined_by_number_unless_it_is_already() -> None:
    events = [event("ns::A", 10, 50, sequence=4), node("ABackward", 100, 200, 4)]
    rows = [call(1, "A", 20, 40), call(2, "A", 110, 190, phase=Phase.BACKWARD)]
    assert FREE.join(events, rows).links(BACK) == [(2, 1)]
    told = World(hooked="A", linked=frozenset({2}))
    assert told.join(events, rows).links(BACK) == []


def test_the_engine_and_its_nodes_are_in_the_backward_phase_and_all_in_them() -> None:
    events = [
        event("engine", 10, 100, Role.ENGINE),
        event("aten::copy", 11, 12),
        node("SinBackward0", 20, 90),
        *(event("aten::cos", 30, 40), event("aten::sin", 200, 210)),
    ]
    found = FREE.join(events)
    for name in ("engine", "aten::copy", "SinBackward0", "aten::cos"):
        assert (name, found.phase(name), found.kind(name)) == (name, Phase.BACKWARD, Kind.OP)
    assert found.phase("aten::sin") == Phase.NONE


def test_forward_calls_in_a_node_that_computes_again_are_recomputation() -> None:
    events = [
        node("CheckpointBackward", 10, 100),
        *(event("ns::U", 20, 30), event("aten::sin", 22, 25)),
        *(node("VBackward", 40, 60), event("aten::cos", 42, 44)),
        event("CheckpointBackward", 200, 300),
        event("ns::V", 210, 220),
    ]
    found = FREE.join(events)
    assert found.phase("U") == found.phase("aten::sin") == Phase.RECOMPUTE
    assert found.phase("aten::cos") == Phase.BACKWARD
    assert [Phase(span["phase"]) for span in found.spans("V")] == [Phase.BACKWARD, Phase.FORWARD]


def test_calls_inside_a_recorded_recomputation_are_recomputation() -> None:
    rows = [call(1, "A", 0, 100, phase=Phase.RECOMPUTE)]
    found = FREE.join([event("ns::U", 10, 50), event("aten::sin", 20, 30)], rows)
    assert found.phase("U") == found.phase("aten::sin") == Phase.RECOMPUTE
