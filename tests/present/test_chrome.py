"""Traces: one slice a span, own time in the holes, no crossing, arrows that bind."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import Line, op, session, span
from tests.present.trace import Event, check, slices

from opscope.model import Flag, Kind, Lane, LinkKind, Phase, Process
from opscope.present import write_chrome


def shown(found: list[Event]) -> list[tuple[str, int, int, int]]:
    """(name, tid, start, duration) of each slice, in the order of the file."""
    return [(e["name"], e["tid"], e["ts"], e["dur"]) for e in slices(found)]


def arrows(found: list[Event]) -> list[tuple[str, int, int, int, int]]:
    """(name, tid, time, tid, time) of each arrow."""
    ends = {event["id"]: event for event in found if event["ph"] == "f"}
    starts = [event for event in found if event["ph"] == "s"]
    return [
        (e["name"], e["tid"], e["ts"], ends[e["id"]]["tid"], ends[e["id"]]["ts"]) for e in starts
    ]


def test_spans_and_the_own_time_between_them() -> None:
    lines = [
        span(1, "A", Kind.CALL, 1000, 2000, phase=Phase.BACKWARD),
        span(2, "enter", Kind.DISPATCH, 1000, 1100, owner=1),
        span(3, "mul", Kind.OP, 1200, 1300, owner=1),
        span(4, "asnumpy", Kind.WAIT, 1300, 1400, owner=1),
        span(5, "B", Kind.CALL, 1500, 1800, owner=1),
        span(6, "plain", Kind.OP, 2000, 2100),
        span(7, "gc", Kind.RUNTIME, 2200, 2300),
    ]
    found = check(session(lines))
    assert shown(found) == [
        ("_backward_A", 1, 0, 1000),
        ("_backward_A::dispatch", 1, 0, 100),
        ("_backward_A::pure_python", 1, 100, 100),
        ("_backward_A::mul", 1, 200, 100),
        ("_backward_A::wait", 1, 300, 100),
        ("_backward_A::pure_python", 1, 400, 100),
        ("_backward_A::B", 1, 500, 300),
        ("_backward_A::B::pure_python", 1, 500, 300),
        ("_backward_A::pure_python", 1, 800, 200),
        ("plain", 1, 1000, 100),
        ("gc", 1, 1200, 100),
    ]
    categories = {event["name"]: event["cat"] for event in slices(found)}
    assert categories["_backward_A::mul"] == "Custom Operator"
    assert categories["_backward_A::pure_python"] == "Custom Operator"
    assert (categories["plain"], categories["gc"]) == ("operator", "runtime")


def test_own_time_that_is_all_of_a_call_lies_inside_it_however_deep_that_lies() -> None:
    names = "ABCD"
    lines = [
        span(number, name, Kind.CALL, 10 * number, 100 - 10 * number, owner=number - 1)
        for number, name in enumerate(names, 1)
    ]
    found = [name for name, *_ in shown(check(session(lines))) if name.startswith("A::B::C::D")]
    assert found == ["A::B::C::D", "A::B::C::D::pure_python"]


def test_arguments() -> None:
    lines = [
        span(7, "A", Kind.CALL, 0, 100, phase=Phase.FORWARD, flags=Flag.FAILED),
        span(8, "x", Kind.OP, 0, 100, owner=7),
        span(9, "y", Kind.OP, 100, 110),
    ]
    args = [event["args"] for event in slices(check(session(lines)))]
    assert args == [
        {
            **{"id": 7, "owner": None, "kind": "call", "phase": "forward"},
            **{"op": "A", "key": "python:A#1", "flags": ["failed"]},
        },
        {
            **{"id": 8, "owner": 7, "kind": "op", "phase": "none"},
            **{"op": "A", "key": "python:A#1"},
        },
        {"id": 9, "owner": None, "kind": "op", "phase": "none", "op": None, "key": None},
    ]


@pytest.mark.parametrize("cpu", [70, 0])
def test_waiting_of_which_only_the_amount_is_known(cpu: int) -> None:
    found = check(session([span(1, "A", Kind.CALL, 0, 100, cpu_ns=cpu)]))
    own = slices(found)[1]
    assert own["name"] == "A::own"
    args = own["args"]
    assert (args["call"], args["python_ns"], args["wait_ns"]) == (1, cpu, 100 - cpu)


def test_recorded_waits_leave_pure_python() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=70),
        span(2, "sleep", Kind.WAIT, 10, 40, owner=1, cpu_ns=0),
    ]
    names = [event["name"] for event in slices(check(session(lines)))]
    assert names == ["A", "A::pure_python", "A::wait", "A::pure_python"]


def test_native_and_untracked_own_time_is_not_called_python() -> None:
    native = op("N", native=True)
    lines = [span(1, native, Kind.CALL, 0, 10), span(2, "A", Kind.CALL, 20, 30)]
    names = [event["name"] for event in slices(check(session(lines, sight=[])))]
    assert names == ["N", "N::native", "A", "A::untracked"]


def test_own_time_goes_on_inside_an_annotation() -> None:
    lines = [span(1, "A", Kind.CALL, 0, 100), span(2, "zone", Kind.RANGE, 20, 60)]
    assert shown(check(session(lines))) == [
        ("A", 1, 0, 100),
        ("A::pure_python", 1, 0, 20),
        ("zone", 1, 20, 40),
        ("A::pure_python", 1, 20, 40),
        ("A::pure_python", 1, 60, 40),
    ]


def test_own_time_leaves_out_pauses() -> None:
    made = session([span(1, "A", Kind.CALL, 0, 100)], pauses=[(0, 30, 50)])
    assert shown(check(made))[1:] == [("A::pure_python", 1, 0, 30), ("A::pure_python", 1, 50, 50)]


def test_what_crosses_goes_to_another_track() -> None:
    lines = [
        span(1, "a", Kind.OP, 0, 100),
        span(2, "b", Kind.OP, 50, 150),
        span(3, "c", Kind.OP, 60, 90),
        span(4, "d", Kind.OP, 200, 300),
        span(5, "e", Kind.OP, 0, 10, lane="other"),
    ]
    found = check(session(lines))
    assert [(name, tid) for name, tid, *_ in shown(found)] == [
        *(("a", 1), ("d", 1), ("b", 2), ("c", 2), ("e", 3)),
    ]
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert names == {1: "main", 2: "main (2)", 3: "other"}


def test_times_are_exact_however_large() -> None:
    big = 3 * 10**18
    lines = [
        span(1, "A", Kind.CALL, big + 1, big + 10**16 + 2),
        span(2, "b", Kind.OP, big + 2, big + 10**16 + 2),
        span(3, "zero", Kind.OP, big + 5, big + 5),
    ]
    assert ("b", 1, 1, 10**16) in shown(check(session(lines)))


def test_arrows() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 1000, phase=Phase.FORWARD),
        span(2, "x", Kind.OP, 500, 600, owner=1, lane="w", submitted_ns=100, submitted_lane="main"),
        span(3, "here", Kind.OP, 200, 300, owner=1, submitted_ns=150),
        span(4, "job", Kind.TASK, 400, 480, owner=1, lane="v"),
        span(5, "kernel", Kind.DEVICE, 700, 800, lane="stream"),
        span(6, "A", Kind.CALL, 2000, 2100, phase=Phase.BACKWARD, lane="autograd"),
    ]
    links = [(LinkKind.LAUNCH, 3, 5), (LinkKind.BACKWARD, 6, 1), (LinkKind.LAUNCH, 3, 99)]
    assert arrows(check(session(lines, links=links))) == [
        ("launch", 1, 200, 4, 700),
        ("backward", 1, 0, 5, 2000),
        ("push", 1, 100, 2, 500),
        ("spawn", 1, 400, 3, 400),
    ]


def test_an_arrow_that_nothing_holds_is_not_drawn() -> None:
    late = span(
        2, "x", Kind.OP, 500, 600, owner=1, lane="w", submitted_ns=150, submitted_lane="main"
    )
    assert arrows(check(session([span(1, "A", Kind.CALL, 0, 100), late]))) == []


def test_texts_are_utf_8_since_viewers_show_escapes_as_they_stand() -> None:
    file = io.StringIO()
    command = ("naïve.py",)
    lines = [span(1, "A 漢 🦀", Kind.CALL, 0, 9), span(2, "\ud800", Kind.OP, 20, 30)]
    made = session(lines, processes=[Process(pid=5, command=command)])
    write_chrome(made, file)
    text = file.getvalue()
    assert text.count("\\u") == text.count('"\\\\ud800"') == 1
    assert all(shown in text for shown in ("A 漢 🦀::pure_python", "naïve.py"))


def test_no_thread_is_without_a_name() -> None:
    lanes = [Lane("main"), Lane(""), Lane("", "stream")]
    found = check(session([], lanes=lanes))
    args = [e["args"] for e in found if e["name"] == "thread_name"]
    assert [entry["name"] for entry in args] == ["main", "thread 2", "stream 3"]
    assert [entry["lane"] for entry in args] == ["main", "", ""]


def test_streams_come_after_threads() -> None:
    lanes = [Lane("s", "stream"), Lane("main"), Lane("t", "stream", process=1), Lane("u")]
    processes = [Process(pid=4), Process(pid=5)]
    found = check(session([], lanes=lanes, processes=processes))
    names = [(e["tid"], e["args"]["name"]) for e in found if e["name"] == "thread_name"]
    assert names == [(1, "main"), (2, "u"), (3, "s"), (4, "t")]


def test_processes_and_threads_are_dense_and_keep_their_real_numbers() -> None:
    lanes = [Lane("a", thread=2**63), Lane("b", process=1, thread=7), Lane("c", process=0)]
    lines = [span(1, "x", Kind.OP, 0, 1, lane="a"), span(2, "y", Kind.OP, 0, 1, lane="b")]
    processes = [Process(pid=4_000_000_000, command=("a.py", "-v")), Process(pid=5)]
    found = check(session(lines, lanes=lanes, processes=processes))
    meta = [(e["name"], e["pid"], e["tid"], e["args"]) for e in found if e["ph"] == "M"]
    assert ("process_name", 1, 0, {"name": "a.py -v (4000000000)", "pid": 4_000_000_000}) in meta
    threads = [(pid, tid, args["name"]) for name, pid, tid, args in meta if name == "thread_name"]
    assert threads == [(1, 1, "a"), (1, 2, "c"), (2, 3, "b")]
    real = [args["thread"] for name, _, _, args in meta if name == "thread_name"]
    assert real == [2**63, 0, 7]


def test_a_program_on_the_command_line_makes_one_short_line() -> None:
    program = "import a\n" * 30
    found = check(session([], processes=[Process(pid=5, command=("python", "-c", program))]))
    (name,) = [e["args"]["name"] for e in found if e["name"] == "process_name"]
    assert name.startswith("python -c import a import a ")
    assert name.endswith("… (5)")
    assert len(name) == 104


def test_nothing_recorded_is_a_trace_too() -> None:
    assert [event["name"] for event in check(session([]))] == [
        "process_name",
        "process_sort_index",
    ]


@st.composite
def lines_of_a_session(draw: st.DrawFn) -> list[Line]:
    """Spans of all kinds anywhere, crossing, empty and equal ones included."""
    made: list[Line] = []
    for ident in range(1, draw(st.integers(0, 14)) + 1):
        kind = draw(st.sampled_from(list(Kind)))
        start = draw(st.integers(1, 30))
        owners = [0, *(line.id for line in made if line.kind == Kind.CALL)]
        more: dict[str, Any] = {
            "owner": 0 if kind == Kind.RUNTIME else draw(st.sampled_from(owners)),
            "lane": draw(st.sampled_from("ab")),
            "phase": draw(st.sampled_from(list(Phase))),
            "submitted_ns": draw(st.integers(0, 30)),
            "submitted_lane": draw(st.sampled_from("ab")),
            "cpu_ns": draw(st.integers(-1, 10)),
        }
        if kind == Kind.WAIT and draw(st.booleans()):
            more["flags"] = Flag.SUSPENDED
        length = draw(st.integers(0, 20))
        name = draw(st.sampled_from(["A", "B"]))
        made.append(span(ident, name, kind, start, start + length, **more))
    return made


@settings(max_examples=300, deadline=None)
@given(
    lines_of_a_session(),
    st.lists(
        st.tuples(st.sampled_from(list(LinkKind)), st.integers(1, 15), st.integers(1, 15)),
        max_size=4,
    ),
    st.lists(st.tuples(st.just(0), st.integers(1, 20), st.integers(20, 40)), max_size=2),
)
def test_any_session_makes_a_sound_trace(lines: list[Line], links: Any, pauses: Any) -> None:
    check(session(lines, links=links, pauses=pauses))
