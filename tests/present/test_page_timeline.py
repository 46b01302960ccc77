"""What the timeline's data say, read back by another reader than the page's."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import op, session, span

from opscope.analyse import calls, own_time
from opscope.model import Flag, Kind, LinkKind, Phase, Session
from opscope.present.page import timeline
from opscope.present.page.packing import signed, steps, varints

CALL, OP, TASK, DEVICE, STEP = Kind.CALL, Kind.OP, Kind.TASK, Kind.DEVICE, Kind.STEP


def integers(text: str) -> list[int]:
    """Numbers in base 128 as Python's own, of any size."""
    found, value, shift = [], 0, 0
    for octet in base64.b64decode(text, validate=True):
        value |= (octet & 127) << shift
        shift += 7
        if octet < 128:
            found.append(value)
            value, shift = 0, 0
    assert shift == 0
    return found


def unsigned(value: int) -> int:
    return -(value + 1) // 2 if value % 2 else value // 2


@dataclass
class Shown:
    """A slice as the page has it."""

    lane: str
    depth: int
    start: int
    end: int
    name: str
    full: str
    kind: str
    id: int
    owner: int | None = None
    texts: list[str | None] = field(default_factory=list)


def read(packed: dict[str, Any]) -> list[Shown]:
    packed = json.loads(json.dumps(packed, allow_nan=False))
    columns = [integers(packed[key]) for key in ("gap", "length", "face", "id", "owner")]
    assert len({len(column) for column in columns}) == 1
    found: list[Shown] = []
    last, at = 0, 0
    for lane, depth, size in packed["rows"]:
        moment = 0
        for _ in range(size):
            gap, length, face, ident, back = (column[at] for column in columns)
            start = moment + gap
            moment = start + length
            last += unsigned(ident)
            texts = [None if n < 0 else packed["texts"][n] for n in packed["faces"][face]]
            name, full, kind = (str(text) for text in texts[:3])
            place = packed["lanes"][lane]["name"]
            found.append(Shown(place, depth, start, moment, name, full, kind, last, None, texts))
            found[-1].owner = at - unsigned(back) if back else None
            at += 1
    assert at == len(columns[0])
    return found


def arrows_of(packed: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """(kind, id it leaves, id it ends at, moment it leaves), as the page draws them."""
    shown, raw = read(packed), packed["arrows"]
    target, found = 0, []
    columns = (integers(raw[key]) for key in ("target", "source", "kind", "late"))
    for step, back, kind, late in zip(*columns, strict=True):
        target += step
        source = shown[target - unsigned(back)]
        found.append((raw["kinds"][kind], source.id, shown[target].id, source.start + late))
    return found


def two_lanes() -> Session:
    a, b = op("A"), op("B")
    return session(
        [
            span(1, a, CALL, 100, 1100, cpu_ns=1000, phase=Phase.FORWARD, flags=Flag.FAILED),
            span(2, "mul", OP, 200, 300, owner=1, cpu_ns=100),
            span(3, b, CALL, 400, 700, owner=1, cpu_ns=300),
            span(4, "add", OP, 500, 600, owner=3, cpu_ns=100),
            span(
                5,
                "job",
                TASK,
                450,
                900,
                owner=1,
                lane="pool",
                submitted_ns=420,
                submitted_lane="main",
            ),
            span(6, "sub", OP, 500, 600, owner=1, lane="pool"),
            span(7, a, CALL, 2000, 2500, cpu_ns=500, phase=Phase.BACKWARD),
            span(8, "alone", OP, 3000, 3100),
            span(9, "kernel", DEVICE, 800, 1900, owner=1, lane="stream"),
        ],
        links=[(LinkKind.BACKWARD, 7, 1), (LinkKind.LAUNCH, 2, 9)],
    )


def test_every_span_and_every_stretch_of_own_time_is_there_once() -> None:
    made = two_lanes()
    shown = read(timeline.packed(made))
    spans, zero = made.spans, made.start_ns
    assert sorted(s.id for s in shown if s.kind != "own") == spans["id"].tolist()
    by_id = {s.id: s for s in shown if s.kind != "own"}
    for row in spans:
        found = by_id[int(row["id"])]
        assert (found.start, found.end) == (row["start_ns"] - zero, row["end_ns"] - zero)
        assert found.lane == made.lanes[row["lane"]].name
        owner = None if found.owner is None else shown[found.owner].id
        assert owner == (int(row["owner"]) or None)
    own = own_time(made)
    columns = (spans["id"][own.call], own.start_ns - zero, own.end_ns - zero)
    expected = zip(*(column.tolist() for column in columns), strict=True)
    stretches = [s for s in shown if s.kind == "own"]
    got = [(shown[s.owner].id, s.start, s.end) for s in stretches if s.owner is not None]
    assert sorted(got) == sorted(expected)
    assert {s.name for s in shown if s.kind == "own"} == {"pure_python"}


def test_depths_nest_and_rows_do_not_overlap() -> None:
    shown = read(timeline.packed(two_lanes()))
    depth = {s.id: s.depth for s in shown if s.kind != "own"}
    assert depth == {1: 0, 2: 1, 3: 1, 4: 2, 5: 0, 6: 1, 7: 0, 8: 0, 9: 0}
    for before, after in pairwise(shown):
        if (before.lane, before.depth) == (after.lane, after.depth):
            assert before.end <= after.start


def test_a_face_tells_what_the_details_show() -> None:
    shown = {s.id: s for s in read(timeline.packed(two_lanes())) if s.kind != "own"}
    key = "python:A#1"
    # Flags come last, each a text of its own.
    names = ["A", "A", "call", "forward", "A", key, None, "failed", "outlived"]
    assert shown[1].texts == names
    assert shown[4].texts == ["add", "A::B::add", "op", "none", "B", "python:B#1", None]
    assert shown[7].texts[:4] == ["_backward_A", "_backward_A", "call", "backward"]
    assert shown[8].texts == ["alone", "alone", "op", "none", None, None, None]


def test_times_of_calls_are_those_of_the_analysis_and_unknown_is_not_zero() -> None:
    made = session(
        [
            span(1, "A", CALL, 0, 1000, cpu_ns=600),
            span(2, "B", CALL, 2000, 3000),
            span(3, "mul", OP, 2100, 2200, owner=2),
        ],
        sight=[],
    )
    packed = timeline.packed(made)
    order = [s.id for s in read(packed) if s.kind == "call"]
    rows = {row.call: row for row in calls(made)}
    for key in timeline.TIMES:
        told = [value - 1 if value else None for value in integers(packed["calls"][key])]
        assert told == [getattr(rows[call], key) for call in order], key
    second = order.index(2)
    assert integers(packed["calls"]["python_ns"])[second] == 0, "not measured"
    assert integers(packed["calls"]["sub_ns"])[second] == 101


def test_arrows_leave_what_was_running_and_end_where_the_work_starts() -> None:
    found = arrows_of(timeline.packed(two_lanes()))
    assert sorted(found) == [
        ("backward", 1, 7, 0),
        ("launch", 2, 9, 100),
        # When the task was handed over B was running, innermost.
        ("spawn", 3, 5, 320),
    ]


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "\x00\x1b[31m\u202e", "x" * 300, "\ud800"]
)
def test_any_name_arrives_as_it_is(name: str) -> None:
    made = session([span(1, name, CALL, 0, 10), span(2, name, OP, 2, 3, owner=1)])
    text = json.dumps(timeline.packed(made))
    assert text.isascii()
    assert {s.name for s in read(json.loads(text)) if s.kind != "own"} == {name}


def test_nothing_is_lost_of_times_beyond_a_double() -> None:
    late = 2**62 + 1
    made = session([span(1, "A", OP, late, late + 3), span(2, "B", OP, late + 5, late + 2**53 - 1)])
    packed = timeline.packed(made)
    times = [(s.start, s.end) for s in read(packed)]
    assert times == [(0, 3), (5, 2**53 - 1)]
    assert packed["length_ns"] == 2**53 - 1


def test_overlapping_spans_of_one_lane_get_a_second_lane() -> None:
    made = session([span(1, "A", OP, 0, 10), span(2, "B", OP, 5, 15), span(3, "C", OP, 6, 7)])
    packed = timeline.packed(made)
    assert [lane["name"] for lane in packed["lanes"]] == ["main", "main (2)"]
    assert sorted((s.id, s.lane) for s in read(packed))[:2] == [(1, "main"), (2, "main (2)")]


def test_an_empty_session_has_no_rows() -> None:
    packed = timeline.packed(Session())
    assert packed["rows"] == []
    assert read(packed) == []


def busy(count: int = 3000) -> Session:
    """Two lanes: on one few spans, on the other many, with calls and steps among them."""
    lines = [span(1, "step", STEP, 0, 100 * count)]
    for number in range(2, count):
        at = 100 * number
        if number % 50 == 0:
            lines.append(span(number, "A", CALL, at, at + 90))
        else:
            lines.append(span(number, "op", OP, at, at + 1 + number * 37 % 89))
    lines += [span(count + k, "rare", OP, 10_000 * k, 10_000 * k + 2, lane="b") for k in range(20)]
    return session(lines)


def test_too_many_are_thinned_and_it_is_told() -> None:
    made = busy()
    limit = 500
    packed = timeline.packed(made, limit)
    shown = [s for s in read(packed) if s.kind != "own"]
    left = packed["left"]
    assert len(shown) == limit
    assert (left["spans"], left["of_spans"]) == (len(made.spans) - limit, len(made.spans))
    kinds = made.spans["kind"]
    must = made.spans["id"][(kinds == CALL) | (kinds == STEP)]
    assert set(must.tolist()) <= {s.id for s in shown}
    assert sum(s.name == "rare" for s in shown) == 20, "quiet regions keep all they have"
    where = np.array(left["where"]).reshape(-1, 3)
    assert where[:, 2].sum() == left["spans"] + left["own"]
    assert set(where[:, 0].tolist()) == {0}, "only the busy lane lost any"
    assert where[:, 1].max() < left["bins"]


def test_calls_crowded_in_one_region_stay_before_anything_else() -> None:
    lines = [span(n, "A", CALL, 10 * n, 10 * n + 1) for n in range(1, 101)]
    lines += [span(n, "op", OP, 1000 * n, 1000 * n + 500) for n in range(101, 2000)]
    shown = read(timeline.packed(session(lines), 300))
    assert sum(s.kind == "call" for s in shown) == 100
    assert sum(s.kind == "op" for s in shown) == 200


def test_what_stays_in_a_region_is_the_longest() -> None:
    made = busy()
    packed = timeline.packed(made, 500)
    stay = {s.id for s in read(packed) if s.kind != "own"}
    spans, width = made.spans, packed["length_ns"] / packed["left"]["bins"]
    plain = (spans["kind"] == OP) & (spans["lane"] == 0)
    kept = np.isin(spans["id"], list(stay))
    length = spans["end_ns"] - spans["start_ns"]
    region = (spans["start_ns"] // width).astype(int)
    compared = 0
    for number in np.unique(region[plain]):
        here = plain & (region == number)
        if (here & kept).any() and (here & ~kept).any():
            assert length[here & kept].min() >= length[here & ~kept].max()
            compared += 1
    assert compared > 20


def test_calls_too_are_thinned_where_there_are_too_many_of_them() -> None:
    lines = [span(n, "A", CALL, 100 * n, 100 * n + 1 + n % 90, cpu_ns=1) for n in range(1, 400)]
    packed = timeline.packed(session(lines), 100)
    shown = read(packed)
    assert sum(s.kind == "call" for s in shown) == 100
    assert sum(s.kind == "own" for s in shown) <= 100
    assert all(s.owner is not None for s in shown if s.kind == "own")
    assert packed["left"]["own"] == packed["left"]["of_own"] - sum(s.kind == "own" for s in shown)


def test_an_owner_that_is_left_out_is_passed_over() -> None:
    lines = [span(1, "Outer", CALL, 0, 10_000)]
    for n in range(100):  # short calls, each with a long task elsewhere
        lines.append(span(2 + n, "Inner", CALL, 50 * n, 50 * n + 1, owner=1))
        lines.append(span(500 + n, "x", CALL, 90 * n, 90 * n + 80, owner=2 + n, lane="b"))
    shown = read(timeline.packed(session(lines), 101))
    orphans = [s for s in shown if s.id >= 500 and s.kind == "call"]
    owners = {shown[s.owner].id for s in orphans if s.owner is not None}
    assert all(s.owner is not None for s in orphans)
    assert 1 in owners


def test_an_arrow_from_a_slice_that_is_left_out_leaves_what_is_around_it() -> None:
    lines = [span(1, "A", CALL, 0, 10_000)]
    for n in range(50):
        lines.append(span(100 + n, "short", OP, 100 * n, 100 * n + 2, owner=1))
        lines.append(span(200 + n, "work", DEVICE, 100 * n + 20, 100 * n + 90, lane="stream"))
    links = [(LinkKind.LAUNCH, 100 + n, 200 + n) for n in range(50)]
    found = arrows_of(timeline.packed(session(lines, links=links), 51))
    assert found == [("launch", 1, 200 + n, 100 * n) for n in range(50)]


def test_a_slice_takes_few_bytes() -> None:
    made = busy(20_000)
    packed = timeline.packed(made)
    count = len(read(packed))
    octets = sum(len(packed[key]) for key in ("gap", "length", "face", "id", "owner"))
    assert octets / count < 12
    assert len(json.dumps(packed)) / len(made.spans) < 20


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_numbers_of_any_size_come_back(values: list[int]) -> None:
    assert integers(varints(np.array(values, np.int64))) == values


@given(st.lists(st.integers(-(2**61), 2**61)))
def test_signs_and_steps_come_back(values: list[int]) -> None:
    column = np.array(values, np.int64)
    back = [unsigned(value) for value in integers(varints(signed(column)))]
    assert back == values
    assert np.cumsum(steps(column)).tolist() == values
