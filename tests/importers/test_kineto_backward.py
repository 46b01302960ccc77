"""Forward and backward calls in PyTorch traces: functions, generated nodes, checkpoints."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from opscope.analyse.calls import calls
from opscope.importers import Member, Options, read
from opscope.model import LinkKind, Session

Event = dict[str, Any]
MAIN, ENGINE = 11, 12
_EVALUATE = "autograd::engine::evaluate_function: "


def op(name: str, at: int, us: int, number: int | None = None, tid: int = MAIN) -> Event:
    """An operator; nodes and what is around them run on the engine's thread."""
    args = {} if number is None else {"Sequence number": number, "Fwd thread id": 0}
    if tid == ENGINE and number is not None:
        args["Fwd thread id"] = 1
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": tid, "ts": at, "dur": us}
    return {**event, "args": args}


def node(name: str, at: int, us: int, number: int) -> list[Event]:
    """A node with the engine around it."""
    return [
        op(_EVALUATE + name, at, us, number, ENGINE),
        op(name, at + 1, us - 2, number, ENGINE),
    ]


def loaded(*events: Event | list[Event], custom: tuple[str, ...] = ()) -> Session:
    flat = [each for some in events for each in (some if isinstance(some, list) else [some])]
    text = json.dumps({"schemaVersion": 1, "traceEvents": flat})
    return read(Member("x", lambda: io.BytesIO(text.encode())), Options(custom))


def told(session: Session) -> list[tuple[str, str, int, int]]:
    """(operator, phase, start in us, sub-operators) of each call, by start."""
    first = session.processes[0].start_ns
    return [(one.op, one.phase, (first + one.start_ns) // 1000, one.subs) for one in calls(session)]


def back(session: Session) -> list[tuple[int, int]]:
    """Of each backward call the start and that of its forward call, in us."""
    starts = {int(row["id"]): int(row["start_ns"]) // 1000 for row in session.spans}
    chosen = session.links[session.links["kind"] == LinkKind.BACKWARD]
    return sorted((starts[int(one["source"])], starts[int(one["target"])]) for one in chosen)


def test_a_function_of_the_user_s_is_called_forward_and_backward() -> None:
    session = loaded(
        op("Square", 10, 20, 4),
        op("aten::mul", 12, 5, 4),
        op("Square", 40, 20, 5),
        op("aten::mul", 42, 5, 5),
        op("aten::sum", 70, 5, 6),
        node("SumBackward0", 100, 10, 6),
        node("SquareBackward", 120, 20, 5),
        op("aten::mul", 125, 5, tid=ENGINE),
        node("SquareBackward", 150, 20, 4),
        op("aten::mul", 155, 5, tid=ENGINE),
        op("aten::mul", 158, 5, tid=ENGINE),
    )
    assert [(one.name, one.kind) for one in session.ops] == [("Square", "autograd.Function")]
    assert told(session) == [
        ("Square", "forward", 10, 1),
        ("Square", "forward", 40, 1),
        ("Square", "backward", 121, 1),
        ("Square", "backward", 151, 2),
    ]
    assert back(session) == [(121, 40), (151, 10)]


def test_a_node_of_torch_s_or_a_built_in_function_is_none_of_the_user_s() -> None:
    session = loaded(
        op("aten::mul", 10, 5, 1),
        op("CheckpointFunction", 20, 5, 2),
        node("CompiledFunctionBackward", 80, 10, 3),
        node("CheckpointFunctionBackward", 100, 10, 2),
        node("MulBackward0", 120, 10, 1),
    )
    assert session.ops == ()
    assert told(session) == []


def test_a_custom_op_s_gradient_is_its_backward_call() -> None:
    wrapper = "GeneratedBackwardFor_lib_scale_default"
    session = loaded(
        op("lib::scale", 10, 50, 3),
        op(wrapper, 15, 40, 3),
        op("lib::scale", 20, 30),
        op("aten::mul", 25, 10),
        node(f"{wrapper}Backward", 100, 30, 3),
        op("aten::neg", 110, 10, tid=ENGINE),
    )
    assert [(one.name, one.kind) for one in session.ops] == [("lib::scale", "torch.library")]
    assert told(session) == [
        ("lib::scale", "forward", 10, 1),
        ("lib::scale", "backward", 101, 1),
    ]
    assert back(session) == [(101, 10)]


def test_a_custom_op_s_gradient_is_known_by_name_where_its_forward_call_is_not() -> None:
    """The recording began in between."""
    session = loaded(
        node("GeneratedBackwardFor_lib_scale_defaultBackward", 100, 30, 3),
        op("aten::neg", 110, 10, tid=ENGINE),
        op("lib::scale", 200, 10, 9),
    )
    assert told(session) == [
        ("lib::scale", "backward", 101, 1),
        ("lib::scale", "forward", 200, 0),
    ]
    assert back(session) == []


def test_nodes_made_inside_a_custom_operator_are_its_backward_call() -> None:
    session = loaded(
        op("lib::pair", 10, 50, 3),
        op("aten::mul", 15, 10, 3),
        op("aten::exp", 30, 10, 4),
        node("ExpBackward0", 100, 10, 4),
        node("MulBackward0", 112, 10, 3),
        op("aten::mul", 114, 5, tid=ENGINE),
    )
    forward, backward = told(session)
    assert forward == ("lib::pair", "forward", 10, 2)
    assert backward[:3] == ("lib::pair", "backward", 100)
    assert back(session) == [(100, 10)]


def test_what_a_checkpoint_computes_again_is_recomputed() -> None:
    session = loaded(
        op("CheckpointFunction", 10, 50, 3),
        op("lib::scale", 20, 10),
        op("aten::mul", 22, 5),
        node("CheckpointFunctionBackward", 100, 60, 3),
        op("lib::scale", 110, 20, 4, tid=ENGINE) | {"args": {"Sequence number": 4}},
        op("aten::mul", 115, 5, tid=ENGINE),
        op("aten::neg", 140, 5, tid=ENGINE),
    )
    assert told(session) == [
        ("lib::scale", "forward", 20, 1),
        ("lib::scale", "recompute", 110, 1),
    ]


@pytest.mark.parametrize("arrows", [True, False])
def test_two_forward_threads_count_apart_where_arrows_tell_them(arrows: bool) -> None:
    """Nodes name their forward thread by a number of torch's own; arrows say which lane that is."""
    other = [{**event, "tid": 13} for event in (op("lib::b", 10, 20, 1), op("lib::b", 40, 5, 2))]
    nodes = node("FirstBackward0", 100, 10, 1), node("OtherBackward0", 120, 10, 1)
    for event in nodes[1]:
        event["args"]["Fwd thread id"] = 2
    flows: list[Event] = []
    for key, (tid, at) in enumerate(((MAIN, 101), (13, 121))):
        flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": key, "pid": 7}
        flows.append({**flow, "ph": "s", "tid": tid, "ts": 10})
        flows.append({**flow, "ph": "f", "tid": ENGINE, "ts": at, "bp": "e"})
    session = loaded(op("lib::a", 10, 20, 1), *other, *nodes, flows if arrows else [])
    linked = {(name, at) for name, phase, at, _ in told(session) if phase == "backward"}
    if arrows:
        assert linked == {("lib::a", 101), ("lib::b", 121)}
    else:  # the lane with most numbers is taken for both, which is a guess
        assert {name for name, _ in linked} == {"lib::b"}
