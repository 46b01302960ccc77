"""What gives way first in a narrow table, and how names and trees look there."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.builders import session, span

from opscope.model import Kind, Phase, Process, Session, Sight
from opscope.present import print_report, render_report, render_summary
from opscope.present.text import Label

MS = 1_000_000


def nested(sight: list[Sight] | None = None) -> Session:
    lines = [
        span(1, "Top", Kind.CALL, 0, 9 * MS, phase=Phase.FORWARD),
        span(2, "first", Kind.CALL, MS, 5 * MS, owner=1),
        span(3, "deep", Kind.CALL, 2 * MS, 4 * MS, owner=2),
        span(4, "mul", Kind.OP, 2 * MS, 3 * MS, owner=3),
        span(5, "second", Kind.CALL, 6 * MS, 7 * MS, owner=1),
        span(6, "Other", Kind.CALL, 10 * MS, 11 * MS),
    ]
    return session(lines, sight=sight)


def labels(text: str, width: int = 8) -> list[str]:
    """The first column of a table."""
    lines = text.splitlines()
    rule = next(number for number, line in enumerate(lines) if set(line) <= {"─", "-"} and line)
    return [line[:width].rstrip() for line in lines[rule + 1 : lines.index("", rule)]]


def test_nested_operators_are_a_tree() -> None:
    assert labels(render_summary(nested())) == [
        "Top",
        "├ first",
        "│ └ deep",
        "└ second",
        "Other",
    ]


def test_the_tree_of_a_terminal_without_box_characters() -> None:
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    print_report(nested(), Console(file=file, width=80, color_system=None))
    file.seek(0)
    text = file.read()
    assert labels(text) == ["Top", "|-first", "| `-deep", "`-second", "Other"]
    assert "bar:  # python  = sub-ops" in text


def test_what_was_not_measured_gives_way_before_all_else() -> None:
    text = render_summary(nested([Sight("python", misses={"tasks": "?"})]), width=60)
    head = next(line for line in text.splitlines() if line.startswith("operator"))
    assert head.split()[1:] == ["calls", "total", "mean", "sub-ops", "untracked"]
    assert "not measured: python, elsewhere, device, wait, queue\n" in text
    (left,) = [line for line in text.splitlines() if line.startswith("left out")]
    assert "python" not in left
    assert "elsewhere" in render_summary(nested(), width=60).splitlines()[2]


def test_a_terminal_of_80_columns_gets_the_bar_and_the_parts() -> None:
    lines = [span(1, "a_rather_long_name_of_an_operator", Kind.CALL, 0, MS, phase=Phase.FORWARD)]
    text = render_summary(session(lines), width=80)
    head, row = (line for line in text.splitlines() if line.startswith(("operator", "a_")))
    for title in ("calls", "total", "mean", "python", "sub-ops", "elsewhere", "wait"):
        assert title in head
    assert row.startswith("a_rather_lo")
    assert "██████" in row
    assert max(map(cell_len, text.splitlines())) <= 80


def test_the_phase_is_not_worth_a_name() -> None:
    for name, phase in (("an_operator_of_torchs", False), ("mul", True)):
        lines = [
            span(1, "Op", Kind.CALL, 0, 9 * MS, phase=Phase.FORWARD),
            span(2, f"{name}_{name}", Kind.OP, MS, 2 * MS, owner=1, phase=Phase.FORWARD),
        ]
        text = render_report(session(lines), by="sub", width=90)
        assert f"\nOp::{name}_{name} " in text
        assert ("phase" in text.splitlines()[2]) is phase


@pytest.mark.parametrize("width", [40, 57, 80, 81, 99, 100, 120, 200])
def test_nothing_is_wider_than_the_terminal_and_no_line_ends_in_blanks(width: int) -> None:
    for by in ("op", "sub", "call", "lane"):
        for line in render_report(nested(), by=by, width=width).splitlines():
            assert line == line.rstrip()
            assert cell_len(line) <= width


@pytest.mark.parametrize(
    ("label", "cells", "text"),
    [
        (Label("mul", ("Swish",)), 10, "Swish::mul"),
        (Label("elemwise_mul", ("_backward_Swish",)), 24, "_back…wish::elemwise_mul"),
        (Label("a_very_long_name_of_a_kernel", ("Op",)), 20, "Op::a_very_l…_kernel"),
        (Label("a_very_long_name_of_a_kernel", ("Some", "Operator")), 20, "Some…tor::a_ver…rnel"),
        (Label("abcdefghijkl", (), "│ └ "), 12, "│ └ abcd…jkl"),
        (Label("abcdefghijkl", (), "│ └ "), 4, "│ …l"),
        (Label("漢字漢字漢字", ("漢字",)), 9, "漢字…漢字"),
        (Label("x", ("aa", "bb")), 5, "aa…:x"),
    ],
)
def test_the_path_gives_way_before_the_name(label: Label, cells: int, text: str) -> None:
    assert label.fit(cells) == text
    assert cell_len(text) <= cells


def test_a_table_says_how_its_rows_are_sorted_and_how_many_are_missing() -> None:
    made = nested()
    assert "\nlargest total first, the phases of an operator together\n" in render_report(made)
    assert "\nin order of start (slowest first: --sort wall_ns)\n" in render_report(made, by="call")
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as caught:
        print_report(made, console, rows=(), of=5)
    assert "none was chosen" in caught.get()
    from opscope.present import report_rows

    with console.capture() as caught:
        print_report(made, console, rows=report_rows(made)[:2], of=5, sort="op")
    assert "\n2 of 5 rows (--limit 5 shows all), sorted by op\n" in caught.get()


@pytest.mark.parametrize(
    ("by", "said"),
    [("op", "No call"), ("call", "No call"), ("sub", "No sub-operator"), ("step", "No step")],
)
def test_an_empty_table_says_what_is_not_there(by: str, said: str) -> None:
    assert f"\n\n{said}" in render_report(session([]), by=by)


def test_a_trace_without_custom_operators_is_told_which_names_could_be() -> None:
    lines = [
        span(1, "short", Kind.OP, 0, 10),
        span(2, "often", Kind.OP, 20, 60),
        span(3, "often", Kind.OP, 60, 99),
        span(4, "range\x1b" + "x" * 90, Kind.RANGE, 0, 75),
        span(5, "gpu", Kind.DEVICE, 0, 500),
        span(6, "empty", Kind.OP, 7, 7),
    ]
    text = " ".join(render_report(session(lines, processes=[Process()]), width=300).split())
    start, _, named = text.partition("--custom GLOB. The longest here: ")
    assert "No call of a custom operator" in start
    assert named.startswith(r"often, range\x1bxxx")
    assert "x, short." in named
    assert "gpu" not in text
    own = render_report(session(lines), width=300)  # a recording of our own knows
    assert "--custom" not in own


def test_a_step_without_calls_says_nothing_about_what_is_measured() -> None:
    lines = [
        span(1, "first", Kind.STEP, 0, 50),
        span(2, "A", Kind.CALL, 10, 20),
        span(3, "second", Kind.STEP, 50, 60),
    ]
    text = render_report(session(lines), by="step", width=200)
    assert "not measured: queue\n" in text
