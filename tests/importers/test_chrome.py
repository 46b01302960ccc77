"""Generic Chrome traces: each phase, each oddity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.importers.chrome_forests import findings_of, session_of

from opscope.importers import chrome
from opscope.importers.chrome import arrows as chrome_arrows
from opscope.model import Flag, Kind, LinkKind

HOSTILE = Path(__file__).parents[3] / "shared" / "traces" / "hostile"
CROSSINGS = "spans that begin inside another and end after it (kept as inside)"
EARLY, OPEN, STRAY = chrome.EARLY, chrome.OPEN, chrome.STRAY
NOT_CLOSED = "lists of events that are not closed"


def read(*events, **other):
    return session_of(json.dumps({"traceEvents": list(events), **other}).encode())


def spans(session):
    """Name, start and end in us; a star behind what never ended."""
    return [
        (
            session.names[row["name"]] + "*" * bool(row["flags"] & Flag.INCOMPLETE),
            row["start_ns"] / 1000,
            row["end_ns"] / 1000,
        )
        for row in session.spans
    ]


def lanes(session):
    return {session.names[row["name"]]: session.lanes[row["lane"]].name for row in session.spans}


def x(name, ts, dur, tid=1, **more):
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, **more}


@pytest.mark.parametrize(
    ("file", "expected", "findings"),
    [
        (
            "bex-interaction",
            [("A", 0, 2), ("B", 0, 2), ("C", 10, 12), ("D", 10, 12), ("F", 20, 22), ("E", 20, 21),
             ("G", 30, 32), ("H", 30, 31), ("J", 40, 42), ("I", 41, 42), ("K", 50, 52),
             ("L", 51, 52)],
            {},
        ),
        ("end-event-with-empty-stack", [("alpha", 0, 1)], {STRAY: 1}),
        (
            "end-non-top-of-stack",
            [("A", 0, 10), ("B*", 1, 11), ("Z", 10, 11)],
            {EARLY: 1, OPEN: 1, CROSSINGS: 1},
        ),
        ("invalid-x-nesting", [("alpha", 0, 10), ("beta", 5, 15)], {CROSSINGS: 1}),
        (
            "matching-x",
            [("alpha", 0, 10), ("beta", 1, 2), ("gamma", 1, 2), ("gamma", 5, 6), ("beta", 5, 6)],
            {},
        ),
        ("mismatched-name", [("alpha*", 0, 10)], {STRAY: 1, OPEN: 1}),
        (
            "multiprocess",
            [(name, 0, 1) for name in ("alpha", "beta", "gamma", "delta", "epsilon", "phi",
                                       "zeta", "eta")],
            {},
        ),
        ("not-enough-end-events", [("A*", 0, 11), ("A*", 1, 11), ("A", 10, 11)], {OPEN: 2}),
        ("only-begin-events", [("A*", 0, 2), ("B*", 1, 2), ("C*", 2, 2)], {OPEN: 3}),
        (
            "out-of-order-unbalanced-name",
            [("alpha", 0, 9), ("beta", 1, 10)],
            {EARLY: 1, CROSSINGS: 1},
        ),
        (
            "simple-partial",
            [("alpha", 0, 14), ("beta", 1, 13), ("gamma", 2, 7), ("epsilon", 7, 7)],
            {chrome.NO_LENGTH: 1, NOT_CLOSED: 1},
        ),
        (
            "simple-partial-trailing-comma",
            [("alpha", 0, 14), ("beta", 1, 13), ("gamma", 2, 7), ("epsilon", 7, 7)],
            {chrome.NO_LENGTH: 1, NOT_CLOSED: 1},
        ),
        ("unbalanced-args", [("A", 0, 10), ("A", 1, 9)], {}),
        ("zero-duration-events", [("A", 0, 10), ("B", 1, 1), ("C", 2, 2), ("D", 3, 3)], {}),
    ],
)  # fmt: skip
def test_hostile_files(file, expected, findings):
    path = HOSTILE / f"{file}.json"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    for block in (64, 1 << 20):
        session = session_of(path.read_bytes(), block=block)
        assert spans(session) == expected
        assert findings_of(session) == findings
        assert session.processes[0].damage == ""


def test_lanes_have_the_names_and_the_order_of_the_metadata():
    session = read(
        x("a", 0, 1, tid=2**40),
        x("b", 0, 1, tid=2),
        {**x("c", 0, 1), "pid": "other"},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "main"}},
        {"ph": "M", "name": "process_sort_index", "pid": "other", "args": {"sort_index": -1}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "worker"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2**40, "args": {"name": "worker"}},
        {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 2, "args": {"sort_index": "-5"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": "nothing"},
    )
    assert [(lane.name, lane.thread) for lane in session.lanes] == [
        ("process other: thread 1", 1),
        ("main: worker", 2),
        (f"main: worker ({2**40})", 0),
    ]
    assert lanes(session) == {
        "a": f"main: worker ({2**40})", "b": "main: worker", "c": "process other: thread 1"
    }  # fmt: skip


def test_ids_of_any_type_and_size_are_kept_apart():
    tids = [0, -1, 2**31, 2**64, 10**40, 10**40 + 1, "7", 7, 7.5, None]
    session = read(*(x(f"n{place}", 0, 1, tid=tid) for place, tid in enumerate(tids)))
    assert len(set(lanes(session).values())) == len(tids)
    bare = read({"ph": "X", "name": "a", "ts": 1, "dur": 1})
    assert (spans(bare), lanes(bare)) == ([("a", 1, 2)], {"a": "thread"})


def test_asynchronous_events_have_a_lane_for_each_id():
    def run(ph, name, ts, **more):
        return {"ph": ph, "cat": "io", "name": name, "ts": ts, "pid": 1, "tid": 1, **more}

    session = read(
        run("b", "load", 0, id=1), run("b", "load", 1, id="0x2"), run("b", "part", 2, id=1),
        run("e", "part", 3, id=1), run("n", "mark", 4, id=1), run("e", "load", 5, id=1),
        run("e", "load", 9, id="0x2"), run("b", "own", 0, id2={"local": 1}), run("e", "own", 1),
        run("e", "own", 2, id2={"local": 1}), run("S", "old", 3, id=5), run("F", "old", 4, id=5),
    )  # fmt: skip
    assert sorted(spans(session)) == [
        ("load", 0, 5), ("load", 1, 9), ("mark", 4, 4), ("old", 3, 4), ("own", 0, 2),
        ("part", 2, 3),
    ]  # fmt: skip
    assert {lane.name for lane in session.lanes} >= {"io 1", "io 0x2", "io 5"}
    assert findings_of(session) == {STRAY: 1}


def test_instants_are_ranges_of_no_length_and_counters_are_counted():
    session = read(
        x("a", 0, 10), *({"ph": ph, "name": ph, "ts": 5, "pid": 1, "tid": 1} for ph in "iIR"),
        {"ph": "C", "name": "memory", "ts": 1, "args": {"bytes": 3}}, {"ph": "P", "ts": 1},
        {"ph": "?", "ts": 3}, {}, x("note", 1, 2, cat="user_annotation"),
    )  # fmt: skip
    kinds = {session.names[row["name"]]: Kind(row["kind"]) for row in session.spans}
    assert kinds == {
        "a": Kind.OP, "i": Kind.RANGE, "I": Kind.RANGE, "R": Kind.RANGE, "note": Kind.RANGE
    }  # fmt: skip
    assert findings_of(session) == {
        "events left out: counters": 1,
        "events left out: samples": 1,
        "events left out: phase ?": 1,
        "events left out: objects without a phase": 1,
    }


def flow(ph, ts, tid=1, id=1, **more):
    return {"ph": ph, "cat": "c", "name": "n", "id": id, "ts": ts, "pid": 1, "tid": tid, **more}


def linked(session):
    names = {row["id"]: session.names[row["name"]] for row in session.spans}
    assert set(session.links["kind"].tolist()) <= {int(LinkKind.SPAWN)}
    return [(names[link["source"]], names[link["target"]]) for link in session.links]


def test_arrows_link_the_slices_around_their_ends():
    session = read(
        x("outer", 0, 10), x("inner", 2, 3), x("task", 20, 5, tid=2), x("last", 30, 1, tid=3),
        flow("s", 4), flow("t", 20, tid=2), flow("f", 30.5, tid=3, bp="e"),
        flow("s", 9, id="x"), flow("f", 15, tid=2, id="x"),
    )  # fmt: skip
    assert linked(session) == [("outer", "task"), ("inner", "task"), ("task", "last")]
    assert findings_of(session) == {}


def test_arrows_without_a_slice_or_a_beginning_are_counted():
    session = read(
        x("a", 0, 1), x("b", 5, 1, tid=2), flow("s", 3), flow("f", 5, tid=2, bp="e"),
        flow("f", 5, tid=2, id=2), flow("f", 99, tid=2, id=3), flow("s", 0, id=3),
    )  # fmt: skip
    assert linked(session) == []
    assert findings_of(session) == {chrome_arrows.NO_TAIL: 1, chrome_arrows.NO_SLICE: 2}


def test_chosen_names_are_calls_and_own_what_is_in_them():
    session = session_of(
        json.dumps([x("my::op", 0, 10, cat="user_annotation"), x("part", 2, 3)]).encode(), "my::*"
    )
    call, part = session.spans
    assert (call["kind"], part["kind"], part["owner"]) == (Kind.CALL, Kind.OP, call["id"])
    assert [op.name for op in session.ops] == ["my::op"]
    assert session.sight[0].host == "chrome"


def test_times_are_exact_negative_ones_are_zero_and_missing_ones_left_out():
    text = (
        '[{"ph":"X","name":"a","ts":1700000000123456.789,"dur":0.001},'
        '{"ph":"X","name":"b","ts":"1700000000123456.788","dur":"2"},'
        '{"ph":"X","name":"c","ts":1700000000123457,"dur":-3},{"ph":"X","name":"d","dur":1},'
        '{"ph":"X","name":"e","ts":NaN},{"ph":"X","name":"f","ts":"x"},{"ph":"X","ts":1e300}]'
    )
    session = session_of(text.encode())
    assert [
        (session.names[row["name"]], int(row["start_ns"]), int(row["end_ns"]))
        for row in session.spans
    ] == [
        ("b", 1700000000123456788, 1700000000123458788),
        ("a", 1700000000123456789, 1700000000123456790),
        ("c", 1700000000123457000, 1700000000123457000),
    ]
    assert findings_of(session)[chrome.UNTIMED] == 4
    assert findings_of(session)[chrome.NEGATIVE] == 1


def test_the_unit_is_always_the_microsecond():
    assert spans(read(x("a", 1.5, 2), displayTimeUnit="ns")) == [("a", 1.5, 3.5)]


def test_ends_without_a_name_end_the_innermost():
    session = read(
        *({"ph": ph, "name": name, "ts": ts} for ph, name, ts in
          [("B", "a", 0), ("B", "b", 1), ("E", "", 2), ("E", "a", 3), ("E", "", 4)])
    )  # fmt: skip
    assert spans(session) == [("a", 0, 3), ("b", 1, 2)]
    assert findings_of(session) == {STRAY: 1}


def test_a_million_open_beginnings_do_not_make_it_crawl():
    begins = [{"ph": "B", "name": f"n{n % 9}", "ts": n} for n in range(20_000)]
    ends = [{"ph": "E", "name": f"n{n % 11}", "ts": 20_000 + n} for n in range(20_000)]
    session = read(*begins, *ends)
    assert len(session.spans) == 20_000


def test_viztracer_tells_its_version_and_what_it_lost():
    session = read(
        x("f (/home/me/a.py:3)", 1, 2),
        viztracer_metadata={"version": "0.16.3", "overflow": True},
        baseTimeNanoseconds=1_700_000_000_000_000_000,
    )
    process = session.processes[0]
    assert session.sight[0].version == "0.16.3"
    assert process.notes == ("viztracer had no room for all events: the oldest are missing",)
    assert process.anchors == ((1000, 1_700_000_000_000_001_000),)
