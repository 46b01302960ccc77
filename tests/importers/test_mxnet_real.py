"""Profiles that MXNet 1.9.1 wrote, against what really ran."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from opscope.analyse.calls import CallRow, calls
from opscope.analyse.subs import subs
from opscope.analyse.summary import summary
from opscope.importers.building import CROSSINGS, Builder
from opscope.importers.mxnet import read
from opscope.importers.mxnet.rows import (
    BULKS,
    COPIES,
    NAMES_CUT,
    ORPHANS,
    PREFIXES,
    RAISED,
    SEVERAL,
    SINGLE,
)
from opscope.model import Flag, Kind, Session

TRACES = Path(__file__).parents[3] / "shared" / "traces" / "mxnet"

Numbers = tuple[int, int, int]  #: calls, sub-operators, failed calls
Sums = dict[tuple[str, str], Numbers]  #: by operator and direction, f or b

#: Names of which MXNet kept 127 bytes, one of them half a letter.
_LONG, _LETTERS = "N" * 127, "Ж" * 63 + "\ufffd"

#: file: (spans, {operator, with `_backward_`: (calls, their wall time in ns)})
FILES: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {
    "all_api": (50, {"A": (3, 6_504_000)}),
    "backward": (39, {"_backward_G": (3, 1_250_000), "G": (2, 1_191_000)}),
    "basic": (44, {"A": (5, 2_332_000)}),
    "bulk": (18, {"Bulk": (3, 1_782_000)}),
    "cachedop_inside": (37, {"Cached": (3, 11_117_000)}),
    "dump_run_dump": (11, {"A": (2, 1_161_000)}),
    "exc": (36, {"Good": (2, 8_579_000), "Bad": (3, 0)}),
    "exc_naive2": (53, {}),
    "firstuse": (23, {"First": (2, 790_000), "Second": (1, 285_000)}),
    "midstart": (7, {}),
    "name_300": (24, {_LONG: (3, 1_343_000)}),
    "name_quote": (13, {'q"uo\\te': (2, 940_000)}),
    "name_u_cut": (15, {_LETTERS: (2, 5_265_000)}),
    "nested": (64, {"Outer": (3, 47_168_000), "Inner": (4, 38_596_000)}),
    "nested_par": (92, {"Outer": (3, 61_368_000), "Inner": (9, 54_249_000)}),
    "ownthreads": (51, {"Own": (3, 100_097_000)}),
    "threads2": (82, {"T": (10, 52_646_000)}),
}

#: Where the file cannot know what really ran: what it does say, and why.
REASONS: dict[str, tuple[Sums, str]] = {
    "backward": (
        {("G", "f"): (2, 4, 0), ("G", "b"): (3, 7, 0)},
        "the backward calls of G and the calls of an operator named _backward_G read the same; "
        "their sum is right",
    ),
    "bulk": ({("Bulk", "f"): (3, 3, 0)}, "four operators at a time ran as one ImperativeBulk"),
    "cachedop_inside": (
        {("Cached", "f"): (3, 7, 0)},
        "two operators ran as one bulk; that bulk is kept by the framework and gathers prefixes "
        "(Cached::Cached::), also where no call runs it; and the "
        "fifth can only be the copy at the end, which is a chore",
    ),
    "dump_run_dump": ({("A", "f"): (2, 2, 0)}, "the second dump wrote over the first three calls"),
    "exc": (
        {("Bad", "f"): (3, 3, 3), ("Good", "f"): (2, 2, 0)},
        "the truth counts the sub-operators of calls that return; each that raised had made one",
    ),
    "exc_naive2": (
        {},
        "on the NaiveEngine a call that raises leaves nothing; its prefix then stands before the "
        "50 operators that ran after it, which are nobody's here",
    ),
    "midstart": (
        {},
        "the profile began inside the call: it has no slice and its operators no name",
    ),
    "name_300": (
        {(_LONG, "f"): (3, 7, 0)},
        "of the two operators the same 127 letters are left; their sum is right",
    ),
    "name_u_cut": (
        {(_LETTERS, "f"): (2, 4, 0)},
        "the name is cut inside a letter; the numbers are right",
    ),
}

#: Where the sums are right and the sub-operators of the single call are not: the file names the
#: operator only, and its calls overlap.
BY_SUM_ONLY = {"nested_par", "threads2"}


@cache
def loaded(name: str) -> tuple[Session, str, list[dict[str, Any]]]:
    """The session of a file, its text, and the calls that really were."""
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with gzip.open(path) as file:
        text = file.read().decode("utf-8", "replace")
    with gzip.open(path) as file:
        session = read(file, Builder("mxnet"))  # type: ignore[arg-type]
    truth = json.loads((TRACES / f"{name}.truth.json").read_text(encoding="utf-8"))["truth"]
    return session, text, truth


def findings(session: Session) -> dict[str, int]:
    return {found.what: found.count for found in session.processes[0].findings}


def ours(session: Session) -> Sums:
    rows = summary(session)
    return summed([((row.op, row.phase[0]), (row.calls, row.subs, row.failed)) for row in rows])


def really(truth: list[dict[str, Any]]) -> Sums:
    return summed([((c["op"], c["dir"]), (1, c["sub"], int(c["ok"] is not True))) for c in truth])


def summed(lines: list[tuple[tuple[str, str], Numbers]]) -> Sums:
    found: Sums = {}
    for key, (a, b, c) in lines:
        x, y, z = found.get(key, (0, 0, 0))
        found[key] = (x + a, y + b, z + c)
    return found


def test_every_file_is_here() -> None:
    loaded("basic")
    names = {path.name.removesuffix(".json.gz") for path in TRACES.glob("*.json.gz")}
    assert names == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_spans_crossings_and_custom_operators(name: str) -> None:
    session, _, _ = loaded(name)
    spans, operators = FILES[name]
    assert len(session.spans) == spans
    assert CROSSINGS not in findings(session)
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in summary(session):
        key = f"_backward_{row.op}" if row.phase == "backward" else row.op
        found[key][0] += row.calls
        found[key][1] += row.wall_ns
    assert {key: tuple(numbers) for key, numbers in found.items()} == operators


@pytest.mark.parametrize("name", FILES)
def test_every_operator_is_there_once(name: str) -> None:
    """Each of the engine's operators is a slice and a task, and anything else is a task only."""
    session, text, _ = loaded(name)
    tasks, slices = text.count('"ph": "b"'), text.count('"ph": "B"')
    handed_out = len(re.findall(r'::Custom",\s*"cat": "[\w ]*",\s*"ph": "B"', text))
    kinds = session.spans["kind"]
    assert len(session.spans) == tasks - handed_out  # waits of calls that raised became the calls
    assert findings(session)[COPIES] == slices
    assert SINGLE not in findings(session)
    counters = text.count('"ph": "C"')
    assert bool(counters) == any("not shown" in note for note in session.processes[0].notes)
    assert not (session.spans["owner"][kinds == Kind.RUNTIME] != 0).any()


@pytest.mark.parametrize("name", FILES)
def test_calls_sub_operators_and_failures_are_the_truth(name: str) -> None:
    session, _, truth = loaded(name)
    if name in REASONS:
        assert ours(session) == REASONS[name][0], REASONS[name][1]
        assert ours(session) != really(truth), "the file does know: take its reason away"
    else:
        assert ours(session) == really(truth)


@pytest.mark.parametrize("name", sorted(set(FILES) - set(REASONS)))
def test_each_single_call_has_the_sub_operators_it_made(name: str) -> None:
    session, _, truth = loaded(name)
    found = sorted(calls(session), key=lambda call: call.start_ns)
    known = sorted(truth, key=lambda call: call["t0"])
    assert [call.op for call in found] == [call["op"] for call in known]
    same = [call.subs for call in found] == [call["sub"] for call in known]
    assert same == (name not in BY_SUM_ONLY)
    assert (SEVERAL in findings(session)) == (name in BY_SUM_ONLY)


@pytest.mark.parametrize("name", FILES)
def test_each_call_is_around_its_function(name: str) -> None:
    """What the function itself noted as its time lies in a call of its own."""
    session, _, truth = loaded(name)
    free = [call for call in calls(session) if "incomplete" not in call.flags]
    for real in sorted(truth, key=lambda call: call["t1"] - call["t0"]):
        around = [call for call in free if _around(session, call, real)]
        if around:
            free.remove(min(around, key=lambda call: call.wall_ns))
    assert not free


def _around(session: Session, call: CallRow, real: dict[str, Any]) -> bool:
    begin = session.start_ns + call.start_ns
    inside = begin <= real["t0"] * 1000 and real["t1"] * 1000 <= begin + call.wall_ns
    return inside and real["op"][:20] in (call.op[:20], f"_backward_{call.op}"[:20])


def test_times_are_those_of_mxnets_own_table() -> None:
    session, _, _ = loaded("basic")
    table = TRACES / "basic.table.txt"
    lines = [line.split() for line in table.read_text(encoding="utf-8").splitlines()]
    told = {
        line[0]: (int(line[1]), float(line[2]))
        for line in lines
        if len(line) == 6 and line[1].isdigit()
    }
    mine = {"::".join(row.path): (row.count, row.total_ns / 1e6) for row in subs(session)}
    (row,) = summary(session)
    mine["A::pure_python"] = (row.calls, row.wall_ns / 1e6)
    for name in ("A::pure_python", "A::_plus_scalar"):
        assert mine[name] == pytest.approx(told[name])
    for name in ("_plus_scalar", "DeleteVariable", "WaitForVar"):
        free = session.spans[session.spans["owner"] == 0]
        free = free[[session.names[entry] == name for entry in free["name"].tolist()]]
        assert len(free) == told[name][0]


def test_a_call_inside_another_is_owned_by_it() -> None:
    paths = {("::".join(row.path), row.calls, row.subs) for row in summary(loaded("nested")[0])}
    assert paths == {("Outer", 3, 9), ("Outer::Inner", 3, 6), ("Inner", 1, 2)}
    paths = {("::".join(row.path), row.calls, row.subs) for row in summary(loaded("nested_par")[0])}
    assert paths == {("Outer", 3, 12), ("Outer::Inner", 9, 18)}
    single = [row for row in summary(loaded("nested")[0]) if row.path == ("Outer", "Inner")]
    assert single[0].queue_ns == 334_000  # from where the engine handed it out


def test_calls_that_raised_are_told_by_the_wait_they_left() -> None:
    session, _, _ = loaded("exc")
    assert findings(session)[RAISED] == 3
    bad = [call for call in calls(session) if call.op == "Bad"]
    assert [call.flags for call in bad] == 3 * [("failed", "incomplete", "outlived")]
    assert [(call.wall_ns, call.subs) for call in bad] == 3 * [(0, 1)]


def test_what_is_odd_is_counted() -> None:
    assert findings(loaded("exc_naive2")[0])[ORPHANS] == 50
    cached = findings(loaded("cachedop_inside")[0])
    assert cached[PREFIXES] == 3
    assert cached[BULKS] == 4
    assert findings(loaded("bulk")[0])[BULKS] == 3
    assert findings(loaded("name_300")[0])[NAMES_CUT] == 10
    assert findings(loaded("name_u_cut")[0])[NAMES_CUT] == 6
    assert findings(loaded("nested_par")[0])[SEVERAL] == 18
    assert findings(loaded("threads2")[0])[SEVERAL] == 16


@pytest.mark.parametrize(
    ("name", "what", "count"),
    [
        ("name_quote", "escaped", 20),  # in one text each of 20 events
        ("dump_run_dump", "comma", 1),
        ("name_u_cut", "UTF-8", 20),
    ],
)
def test_what_was_mended_is_counted(name: str, what: str, count: int) -> None:
    counts = [n for text, n in findings(loaded(name)[0]).items() if what in text]
    assert counts == [count]


def test_an_operator_without_a_call_is_named() -> None:
    assert [op.name for op in loaded("exc_naive2")[0].ops] == ["Bad"]
    assert not loaded("midstart")[0].ops
    assert "no custom operator" in loaded("midstart")[0].processes[0].notes[0]


def test_calls_of_the_c_interface_are_chores_and_waits() -> None:
    session, text, _ = loaded("all_api")
    kinds = session.spans["kind"]
    assert (kinds == Kind.WAIT).sum() == 4
    api = len(re.findall(r'"cat": "MXNET_C_API",\s*"ph": "b"', text))
    slices = text.count('"ph": "B"') - 6
    assert (kinds == Kind.RUNTIME).sum() == api - 4 + slices
    (row,) = summary(session)
    assert row.wait_ns is not None or row.runtime_ns
    parts = (row.sub_ns, row.runtime_ns, row.dispatch_ns, row.untracked_ns)
    assert sum(part or 0 for part in parts) + (row.wait_ns or 0) == row.wall_ns


def test_ids_and_times_stay_as_they_are() -> None:
    session, _, _ = loaded("basic")
    assert "thread 10761423377636823340" in [lane.name for lane in session.lanes]
    assert session.start_ns == 1795966888524153 * 1000
    assert session.processes[0].anchors == ((session.start_ns, session.start_ns),)
    assert set(session.spans["cpu_ns"].tolist()) == {-1}
    owned = session.spans[session.spans["owner"] != 0]
    assert (owned["flags"] & Flag.INFERRED != 0).all()


def test_what_runs_on_threads_of_the_calls_own_is_not_seen() -> None:
    """Both count three a call, but not the same: of the truth's, two ran on such threads."""
    session, _, truth = loaded("ownthreads")
    found = {row.name: row.count for row in subs(session)}
    assert found == {"_zeros": 6, "_mul_scalar": 3}
    plain = session.spans[(session.spans["owner"] == 0) & (session.spans["kind"] == Kind.OP)]
    assert [session.names[entry] for entry in plain["name"].tolist()] == 6 * ["_plus_scalar"]
    assert len(plain) + found["_mul_scalar"] == sum(call["sub"] for call in truth)
    assert "other threads" in session.sight[0].misses
