"""What a host says that it could not see is None in every answer, and never 0."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import op, session, span

from opscope.analyse import PART_KEYS, calls, summary
from opscope.model import Kind, Session, Sight

ELSEWHERE = ("elsewhere_ns", "elsewhere_union_ns", "elsewhere_python_ns")
OPERATORS = {host: op("A", host=host) for host in ("torch", "jax", "mxnet", "chrome", "python")}


def seen_by(sight: Sight, host: str, *, lane: str = "main") -> Session:
    """Two calls of an operator of that host, one that did nothing and one with all there is."""
    made = OPERATORS[host]
    lines = [
        span(1, made, Kind.CALL, 0, 100, cpu_ns=100),
        span(2, made, Kind.CALL, 200, 300, cpu_ns=100),
        span(3, "dispatch", Kind.DISPATCH, 200, 210, owner=2),
        span(4, "mul", Kind.OP, 220, 250, owner=2),
        span(5, "far", Kind.OP, 220, 260, owner=2, lane="other"),
    ]
    return session(lines, sight=[sight])


def missing(word: str, host: str) -> Sight:
    return Sight(host, sees=("calls",), misses={word: "for a reason"})


@pytest.mark.parametrize(
    ("format", "host", "word", "keys"),
    [
        ("torch", "torch", "sub-operators", ("sub_ns", "subs")),
        ("torch", "torch", "dispatch of custom_op and backward", ("dispatch_ns",)),
        ("kineto", "torch", "dispatch", ("dispatch_ns",)),
        ("kineto", "torch", "tasks", ELSEWHERE),
        ("xplane", "jax", "tasks", ELSEWHERE),
        ("chrome", "chrome", "tasks", ELSEWHERE),
        ("mxnet", "mxnet", "other threads", ELSEWHERE[2:]),
    ],
)
def test_nothing_is_not_measured_and_something_is(
    format: str, host: str, word: str, keys: tuple[str, ...]
) -> None:
    whole = seen_by(Sight(format, sees=("calls",)), host)
    blind = seen_by(missing(word, format), host)
    for before, after in zip(calls(whole), calls(blind), strict=True):
        for key in type(after).KEYS:
            known: Any = getattr(before, key)
            expected = None if key in keys and known == 0 else known
            assert getattr(after, key) == expected, key
    assert {getattr(calls(blind)[0], key) for key in keys} == {None}
    # The sum over both is of what was measured.
    (row,) = summary(blind)
    assert [getattr(row, key) for key in keys] == [
        getattr(calls(whole)[1], key) or None for key in keys
    ]


@pytest.mark.parametrize("word", ["sub-operators", "dispatch", "tasks"])
def test_another_host_says_nothing_about_it(word: str) -> None:
    lines = [span(1, OPERATORS["python"], Kind.CALL, 0, 100)]
    made = session(lines, sight=[Sight("python", sees=("all waits",)), missing(word, "torch")])
    (row,) = calls(made)
    assert (row.sub_ns, row.subs, row.dispatch_ns, row.elsewhere_ns) == (0, 0, 0, 0)


def test_the_rest_still_adds_up() -> None:
    for word in ("sub-operators", "dispatch", "tasks"):
        for row in (*calls(made := seen_by(missing(word, "torch"), "torch")), *summary(made)):
            assert sum(getattr(row, key) or 0 for key in PART_KEYS[1:]) == row.wall_ns


def test_of_several_hosts_only_the_blind_one_did_not_see_it() -> None:
    lines = [
        span(number, OPERATORS[host], Kind.CALL, 100 * number, 100 * number + 50, cpu_ns=50)
        for number, host in enumerate(("torch", "python"), 1)
    ]
    rows = calls(session(lines, sight=[missing("sub-operators", "torch"), Sight("python")]))
    assert [(row.op, row.sub_ns, row.subs) for row in rows] == [("A", None, None), ("A", 0, 0)]
