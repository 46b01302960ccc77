"""What stands on which path where calls lie deeper in each other than anybody reads."""

from __future__ import annotations

import json
from itertools import pairwise

from tests.builders import Line, session, span

from opscope.analyse import calls, notes, paths, subs, summary
from opscope.analyse.compare import compare
from opscope.analyse.spans import span_records
from opscope.attribution.folds import ALIKE, DEEPEST, LONGEST
from opscope.model import Kind, Session
from opscope.present.chrome import chrome_events
from opscope.present.page.icicle import icicle
from opscope.present.table import render_summary


def chained(names: list[str], *, inside: bool = False, more: list[Line] | None = None) -> Session:
    """Calls that each own the next one, with the ids 1, 2 ...: one after the other, 10 ns each, or
    `inside` each other, each 20 ns of its own."""
    many = len(names)
    lines = [
        span(n + 1, name, Kind.CALL, 10 * n, 20 * many - 10 * n if inside else 10 * n + 10, owner=n)
        for n, name in enumerate(names)
    ]
    return session([*lines, *(more or [])])


def test_calls_that_set_off_each_other_without_end_are_one_row() -> None:
    found = chained(["tick"] * 1000)
    (row,) = summary(found)
    assert (row.path, row.calls, row.folded) == (("tick",), 1000, 999)
    assert (row.wall_ns, row.mean_ns, row.max_ns) == (10_000, 10, 10)
    # What the first one caused is all the others, and no other counts it once more.
    assert (row.elsewhere_ns, row.span_ns) == (9990, 10_000)
    assert {call.path for call in calls(found)} == {("tick",)}
    assert [call.elsewhere_ns for call in calls(found)][-3:] == [20, 10, 0]
    assert {tuple(record["path"]) for record in span_records(found)} == {("tick",)}
    (sub,) = subs(found)
    assert (sub.path, sub.count, sub.total_ns) == (("tick", "tick"), 999, 9990)
    (node,) = paths(found)
    assert (node.calls, node.inclusive_ns, node.children) == (1000, 10_000, ())
    names = {json.loads(event)["name"] for event in chrome_events(found)}
    assert {name for name in names if name.startswith("tick")} == {"tick", "tick::pure_python"}
    (note,) = (note for note in notes(found) if note.topic == "folded")
    assert note.text.startswith("tick: 999 calls of 1,000 lie in others of it")
    assert "999 calls of 1,000" in render_summary(found)


def test_up_to_the_depth_that_is_told_each_call_keeps_its_own_path() -> None:
    found = chained(["Rec"] * (DEEPEST + 1))
    assert {row.path for row in summary(found)} == {("Rec",) * n for n in range(1, DEEPEST + 2)}
    assert not any(row.folded for row in summary(found))
    assert [row.path for row in summary(chained(["Rec"] * (DEEPEST + 2)))] == [("Rec",)]


def test_only_what_lies_in_itself_many_times_is_folded() -> None:
    rec = [span(9000 + 3 * n + k, "Rec", Kind.CALL, 10 * n + k, 10 * n + 9 - k,
                owner=9000 + 3 * n + k - 1 if k else n + 1)
           for n in range(200) for k in range(3)]  # fmt: skip
    found = chained(["main", *["tick"] * 199], more=rec)
    told = {row.path: row.calls for row in summary(found)}
    assert told == {
        ("main",): 1,
        **{("main", *["Rec"] * k): 1 for k in (1, 2, 3)},
        ("main", "tick"): 199,
        **{("main", "tick", *["Rec"] * k): 199 for k in (1, 2, 3)},
    }
    few = chained(["Rec"] * ALIKE + [f"f{n}" for n in range(DEEPEST)] + ["Rec"])
    assert max(len(row.path) for row in summary(few)) == DEEPEST + 1


def test_operators_that_call_each_other_in_turn_are_folded_alike() -> None:
    told = {row.path: row.calls for row in summary(chained(["A", "B", "C"] * 100))}
    assert told == {("A",): 100, ("A", "B"): 100, ("A", "B", "C"): 100}


def test_the_row_of_a_recursion_has_the_time_that_its_calls_share_once() -> None:
    found = chained(["walk"] * 100, inside=True)
    (row,) = summary(found)
    assert (row.wall_ns, row.sub_ns, row.python_ns, row.elsewhere_ns) == (2000, 0, 2000, 0)
    assert row.sub_wait_ns in (0, None)
    assert sum(call.wall_ns for call in calls(found)) == sum(20 * n for n in range(1, 101))
    turns = {row.path: row for row in summary(chained(["A", "B"] * 50, inside=True))}
    assert (turns["A",].wall_ns, turns["A", "B"].wall_ns) == (2000, 1980)
    # 50 calls of A with 20 ns of their own each, and the B in the outermost one.
    assert (turns["A",].python_ns, turns["A",].sub_ns) == (1000, 1000)
    assert (turns["A", "B"].python_ns, turns["A", "B"].sub_ns) == (1000, 980)


def test_no_path_is_longer_than_is_told_whatever_it_is_made_of() -> None:
    found = chained([f"f{n}" for n in range(2 * LONGEST + 10)])
    rows = summary(found)
    assert len(rows) == 2 * LONGEST + 10
    assert max(len(row.path) for row in rows) == LONGEST
    tops = sorted(row.op for row in rows if row.above < 0)
    assert tops == ["f0", f"f{LONGEST}", f"f{2 * LONGEST}"]
    (note,) = (note for note in notes(found) if note.topic == "cut off")
    assert note.text.startswith("2 calls would have more than 256 names")
    assert len(icicle(found)["roots"]) == 3


def test_a_run_that_is_folded_compares_with_itself() -> None:
    found = chained(["A", "B"] * 200)
    assert [change.op for change in compare([found], [found]).changes][:1] == ["A"]


def test_the_report_grows_with_the_chain_and_not_with_its_square() -> None:
    # Pairs of each call and every call above would be 2 * 10**8, and their names as many.
    found = chained(["tick"] * 20_000)
    rows = calls(found)
    assert sum(len(row.path) for row in rows) == 20_000
    assert all(one.elsewhere_ns == two.elsewhere_ns + 10 for one, two in pairwise(rows))
