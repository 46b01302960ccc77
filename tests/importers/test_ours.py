"""What opscope exported as Chrome JSON reads as the recording it was made of."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import Line, op, session, span

import opscope
from opscope.importers import Member, read
from opscope.importers.reading import kind_of
from opscope.model import Finding, Flag, Kind, Lane, LinkKind, Phase, Process, Session, Sight
from opscope.present import as_json, report_rows, write_chrome
from opscope.store import merge


def exported(made: Session) -> bytes:
    file = io.StringIO()
    write_chrome(made, file)
    return file.getvalue().encode()


def loaded(data: bytes) -> Session:
    return read(Member("t.json", lambda: io.BytesIO(data)))


def again(made: Session) -> Session:
    """The session through a file."""
    return loaded(exported(made))


def rows(made: Session, by: str) -> list[dict[str, Any]]:
    return [as_json(row) for row in report_rows(made, by)]


def same(made: Session, read_: Session) -> None:
    """Every table that a report can show is the same, whatever the order of equal rows."""
    for by in ("op", "sub", "call", "lane", "step"):
        every = [Counter(json.dumps(row) for row in rows(one, by)) for one in (made, read_)]
        assert every[1] == every[0], by
    assert not read_.processes[0].findings[len(made.processes[0].findings) :]


NAMES = (
    "A",
    "B",
    "A::B",
    "wait",
    "",
    "_backward_A",
    "A::pure_python",
    'a"\\/b',
    "漢 🦀\n",
    "x" * 300,
)
OPS = tuple(
    op(name, qualified=f"q::{name}", registration=number % 2 + 1, native=number == 3, line=number)
    for number, name in enumerate((*NAMES, "A"))
)
LANES = (
    *(Lane("main", thread=11), Lane("main", thread=11), Lane("", thread=2**63)),
    *(Lane("stream 7", "stream"), Lane("stream 7", "stream"), Lane("main", process=1, thread=11)),
    Lane("rank 1's", process=1),
)
PROCESSES = (
    Process(
        pid=4711,
        command=("python", "-c", "x\n'\""),
        machine="host boot",
        versions={"numpy": "2"},
        start_ns=5,
        end_ns=90,
        anchors=((5, 1_700_000_000_000_000_000),),
        complete=True,
        notes=("a note",),
        costs={"call": (1, 2)},
        findings=(Finding("odd things", 3, ("byte 7",)),),
    ),
    Process(pid=4712, damage="it was cut", broken=("a hook",)),
)
SIGHTS = st.sampled_from(
    (
        (),
        (Sight("python", "3", ("all waits", "device"), {}),),
        (Sight("python", misses={"sub-operators": "why", "tasks": "why", "dispatch": "why"}),),
    )
)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Spans of all kinds anywhere on lanes of two processes: crossing, empty and equal ones, with
    whatever a span can have."""
    made: list[Line] = []
    for ident in range(1, draw(st.integers(0, 14)) + 1):
        kind = draw(st.sampled_from(list(Kind)))
        start = draw(st.integers(10, 40))
        owners = [0, 99, *(line.id for line in made if line.kind == Kind.CALL)]
        flags = draw(st.sampled_from([0, 0, 1, 2, 4 | 8, 16, 64, 128, 512 | 1]))
        more: dict[str, Any] = {
            "owner": 0 if kind == Kind.RUNTIME else draw(st.sampled_from(owners)),
            "lane": str(draw(st.integers(0, len(LANES) - 1))),
            "phase": draw(st.sampled_from(list(Phase))),
            "submitted_ns": draw(st.integers(0, 40)),
            "submitted_lane": str(draw(st.integers(0, len(LANES) - 1))),
            "cpu_ns": draw(st.integers(-1, 10)),
            "flags": flags,
        }
        name = draw(st.sampled_from(OPS if kind == Kind.CALL else NAMES))
        made.append(span(ident, name, kind, start, start + draw(st.integers(0, 20)), **more))
    ident = st.integers(1, 15)
    ends = st.tuples(st.sampled_from(list(LinkKind)), ident, ident)
    moments = (st.integers(0, 1), st.integers(10, 30), st.integers(30, 50))
    found = session(
        made,
        ops=draw(st.sampled_from([(), OPS])),
        lanes=[Lane(str(number)) for number in range(len(LANES))],
        links=draw(st.lists(ends, max_size=5)),
        pauses=draw(st.lists(st.tuples(*moments), max_size=2)),
        drops=draw(st.lists(st.tuples(*moments, st.integers(1, 9)), max_size=1)),
        sight=draw(SIGHTS),
        processes=PROCESSES,
    )
    found = replace(found, lanes=LANES, corrected=draw(st.booleans()))
    if draw(st.integers(0, 5)) == 0:  # operators that the session does not know
        found = replace(found, ops=(), op_names=())
    return found


many = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@many
@given(sessions())
def test_a_session_comes_back(made: Session) -> None:
    same(made, again(made))


@settings(max_examples=60, deadline=None)
@given(sessions(), sessions())
def test_sessions_that_were_merged_come_back(one: Session, other: Session) -> None:
    made = merge([one, other])
    same(made, again(made))


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_what_came_back_goes_out_as_it_came(made: Session) -> None:
    once = again(made)
    assert np.array_equal(again(once).spans, once.spans)
    assert again(once).links.tolist() == once.links.tolist()


def test_names_that_utf_8_has_no_form_for_come_back_spelled_out() -> None:
    made = session([span(1, "\ud800", Kind.CALL, 0, 9), span(2, "\udfff", Kind.OP, 1, 2, owner=1)])
    (row,) = rows(again(made), "op")
    assert (row["op"], row["key"]) == ("\\ud800", "python:\\ud800#1")
    assert [row["name"] for row in rows(again(made), "sub")] == ["\\udfff"]


def test_what_was_running_keeps_its_kind_and_what_it_waited_for() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=70),
        span(2, "Future.result", Kind.WAIT, 10, 40, owner=1, cpu_ns=0),
        span(3, "enter", Kind.DISPATCH, 0, 5, owner=1),
    ]
    read_ = again(session(lines))
    assert [read_.names[name] for name in read_.spans["name"]] == ["A", "Future.result", "enter"]
    assert read_.spans["cpu_ns"].tolist() == [70, 0, -1]


def test_links_and_submissions_come_back_by_arrows() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 1000, phase=Phase.FORWARD),
        span(2, "x", Kind.OP, 500, 600, owner=1, lane="w", submitted_ns=100, submitted_lane="main"),
        span(3, "here", Kind.OP, 200, 300, owner=1),
        span(4, "job", Kind.TASK, 400, 480, owner=1, lane="v", submitted_ns=350),
        span(5, "kernel", Kind.DEVICE, 700, 800, lane="stream"),
        span(6, "A", Kind.CALL, 2000, 2100, phase=Phase.BACKWARD, lane="autograd"),
        span(7, "free", Kind.OP, 900, 950, lane="w", submitted_ns=800, submitted_lane="main"),
    ]
    links = [(LinkKind.LAUNCH, 3, 5), (LinkKind.BACKWARD, 6, 1), (LinkKind.PUSH, 3, 7)]
    made = session(lines, links=links)
    read_ = again(made)
    for word in ("submitted_ns", "submitted_lane", "lane", "start_ns", "end_ns", "id", "owner"):
        assert read_.spans[word].tolist() == made.spans[word].tolist(), word
    # An arrow leaves what was running then.
    assert sorted(read_.links.tolist()) == [(1, 1, 7), (3, 3, 5), (4, 6, 1)]


def test_the_sight_says_what_does_not_come_back() -> None:
    made = session([span(1, "A", Kind.CALL, 0, 9)], sight=[Sight("python", "3", ("cpu",))])
    python, own = again(made).sight
    assert python == Sight("python", "3", ("cpu",))
    assert (own.host, list(own.misses)) == ("opscope", ["submission"])
    with_lines = replace(made, samples=({"op": "A", "line": 3},))
    for read_ in (again(with_lines), again(again(with_lines))):
        assert list(read_.sight[-1].misses) == ["submission", "hot lines"]
        assert len(read_.sight) == 2


MADE = session(
    [
        span(1, "A", Kind.CALL, 1000, 2000, cpu_ns=900, flags=Flag.FAILED),
        span(2, "x", Kind.OP, 1100, 1200, owner=1),
        span(3, "B", Kind.CALL, 1300, 1500, owner=1),
        span(4, "x", Kind.OP, 1150, 1400, owner=1),  # on a track of its own
    ],
    sight=[Sight("python", sees=("device",))],
)


def edited(change: Any) -> Session:
    """What is read where `change` was done to the document."""
    document = json.loads(exported(MADE))
    change(document)
    return loaded(json.dumps(document).encode())


def slice_of(document: Any, ident: int) -> Any:
    return next(e for e in document["traceEvents"] if e["args"].get("id") == ident)


def put(document: Any, ident: int, **fields: Any) -> None:
    slice_of(document, ident)["args"].update(fields)


@pytest.mark.parametrize(
    ("change", "what", "place"),
    [
        (lambda d: d["traceEvents"].insert(5, {"ph": "X", "ts": 1}), "did not", "event 5"),
        (lambda d: d["traceEvents"].append({"ph": "C", "ts": 1}), "other kinds", "event 13"),
        (lambda d: put(d, 2, kind="gear"), "kind or phase", "event 8"),
        (lambda d: put(d, 2, phase="sideways"), "kind or phase", "event 8"),
        (lambda d: put(d, 2, flags=["loud"]), "flags", "event 8"),
        (lambda d: put(d, 4, id=2), "told already", "event 12"),
        (lambda d: put(d, 3, key="python:C#1"), "does not describe", "python:C#1"),
        (lambda d: slice_of(d, 2).update(name="y"), "not named after", "event 8"),
        (lambda d: slice_of(d, 2).pop("ts"), "without a time", "event 8"),
        (lambda d: slice_of(d, 2).update(tid=9), "no name for", "tid 9"),
        (lambda d: slice_of(d, 2).update(pid=9), "does not describe", "pid 9"),
        (lambda d: d["otherData"]["ops"].append(7), "beside the events", "otherData.ops[2]"),
        (lambda d: d["otherData"].update(ops={}), "beside the events", "otherData.ops"),
        (lambda d: d["otherData"]["ops"][0].update(line="x"), "beside", "otherData.ops[0]"),
    ],
)  # fmt: skip
def test_what_was_edited_is_told_with_its_place(change: Any, what: str, place: str) -> None:
    findings = edited(change).processes[0].findings
    assert [place in one.places for one in findings if what in one.what] == [True], findings


def test_without_its_tables_what_was_not_seen_is_not_taken_for_nothing() -> None:
    def bare(document: Any) -> None:
        del document["otherData"]

    read_ = edited(bare)
    row = next(row for row in rows(read_, "call") if row["op"] == "B")
    unknown = ("python_ns", "wait_ns", "sub_ns", "dispatch_ns", "device_ns", "elsewhere_ns")
    assert [row[key] for key in unknown] == [None] * len(unknown)
    assert {row["op"] for row in rows(read_, "op")} == {"A", "B"}
    assert read_.processes[0].pid == 41
    assert [row["start_ns"] for row in rows(read_, "call")] == [0, 300]

    def blind(document: Any) -> None:
        del document["otherData"]["sight"]

    row = next(row for row in rows(edited(blind), "call") if row["op"] == "B")
    assert [row[key] for key in ("sub_ns", "dispatch_ns")] == [None, None]


@pytest.mark.parametrize("how", [{"indent": 2}, {"sort_keys": True}, {"separators": (",", ":")}])
def test_it_is_known_by_content_however_it_was_written_again(how: Any) -> None:
    data = json.dumps(json.loads(exported(MADE)), **how).encode()
    assert kind_of(data) == "opscope"
    same(MADE, loaded(data))


def test_a_list_of_its_events_is_known_too() -> None:
    data = json.dumps(json.loads(exported(MADE))["traceEvents"]).encode()
    assert kind_of(data) == "opscope"
    assert {row["op"] for row in rows(loaded(data), "op")} == {"A", "B"}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1 << 20), st.sampled_from(["", "x", '"', "}", "\0", "9"]), st.booleans())
def test_damage_never_raises_and_invents_nothing(at: int, put: str, cut: bool) -> None:
    data = exported(MADE)
    at = 1 + at % (len(data) - 1)
    read_ = loaded(data[:at] + (b"" if cut else put.encode() + data[at + 1 :]))
    assert len(read_.spans) <= len(MADE.spans)
    for by in ("op", "sub", "call", "lane"):
        rows(read_, by)


def test_a_file_that_was_cut_has_all_up_to_there() -> None:
    data = exported(MADE)
    read_ = loaded(data[: data.index(b'"B"', data.index(b'"id": 2'))])
    assert read_.spans["id"].tolist() == [1, 2]
    assert "ends inside" in read_.processes[0].damage
    assert [op.key for op in read_.ops] == [op.key for op in MADE.ops]


def test_large_times_are_exact() -> None:
    big = 3 * 10**18
    lines = [
        span(1, "A", Kind.CALL, big, big + 10**16 + 1),
        span(2, "x", Kind.OP, big + 10**16, big + 10**16 + 1),
    ]
    same(session(lines), again(session(lines)))


def work(profile: Any) -> None:
    """Nested operators, threads, waits, a generator, one that raises."""

    @opscope.custom_op("inner::op")
    def inner() -> int:
        return sum(range(1000))

    @opscope.custom_op
    def steps() -> Any:
        yield inner()
        yield inner()

    @opscope.custom_op("A::B")
    def outer(pool: ThreadPoolExecutor) -> None:
        future = pool.submit(inner)
        with opscope.custom_op("block"):
            time.sleep(0.001)
        future.result()
        list(steps())
        raise ValueError("again")

    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            with pytest.raises(ValueError, match="again"):
                outer(pool)
            profile.step()


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_a_recording_comes_back(tmp_path: Path, ending: str) -> None:
    with opscope.profile(output=None) as profile:
        work(profile)
    path = tmp_path / f"t{ending}"
    opscope.export(profile.session, path)
    read_ = opscope.load(path)
    same(profile.session, read_)
    assert all(row["python_ns"] for row in rows(read_, "op"))
    both = merge([profile.session, profile.session])
    beside = tmp_path / f"u{ending}"
    beside.write_bytes(path.read_bytes())
    twice = opscope.load(path, beside)
    for by in ("op", "sub", "lane"):
        assert rows(twice, by) == rows(both, by)
