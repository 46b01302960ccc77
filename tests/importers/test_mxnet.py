"""Small profiles in MXNet's way of writing, made here."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from opscope.analyse.calls import calls
from opscope.analyse.subs import subs
from opscope.analyse.summary import summary
from opscope.importers.building import CROSSINGS, Builder, Options
from opscope.importers.mxnet import read
from opscope.importers.mxnet.events import BACKWARDS, UNBEGUN, UNENDED, UNTIMED
from opscope.importers.mxnet.names import Told, told
from opscope.importers.mxnet.rows import (
    BULKS,
    COPIES,
    NAMES_CUT,
    ORPHANS,
    PREFIXES,
    RAISED,
    SEVERAL,
    SINGLE,
    UNNAMED,
)
from opscope.model import Flag, Kind, Phase, Session

#: Hashes as MXNet writes them: more than a double, and than 63 bits, can hold.
ENGINE, PYTHON, OTHER = 17343844709549807314, 17343844709549807315, 9785678402843609691
CUSTOM_ROW, OPERATOR_ROW = 8001054958719685105, 3060606181218273969
CUSTOM = "Custom Operator"

Event = dict[str, Any]


def op(name: str, start: int, end: int, thread: int = ENGINE, *, row: int = 0) -> list[Event]:
    """An operator as the engine has it written: as a slice of a row and, inside, as a task."""
    cat = CUSTOM if "::" in name else "operator"
    return [*pair("BE", name, cat, start, end, thread, row), *task(name, start, end, thread)]


def task(
    name: str, start: int, end: int, thread: int = ENGINE, cat: str | None = None
) -> list[Event]:
    """A task alone."""
    cat = cat or (CUSTOM if "::" in name else "operator")
    row = CUSTOM_ROW if cat == CUSTOM else OPERATOR_ROW
    return pair("be", name, cat, start, end, thread, row)


def pair(
    phases: str, name: str, cat: str, start: int, end: int, thread: int, row: int
) -> list[Event]:
    head = {"name": name, "cat": cat, "pid": row, "tid": thread}
    return [{**head, "ph": ph, "ts": ts} for ph, ts in zip(phases, (start, end), strict=True)]


def call(name: str, start: int, end: int, thread: int = PYTHON) -> list[Event]:
    """The time in a custom operator's function."""
    return task(f"{name}::pure_python", start, end, thread)


def title(row: int, name: str) -> list[Event]:
    return [{"ph": "M", "args": {"name": name}, "pid": row, "name": "process_name"}]


def loaded(*events: list[Event], custom: tuple[str, ...] = ()) -> Session:
    every = [event for some in events for event in some]
    text = json.dumps({"traceEvents": every, "displayTimeUnit": "ms"})
    return read(io.BytesIO(text.encode()), Builder("mxnet", Options(custom)))


def findings(session: Session) -> dict[str, int]:
    return {found.what: found.count for found in session.processes[0].findings}


def spans(session: Session, kind: Kind | None = None) -> list[tuple[str, int, int]]:
    """(name, start, end) in microseconds, by start."""
    rows = session.spans if kind is None else session.spans[session.spans["kind"] == kind]
    names = [session.names[entry] for entry in rows["name"].tolist()]
    starts, ends = (rows["start_ns"] // 1000).tolist(), (rows["end_ns"] // 1000).tolist()
    return sorted(zip(names, starts, ends, strict=True), key=lambda one: one[1:])


def each_subs(session: Session) -> list[tuple[str, int]]:
    """(path, sub-operators) of each call, by start."""
    return [("::".join(one.path), one.subs) for one in calls(session)]


def test_an_operator_is_one_span_and_what_its_function_took_is_a_call() -> None:
    session = loaded(
        call("A", 100, 200), op("A::_plus_scalar", 210, 220), op("_plus_scalar", 300, 310)
    )
    assert spans(session) == [
        ("A", 100, 200),
        ("_plus_scalar", 210, 220),
        ("_plus_scalar", 300, 310),
    ]
    assert findings(session) == {COPIES: 2}
    (row,) = summary(session)
    assert (row.op, row.key, row.host, row.kind) == ("A", "mxnet:A#1", "mxnet", "CustomOp")
    assert (row.phase, row.calls, row.subs, row.wall_ns) == ("forward", 1, 1, 100_000)
    assert (row.sub_ns, row.elsewhere_ns, row.span_ns) == (0, 10_000, 120_000)
    # Nobody knows what of it was waiting.
    assert (row.python_ns, row.wait_ns, row.untracked_ns) == (None, None, 100_000)
    assert {lane.name for lane in session.lanes} == {f"thread {ENGINE}", f"thread {PYTHON}"}


def test_on_the_naive_engine_sub_operators_are_inside_the_call() -> None:
    session = loaded(call("A", 0, 100), op("A::dot", 10, 60, PYTHON), op("dot", 120, 130, PYTHON))
    (row,) = summary(session)
    assert (row.sub_ns, row.untracked_ns, row.elsewhere_ns) == (50_000, 50_000, 0)


def test_backward_calls_are_the_other_phase() -> None:
    session = loaded(call("A", 0, 10), call("_backward_A", 20, 30), op("_backward_A::dot", 40, 50))
    assert [(row.op, row.phase, row.subs) for row in summary(session)] == [
        ("A", "forward", 0),
        ("A", "backward", 1),
    ]
    assert [row.path for row in subs(session)] == [("_backward_A", "dot")]


def test_an_end_belongs_to_the_beginning_right_before_it() -> None:
    """What runs asynchronously may cross on a thread: a stack would swap the ends."""
    session = loaded(op("x", 10, 50), op("x", 20, 60))
    assert spans(session) == [("x", 10, 50), ("x", 20, 60)]
    assert findings(session) == {COPIES: 2, CROSSINGS: 1}


def test_events_that_stand_apart_are_joined_by_a_stack() -> None:
    outer, inner = pair("BE", "x", "operator", 0, 50, 1, 0), pair("BE", "x", "operator", 5, 9, 1, 0)
    other = pair("BE", "y", "operator", 6, 8, 1, 0)
    session = loaded([outer[0], inner[0]], other, [inner[1]], title(0, "cpu/0"), [outer[1]])
    assert spans(session) == [("x", 0, 50), ("x", 5, 9), ("y", 6, 8)]
    assert findings(session) == {SINGLE: 3}


def test_what_has_lost_its_other_half_is_counted() -> None:
    begin, end = pair("BE", "x", "operator", 5, 9, 1, 0)
    back = pair("BE", "z", "operator", 9, 5, 1, 0)
    nowhen = [{**event, "ts": None} for event in pair("BE", "w", "operator", 1, 2, 1, 0)]
    session = loaded([end], back, [begin], nowhen)
    assert findings(session) == {UNTIMED: 2, UNBEGUN: 1, UNENDED: 1, BACKWARDS: 1, SINGLE: 2}
    assert spans(session) == [("x", 5, 5), ("z", 9, 9)]
    flags = session.spans["flags"][session.spans["start_ns"] == 5000]
    assert flags.tolist() == [Flag.INCOMPLETE]
    places = {found.what: found.places for found in session.processes[0].findings}
    assert places[UNBEGUN] == ("0",)
    assert places[UNTIMED] == ("4", "5")


def test_copies_in_disorder_are_found_one_by_one() -> None:
    rows = pair("BE", "x", "operator", 0, 10, 1, 0) + pair("BE", "x", "operator", 20, 40, 1, 0)
    rows += pair("BE", "x", "operator", 21, 30, 1, 0)
    tasks = task("x", 25, 26, 1) + task("x", 22, 38, 1) + task("x", 60, 61, 1)
    session = loaded(rows, tasks)
    assert findings(session) == {COPIES: 2, SINGLE: 2}
    assert spans(session) == [("x", 0, 10), ("x", 20, 40), ("x", 21, 30), ("x", 60, 61)]


def test_a_late_sub_operator_is_the_last_call_s_that_had_ended() -> None:
    session = loaded(
        call("A", 0, 10),
        call("A", 20, 30),
        call("B", 32, 34),
        op("A::x", 15, 16),
        op("A::x", 35, 36),
    )
    assert each_subs(session) == [("A", 1), ("A", 1), ("B", 0)]
    assert findings(session) == {COPIES: 2}


def test_of_calls_at_the_same_time_one_is_given_it_and_that_is_counted() -> None:
    session = loaded(
        call("A", 0, 100), call("A", 10, 50, OTHER), op("A::x", 5, 6), op("A::x", 20, 21)
    )
    assert each_subs(session) == [("A", 1), ("A", 1)]  # the first to end is given the second
    assert findings(session)[SEVERAL] == 1


def test_a_sub_operator_before_every_call_is_nobody_s() -> None:
    session = loaded(op("A::x", 1, 2), call("A", 10, 20))
    assert each_subs(session) == [("A", 0)]
    assert findings(session)[ORPHANS] == 1
    assert spans(session, Kind.OP) == [("A::x", 1, 2)]


def test_chores_are_runtime_and_nobody_s() -> None:
    chores = ("DeleteVariable", "WaitForVar", "ResourceParallelRandomSetSeed", "CopyCPU2CPU")
    some = [op(f"A::{name}", 20 + 10 * at, 25 + 10 * at) for at, name in enumerate(chores)]
    session = loaded(call("A", 0, 10), *some, op("DeleteVariable", 4, 5, PYTHON))
    assert each_subs(session) == [("A", 0)]
    assert [name for name, _, _ in spans(session, Kind.RUNTIME)] == ["DeleteVariable", *chores]
    (row,) = summary(session)
    assert (row.runtime_ns, row.untracked_ns) == (1_000, 9_000)


def test_a_call_that_raised_stands_where_its_work_began() -> None:
    session = loaded(
        call("A", 0, 10),
        op("A::x", 2, 3),
        op("A::x", 20, 22),
        op("A::x", 23, 24),
        op("A::CustomOperatorWait", 30, 31),
        op("A::CustomOperatorWait", 40, 41),
    )
    assert findings(session)[RAISED] == 2
    found = [(one.start_ns, one.subs, one.flags) for one in calls(session)]
    gone = ("failed", "incomplete")
    assert found[0] == (0, 1, ())
    assert found[1] == (20_000, 2, (*gone, "outlived"))
    assert found[2] == (40_000, 0, gone)
    (row,) = summary(session)
    assert (row.calls, row.failed, row.incomplete, row.mean_ns) == (3, 2, 2, 10_000)


def test_a_call_inside_another_is_the_one_that_began_in_its_time() -> None:
    session = loaded(
        call("Out", 0, 100),
        op("Out::Custom", 10, 60),
        call("In", 20, 40, OTHER),
        op("In::x", 50, 55),
        call("In", 200, 210, OTHER),
    )
    assert each_subs(session) == [("Out", 1), ("Out::In", 1), ("In", 0)]
    inner = session.spans[session.spans["start_ns"] == 20_000]
    assert inner["submitted_ns"].tolist() == [10_000]
    assert "Custom" not in session.names


def test_work_of_several_inner_calls_is_done_before_the_engine_is_done_with_them() -> None:
    wholes = [op("Out::Custom", 10, 50), op("Out::Custom", 12, 70)]
    inner = [call("In", 20, 30, OTHER), call("In", 22, 40, ENGINE + 1)]
    session = loaded(call("Out", 0, 100), *wholes, *inner, op("In::x", 45, 46), op("In::x", 60, 61))
    assert each_subs(session) == [("Out", 2), ("Out::In", 1), ("Out::In", 1)]
    assert findings(session)[SEVERAL] == 2
    assert set(session.spans["submitted_ns"].tolist()) == {0}  # which is whose is a guess


def test_a_whole_call_without_its_function_is_a_call_without_a_name() -> None:
    session = loaded(call("Out", 0, 100), op("Out::_backward_Custom", 10, 60))
    assert each_subs(session) == [("Out", 1), ("Out::_backward_Custom", 0)]
    assert findings(session)[UNNAMED] == 1


def test_releases_before_the_split_have_whole_calls_only() -> None:
    old = pair("BE", "Custom", "category", 0, 10, 1, 0) + pair(
        "BE", "dot", "category", 12, 13, 1, 0
    )
    session = loaded(old)
    assert each_subs(session) == [("Custom", 0)]
    assert spans(session, Kind.OP) == [("dot", 12, 13)]


def test_a_prefix_of_several_parts_is_one_operator_or_unreliable() -> None:
    session = loaded(
        call("A", 0, 10), op("A::A::x", 12, 13), call("N::M", 20, 30), op("N::M::x", 32, 33)
    )
    assert each_subs(session) == [("A", 0), ("N::M", 1)]
    assert findings(session) == {COPIES: 2, PREFIXES: 1}
    assert [made.name for made in session.ops] == ["A", "N::M"]
    assert ("A::A::x", 12, 13) in spans(session)


def test_bulks_stay_one_operator() -> None:
    session = loaded(
        call("A", 0, 10),
        op("A::ImperativeBulk", 12, 13),
        op("[dot,relu", 20, 21),
        op("[dot]", 30, 31),
    )
    assert findings(session)[BULKS] == 2
    assert any("MXNET_EXEC_BULK_EXEC_TRAIN" in note for note in session.processes[0].notes)


def test_names_that_were_cut_keep_their_numbers() -> None:
    long = "N" * 127
    sub = pair("BE", long, "operator", 20, 30, ENGINE, 0) + task(long, 21, 29, ENGINE, CUSTOM)
    session = loaded(task(long, 0, 10, PYTHON, CUSTOM), sub)
    assert each_subs(session) == [(long, 1)]
    assert findings(session)[NAMES_CUT] == 2


@pytest.mark.parametrize(
    ("text", "is_cut"), [("N" * 126, False), ("Ж" * 63, False), ("Ж" * 63 + "\ufffd", True)]
)
def test_a_name_is_cut_after_127_bytes(text: str, is_cut: bool) -> None:
    assert told(text, True).cut is is_cut


def test_only_the_last_part_of_a_name_is_the_operator() -> None:
    assert told("A::B::x", True) == Told("A::B", "x", False)
    assert told("A::B::x", False) == Told("", "A::B::x", False)
    assert told("::x", True).op == ""


def test_the_user_says_what_else_is_custom() -> None:
    events = call("A", 0, 10), op("A::dot", 12, 20), op("dot", 30, 35), op("relu", 40, 41)
    session = loaded(*events, custom=("d*",))
    assert each_subs(session) == [("A", 1), ("A::dot", 0), ("dot", 0)]
    (row, _) = sorted(
        (row for row in summary(session) if row.op == "dot"), key=lambda row: -len(row.path)
    )
    assert (row.native_ns, row.kind) == (8_000, "operator")


def test_what_the_framework_wrote_as_a_custom_operator_is_native() -> None:
    session = loaded(call("MXThreadedDataLoaderGetItems", 0, 10))
    (row,) = summary(session)
    assert (row.native_ns, row.untracked_ns) == (10_000, 0)


def test_the_user_s_tasks_are_ranges_that_cross_nobody() -> None:
    mine = pair("be", "epoch", "train", 5, 300, PYTHON, 77)
    frame = pair("()", "frame", "train", 6, 8, PYTHON, 77)
    session = loaded(title(77, "train"), call("A", 0, 10), mine, frame)
    assert [name for name, _, _ in spans(session, Kind.RANGE)] == ["epoch", "frame"]
    assert findings(session) == {}
    assert f"train, thread {PYTHON}" in [lane.name for lane in session.lanes]


def test_the_c_interface_tells_chores_and_waits() -> None:
    def api(name: str, start: int, end: int) -> list[Event]:
        return pair("be", name, "MXNET_C_API", start, end, PYTHON, 9)

    push, wait = api("MXImperativeInvokeEx", 10, 30), api("MXNDArrayWaitToRead", 40, 70)
    session = loaded(call("A", 0, 100), push, wait)
    (row,) = summary(session)
    assert (row.runtime_ns, row.wait_ns, row.untracked_ns) == (20_000, 30_000, 50_000)
    assert "waits" in session.sight[0].sees
    assert session.spans["phase"].tolist().count(Phase.FORWARD) == 2
    alone = loaded(push)
    assert "profile_imperative and profile_symbolic were off" in alone.processes[0].notes[0]


def test_counters_and_marks_are_told_in_a_note() -> None:
    count = [{"ph": "C", "name": "m", "cat": "c", "ts": 1, "args": {"m": 4}, "pid": 1, "tid": 1}]
    session = loaded(call("A", 0, 1), count, count)
    assert any("2 of phase 'C'" in note for note in session.processes[0].notes)


def test_a_thread_is_named_after_the_device_it_serves() -> None:
    session = loaded(
        title(0, "cpu/0"), title(4, "gpu/0"), op("x", 0, 1, 1), op("y", 0, 1, 2, row=4)
    )
    assert {lane.name for lane in session.lanes} == {"thread 1", "thread 2, gpu/0"}


def test_stamps_of_every_kind() -> None:
    begin, end = pair("BE", "x", "operator", 0, 0, 1, 0)
    begin["ts"], end["ts"] = "1795966888524700", 1795966888524700.5
    whole = {"ph": "X", "name": "y", "cat": "operator", "ts": 1.25, "dur": 2, "pid": 0, "tid": 1}
    session = loaded([begin, end, whole])
    ends = sorted(zip(session.spans["start_ns"], session.spans["end_ns"], strict=True))
    assert ends == [(1250, 3250), (1795966888524700_000, 1795966888524700_500)]


def test_a_file_that_starts_at_zero_has_no_wall_clock() -> None:
    assert loaded(op("x", 0, 1)).processes[0].anchors == ()
    since = 1795966888524700
    (anchor,) = loaded(op("x", since, since + 1)).processes[0].anchors
    assert anchor == (since * 1000, since * 1000)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"traceEvents": []}', '{"traceEvents": [1, null, {}]}', "\x00", "}{"]
)
def test_nothing_is_an_empty_session(text: str) -> None:
    session = read(io.BytesIO(text.encode()), Builder("mxnet"))
    assert len(session.spans) == 0
    assert summary(session) == ()


def test_a_cut_file_gives_what_is_whole() -> None:
    events = [*call("A", 0, 10), *op("A::x", 12, 20), *op("A::x", 22, 30)]
    text = json.dumps({"traceEvents": events}, indent=4)
    most = 0
    for size in range(0, len(text), 7):
        session = read(io.BytesIO(text[:size].encode()), Builder("mxnet"))
        most = max(most, len(session.spans))
        assert set(spans(session)) <= {
            ("A", 0, 10),
            ("A", 0, 0),
            ("x", 12, 20),
            ("x", 12, 12),
            ("x", 22, 30),
            ("x", 22, 22),
        }
    assert most == 3
