"""Names are never read: whatever an operator is called, it is classified right, and survives."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import free, owned, rows
from tests.hosts.engine.ops import add_one, define, engine_of

import opscope
from opscope import engine as nd

LONG = "n" * 127
NAMES = [
    "Custom",
    "CustomOperatorWait",
    "A::B",
    "A::pure_python",
    "_backward_G",
    "G",
    "quote \" and ' here",
    "back\\slash",
    "new\nline",
    "nul\0byte",
    "emoji \N{ROCKET}",
    "lone \ud83d surrogate",
    "n" * 300,
    LONG + "one",
    LONG + "two",
    "[red]markup[/red]",
    "</script><script>alert(1)</script>",
    "_plus_scalar",
]


@pytest.fixture(scope="module")
def session():  # type: ignore[no-untyped-def]
    """One forward and one backward call of an operator of each name."""
    with engine_of("pool"):
        ops = [define(name, add_one) for name in NAMES]
        with opscope.profile() as profile:
            for op in ops:
                x = nd.ones((2, 2))
                x.attach_grad()
                with nd.autograd.record():
                    y = op(x)
                y.backward()
                x.grad.asnumpy()
            nd.waitall()
        return profile.session


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_one_operator_with_two_calls(session, name: str) -> None:  # type: ignore[no-untyped-def]
    check(session)
    forward, backward = rows(session, name, "forward"), rows(session, name, "backward")
    assert (len(forward), len(backward)) == (1, 1)
    assert backward[0].forward_call == forward[0].call
    assert forward[0].key == backward[0].key
    for call in (*forward, *backward):
        assert owned(session, call) == {"_plus_scalar": 1, "_copyto": 1}
        assert call.parent is None


def test_regular_operators_are_not_taken_for_sub_operators(session) -> None:  # type: ignore[no-untyped-def]
    assert free(session)["_plus_scalar"] == 0
    assert free(session)["_ones"] >= len(NAMES)


def test_names_come_back_whole_from_the_file_and_every_export(session, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for ending in ("trace.json", "spans.jsonl", "spans.csv"):
        opscope.export(session, tmp_path / ending)
    trace = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    from_trace = {event["args"].get("op") for event in trace["traceEvents"] if event["ph"] == "X"}
    lines = (tmp_path / "spans.jsonl").read_text("utf-8").splitlines()
    from_lines = {json.loads(line)["op"] for line in lines}
    with open(tmp_path / "spans.csv", newline="", encoding="utf-8") as file:
        cells = {row["op"] for row in csv.DictReader(file)}
    from_csv = {json.loads('"' + cell.replace('"', '\\"') + '"') for cell in cells}
    for found in (from_lines, from_csv):
        assert set(NAMES) <= found
    # Perfetto refuses files with half of a surrogate pair, also as JSON's escape.
    halves = {
        name: re.sub("[\ud800-\udfff]", lambda half: ascii(half[0])[1:-1], name) for name in NAMES
    }
    assert set(halves.values()) <= from_trace
    opscope.summary(session)


def test_a_name_registered_again_is_another_operator() -> None:
    with engine_of("pool"), opscope.profile() as profile:
        for _ in range(2):
            define("Twice", add_one)(nd.ones((2, 2))).asnumpy()
    keys = [row.key for row in rows(profile.session, "Twice")]
    assert len(set(keys)) == 2
    assert len([row for row in opscope.summary(profile.session) if row["op"] == "Twice"]) == 2


def test_an_empty_name_is_refused_at_registration() -> None:
    with pytest.raises(nd.RegistrationError, match="name"):
        nd.register("")
