"""The smaller answers: paths, lanes, links, and choosing among rows."""

from __future__ import annotations

import pytest
from tests.builders import session, span

from opscope.analyse import OpRow, PathNode, lanes, link_records, paths, select, subs, summary
from opscope.errors import UsageError
from opscope.model import Kind, Lane, LinkKind


def test_paths_are_a_tree_with_sub_operators_as_leaves() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 100),
        span(2, "x", Kind.OP, 10, 30, owner=1),
        span(3, "B", Kind.CALL, 40, 90, owner=1),
        span(4, "x", Kind.OP, 50, 60, owner=3),
        span(5, "A", Kind.CALL, 200, 210),
    ]
    inner = PathNode(
        *("B", "python:B#1", "call", "none", 1, 50, 40),
        children=(PathNode("x", None, "op", "none", 1, 10, 10),),
    )
    leaf = PathNode("x", None, "op", "none", 1, 20, 20)
    assert paths(session(lines)) == (
        PathNode("A", "python:A#1", "call", "none", 2, 110, 40, children=(inner, leaf)),
    )


def test_recursion_is_a_path_of_its_own() -> None:
    lines = [span(i, "R", Kind.CALL, i, 100 - i, owner=i - 1) for i in range(1, 5)]
    rows = summary(session(lines))
    assert [row.path for row in rows] == [("R",) * depth for depth in range(1, 5)]


def test_lanes_are_busy_without_waits_and_annotations() -> None:
    lines = [
        span(1, "A", Kind.CALL, 100, 200, lane="a"),
        span(2, "x", Kind.OP, 150, 250, lane="a"),
        span(3, "w", Kind.WAIT, 300, 400, lane="a"),
        span(4, "r", Kind.RANGE, 100, 500, lane="a"),
        span(5, "k", Kind.DEVICE, 120, 130, lane="b"),
    ]
    made = session(lines, lanes=[Lane("a", thread=5), Lane("b", kind="stream"), Lane("idle")])
    assert [
        (r.lane, r.kind, r.thread, r.spans, r.calls, r.busy_ns, r.first_ns, r.last_ns)
        for r in lanes(made)
    ] == [
        ("a", "thread", 5, 4, 1, 150, 0, 400),
        ("b", "stream", None, 1, 0, 10, 20, 30),
        ("idle", "thread", None, 0, 0, 0, None, None),
    ]


def test_links_are_recorded_or_follow_and_each_is_there_once() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 100),
        span(2, "x", Kind.OP, 10, 30, owner=1, submitted_ns=5),
        span(3, "y", Kind.OP, 30, 40, owner=1),
        span(4, "w", Kind.WAIT, 50, 60, owner=1, submitted_ns=5),
        span(5, "job", Kind.TASK, 50, 60, owner=1, lane="t"),
        span(6, "z", Kind.OP, 200, 210, submitted_ns=190),
    ]
    made = session(lines, links=[(LinkKind.LAUNCH, 2, 77), (LinkKind.PUSH, 1, 2)])
    assert [tuple(record.values()) for record in link_records(made)] == [
        ("launch", 2, 77),
        ("push", 1, 2),
        ("spawn", 1, 5),
    ]


def test_self_time_of_a_call_is_what_its_own_parts_say() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 100),
        span(2, "B", Kind.CALL, 10, 90, owner=1),
        span(3, "mine", Kind.OP, 20, 30, owner=2),
        span(4, "nobody's", Kind.OP, 40, 50),
    ]
    (row,) = [row for row in subs(session(lines, pauses=[(0, 60, 65)])) if row.name == "B"]
    assert (row.total_ns, row.self_ns) == (75, 65)


def test_what_is_not_measured_sorts_last() -> None:
    lines = [
        span(1, "A", Kind.CALL, 100, 200),
        span(2, "B", Kind.CALL, 300, 310, submitted_ns=290),
        span(3, "C", Kind.CALL, 400, 410, submitted_ns=400),
    ]
    rows = select(summary(session(lines)), OpRow.KEYS, sort="queue_ns")
    assert [(row.op, row.queue_ns) for row in rows] == [("B", 10), ("C", 0), ("A", None)]


def test_texts_sort_rising() -> None:
    lines = [span(i, name, Kind.CALL, i * 10, i * 11) for i, name in enumerate("bca", 1)]
    rows = select(summary(session(lines)), OpRow.KEYS, sort="path", limit=2)
    assert [row.op for row in rows] == ["a", "b"]


def test_only_keys_of_the_contract_sort() -> None:
    with pytest.raises(UsageError, match="untracked_ns"):
        select((), OpRow.KEYS, sort="node")
