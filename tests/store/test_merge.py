"""Several recordings as one: everything re-based, nothing mixed up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import op, session, span

from opscope.model import Kind, Lane, LinkKind, Process, Session, Sight
from opscope.store import load, merge

CALL, OP = Kind.CALL, Kind.OP


def process(pid: int, machine: str = "m", offset_ns: int = 10**18) -> Process:
    """A process whose wall clock stands that far before its monotonic one."""
    return Process(
        pid, machine=machine, start_ns=1000, end_ns=9000, anchors=((1000, 1000 + offset_ns),)
    )


def one(pid: int, machine: str = "m", offset_ns: int = 10**18) -> Session:
    return session(
        [
            span(1, "outer", CALL, 2000, 3000, submitted_ns=1500, submitted_lane="pusher"),
            span(2, f"only in {pid}", OP, 2100, 2200, owner=1),
        ],
        links=[(LinkKind.PUSH, 1, 2)],
        pauses=[(0, 2300, 2400)],
        drops=[(0, 2500, 2600, pid)],
        processes=[process(pid, machine, offset_ns)],
    )


def test_ids_names_lanes_and_processes_are_re_based() -> None:
    both = merge([one(7), one(8)])
    assert both.spans["id"].tolist() == [1, 2, 3, 4]
    assert both.spans["owner"].tolist() == [0, 1, 0, 3]
    names = [both.names[name] for name in both.spans["name"]]
    assert names == ["outer", "only in 7", "outer", "only in 8"]
    assert [lane.process for lane in both.lanes] == [0, 0, 1, 1]
    lanes = [(both.lanes[s["lane"]], both.lanes[s["submitted_lane"]]) for s in both.spans]
    assert [(a.name, a.process, b.name, b.process) for a, b in lanes] == [
        ("main", 0, "pusher", 0), ("main", 0, "main", 0),
        ("main", 1, "pusher", 1), ("main", 1, "main", 1),
    ]  # fmt: skip
    assert both.links.tolist() == [(LinkKind.PUSH, 1, 2), (LinkKind.PUSH, 3, 4)]
    assert both.pauses.tolist() == [(0, 2300, 2400), (1, 2300, 2400)]
    assert both.drops.tolist() == [(0, 2500, 2600, 7), (1, 2500, 2600, 8)]
    assert [p.pid for p in both.processes] == [7, 8]


def test_an_operator_of_one_key_is_one_operator_and_of_another_is_another() -> None:
    same, moved, second = op("f"), op("f", file="b.py", line=9), op("f", registration=2)
    sessions = [
        session([span(1, which, CALL, 0, 10), span(2, "f", OP, 1, 2, owner=1)])
        for which in (same, moved, second)
    ]
    both = merge(sessions)
    assert [found.key for found in both.ops] == [same.key, second.key]
    calls = both.spans[both.spans["kind"] == CALL]["name"]
    assert calls.tolist() == [both.op_names[0], both.op_names[0], both.op_names[1]]
    plain = set(both.spans[both.spans["kind"] == OP]["name"].tolist())
    assert len(plain) == 1
    assert plain.isdisjoint(both.op_names)


def test_the_clock_of_another_machine_is_moved_onto_the_first() -> None:
    away = 5 * 10**12
    both = merge([one(7), one(8, "elsewhere", 10**18 + away)])
    assert both.spans["start_ns"].tolist()[2:] == [2000 + away, 2100 + away]
    assert both.spans["submitted_ns"].tolist() == [1500, 0, 1500 + away, 0]
    assert both.pauses.tolist()[1] == (1, 2300 + away, 2400 + away)
    moved = both.processes[1]
    assert (moved.start_ns, moved.end_ns) == (1000 + away, 9000 + away)
    assert moved.anchors == ((1000 + away, 1000 + away + 10**18),)


def test_one_clock_stays_as_it_is() -> None:
    far, near = 10**18 + 5 * 10**12, 10**18 + 999_999_999
    for machine, offset in (("m", far), ("elsewhere", near)):
        assert merge([one(7), one(8, machine, offset)]).spans["start_ns"].max() == 2100


def test_a_link_to_a_span_that_was_lost_finds_nobody_elses() -> None:
    lost = session([span(1, "f", CALL, 0, 9)], links=[(LinkKind.BACKWARD, 1, 3)])
    orphan = session([span(1, "f", CALL, 0, 9), span(2, "mul", OP, 1, 2, owner=4)])
    both = merge([lost, orphan, one(9)])
    assert len(set(both.spans["id"].tolist())) == len(both.spans)
    assert 3 not in both.spans["id"]
    assert both.spans["owner"][2] not in both.spans["id"]


def test_sight_is_what_all_saw() -> None:
    seen = Sight("torch", "2.1", ("device", "cpu"), {"locks": "a"})
    less = Sight("torch", "2.2", ("cpu",), {"device": "no GPU"})
    (both,) = merge(
        [session([], sight=[seen]), session([], sight=[less]), session([], sight=[])]
    ).sight
    assert both == Sight("torch", "2.1, 2.2", ("cpu",), {"locks": "a", "device": "no GPU"})


def test_one_session_is_itself_and_merging_goes_on(whole: bytes, tmp_path: Path) -> None:
    alone = one(7)
    assert merge([alone]) is alone
    paths = [tmp_path / f"{n}.opscope" for n in range(3)]
    for path in paths:
        path.write_bytes(whole)
    at_once = load(paths)
    stepwise = merge([load(paths[:2]), load(paths[2:])])
    assert at_once.spans.tolist() == stepwise.spans.tolist()
    assert at_once.lanes == stepwise.lanes
    assert at_once.lanes[2] == Lane("MainThread", "thread", 2, 77)
    assert at_once.samples == stepwise.samples
    assert len(at_once.samples) == 3


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_empty_session_changes_nothing(order: tuple[int, int]) -> None:
    both = merge([[Session(), one(7)][n] for n in order])
    assert both.spans["id"].tolist() == [1, 2]
    assert both.pauses["process"].tolist() == [order.index(1)]
