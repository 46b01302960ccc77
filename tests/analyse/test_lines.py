"""Hot lines of a session: sums, shares, how sure they are, and redaction."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import op, session

from opscope import store
from opscope.analyse import lines, source_files
from opscope.analyse.redact import redacted
from opscope.model import Session

SWISH = op("Swish", qualified="mine.Swish")
RELU = op("Relu", qualified="mine.Relu")


def sample(line: int, ns: int, samples: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "op": SWISH.key,
        "phase": "forward",
        "file": "/home/ada/work/ops.py",
        "line": line,
        "function": "forward",
        "body_file": "/home/ada/work/ops.py",
        "body_line": line,
        "samples": samples,
        "ns": ns,
        **more,
    }


def sampled(*samples: dict[str, Any]) -> Session:
    return replace(session([], ops=[SWISH, RELU]), samples=samples)


def test_pieces_of_one_line_are_added_up() -> None:
    found = lines(sampled(sample(3, 100), sample(4, 50, 2), sample(3, 150, 4)))
    assert [(row.op, row.line, row.ns, row.samples, round(row.share, 4)) for row in found] == [
        ("Swish", 3, 250, 5, 0.8333),
        ("Swish", 4, 50, 2, 0.1667),
    ]
    assert {(row.op_ns, row.op_samples) for row in found} == {(300, 7)}


def test_phases_and_operators_have_shares_of_their_own_largest_first() -> None:
    found = lines(
        sampled(
            sample(3, 100),
            sample(9, 500, phase="backward"),
            sample(3, 300, op=RELU.key, phase="none"),
        )
    )
    assert [(row.op, row.phase, row.share) for row in found] == [
        ("Swish", "backward", 1.0),
        ("Relu", "none", 1.0),
        ("Swish", "forward", 1.0),
    ]


def test_a_line_knows_by_which_lines_it_was_reached() -> None:
    found = lines(sampled(*(sample(3, 1, body_line=body) for body in (12, 7, 12))))
    assert [row.body_lines for row in found] == [(7, 12)]


@pytest.mark.parametrize(("count", "margin"), [(1, 0.4), (100, 0.069), (10_000, 0.0069)])
def test_more_samples_make_it_surer(count: int, margin: float) -> None:
    first, second = lines(sampled(sample(3, count, count), sample(4, count, count)))
    assert first.margin == second.margin == pytest.approx(margin, rel=0.15)


def test_an_operator_the_session_does_not_know_keeps_its_key() -> None:
    assert [row.op for row in lines(sampled(sample(3, 1, op="x:gone#1")))] == ["x:gone#1"]


def test_samples_of_other_makers_are_left_alone() -> None:
    assert lines(sampled({"what": "else"}, {})) == ()


def test_a_file_is_known_by_all_that_was_in_it() -> None:
    source = {"source": "/home/ada/work/ops.py", "size": 5, "crc32": 9}
    found = source_files(sampled(source, sample(3, 1), {**source, "crc32": 8}, sample(1, 1)))
    assert found["/home/ada/work/ops.py"].seen == {(5, 9), (5, 8)}
    assert source_files(sampled(sample(3, 1)))["/home/ada/work/ops.py"].seen == frozenset()


def test_of_several_processes_the_samples_are_added_up() -> None:
    both = store.merge([sampled(sample(3, 100)), sampled(sample(3, 200))])
    assert [(row.ns, row.samples) for row in lines(both)] == [(300, 2)]


def test_redacted_lines_name_no_folder_and_keep_their_operator() -> None:
    secret = op("Swish", qualified="/home/ada/work.Swish")
    source = {"source": "/home/ada/work/ops.py", "size": 5, "crc32": 9}
    whole = replace(session([], ops=[secret]), samples=(source, sample(3, 100, op=secret.key)))
    hidden = redacted(whole)
    assert "ada" not in str(hidden.samples)
    (row,) = lines(hidden)
    assert (row.op, row.line) == ("Swish", 3)
    assert re.fullmatch(r"path-\d/ops.py", row.file)
    assert row.key == hidden.ops[0].key
    assert list(source_files(hidden)) == [row.file]
