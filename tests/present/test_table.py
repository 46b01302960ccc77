"""The tables: what stands where, what gives way, and what is said under them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.builders import op, session, span

from opscope.model import Flag, Kind, Lane, Phase, Process, Session, Sight
from opscope.present import print_report, render_summary
from opscope.present.units import moment_unit, unit_for

MS = 1_000_000


def made() -> Session:
    lines = [
        span(1, "Outer", Kind.CALL, MS, 5 * MS, phase=Phase.FORWARD),
        span(2, "mul", Kind.OP, 2 * MS, 3 * MS, owner=1),
        span(3, "Inner", Kind.CALL, 3 * MS, 4 * MS, owner=1, phase=Phase.FORWARD),
        span(4, "sleep", Kind.WAIT, 4 * MS, 4 * MS + 500, owner=1),
    ]
    return session(lines)


def cells(text: str, label: str) -> list[str]:
    """The cells of the row that starts with the label."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(label + " ")]
    return line.split()[len(label.split()) :]


def test_a_table() -> None:
    assert render_summary(made(), width=80) == (
        "2 custom operators, 2 calls, 4 spans in 4.00 ms\n"
        "\n"
        "operator phase   calls total mean python sub-ops elsewhere  wait  p50\n"
        "                          ms   ms     ms      ms        ms    ms   ms\n"
        "────────────────────────────────────────────────────────────────────────────────\n"
        "Outer    forward     1  4.00 4.00   2.00    2.00         0 <0.01 4.00  ████▓▓▓▓▓\n"
        "└ Inner  forward     1  1.00 1.00   1.00       0         0     0 1.00  █████████\n"
        "\n"
        "largest total first, the phases of an operator together\n"
        "bar:  █ python  ▓ sub-ops  ░ wait\n"
        "left out at this width: p95, max, subs\n"
        "not measured: queue\n"
    )


def test_narrow_tables_say_what_they_leave_out() -> None:
    text = render_summary(made(), width=40)
    assert max(map(len, text.splitlines())) <= 40
    assert "left out at this width:" in text
    assert "elsewhere" in text.split("left out at this width:")[1]
    assert "left out" not in render_summary(made(), width=200)


def test_wide_tables_have_bars_with_a_legend() -> None:
    text = render_summary(made(), width=200)
    row = next(line for line in text.splitlines() if line.startswith("Outer"))
    bar = row.split()[-1]
    assert (bar.count("█"), bar.count("▓")) == (len(bar) // 2, len(bar) // 2)
    assert "bar:  █ python  ▓ sub-ops  ░ wait" in text


def test_not_measured_is_a_dash_and_nothing_is_zero() -> None:
    blind = session([span(1, "A", Kind.CALL, 0, MS)], sight=[])
    text = render_summary(blind, width=120)
    assert cells(text, "A")[:6] == ["1", "1.00", "1.00", "-", "0", "0"]
    assert "not measured: python, device, wait, queue" in text
    # Where it is narrow a column without anything in it goes first, and is still named.
    narrow = render_summary(blind, width=80)
    assert cells(narrow, "A")[:6] == ["1", "1.00", "1.00", "0", "0", "1.00"]
    assert "not measured: python, device, wait, queue" in narrow


def test_a_rare_column_is_there_where_it_has_something() -> None:
    assert "dispatch" not in render_summary(made())
    lines = [span(1, "A", Kind.CALL, 0, 10), span(2, "d", Kind.DISPATCH, 0, 3, owner=1)]
    assert "dispatch" in render_summary(session(lines))


def test_notes() -> None:
    lines = [span(i + 1, "A", Kind.CALL, i * MS, i * MS + 1000) for i in range(1, 6)]
    lines.append(span(1, "A", Kind.CALL, 0, 90_000, flags=Flag.FAILED))
    lines.append(span(9, "A", Kind.CALL, 9 * MS, 9 * MS + 1, flags=Flag.INCOMPLETE))
    text = render_summary(
        session(
            lines,
            ops=[op("unused")],
            drops=[(0, 5 * MS, 5 * MS + 10, 12)],
            sight=[Sight("torch", misses={"device time": "no GPU [here]"})],
            processes=[Process(pid=7, damage="cut at byte 99", broken=("torch.x",))],
        ),
        width=100,
    )
    said = {line[:14].strip(): line[14:] for line in text.splitlines() if line[:1].islower()}
    assert said["dropped"] == "12 spans of process 7 lost for want of room"
    assert said["damaged"] == "process 7: cut at byte 99"
    assert said["switched off"] == "process 7: the hook torch.x failed and was switched off"
    assert said["failed"] == "1 call of A raised"
    assert said["incomplete"].startswith("1 call of A did not end while recorded")
    assert said["lossy"].startswith("1 call of A ran while spans were lost")
    assert said["first call"] == "A: 90 us against a median of 1 us (90 times)"
    assert said["not seen"] == "torch: device time (why: opscope info FILE)"
    assert said["no calls"] == "unused: no call was recorded"


def test_nothing_recorded() -> None:
    text = render_summary(session([]))
    assert text.startswith("0 custom operators, 0 calls, 0 spans in 0 ns\n")


def test_rows_of_which_the_outer_one_is_not_shown_carry_their_path() -> None:
    from opscope.present import render_report, report_rows

    rows = [row for row in report_rows(made()) if row.op == "Inner"]
    assert "\nOuter::Inner " in render_report(made(), rows=rows)


def test_colour_only_on_a_terminal_and_never_against_the_users_wish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def printed(terminal: bool) -> str:
        file = io.StringIO()
        print_report(made(), Console(file=file, width=100, force_terminal=terminal))
        return file.getvalue()

    assert "\x1b[" not in printed(False)
    assert "\x1b[36m" in printed(True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in printed(True)


def test_lanes_are_told_apart_from_operators() -> None:
    from opscope.present import render_report

    lanes = [Lane("gpu 0", kind="stream")]
    text = render_report(
        session([span(1, "k", Kind.DEVICE, 0, 10, lane="gpu 0")], lanes=lanes), by="lane"
    )
    assert cells(text, "gpu 0") == ["stream", "41", "-", "1", "0", "10", "0", "10"]


@pytest.mark.parametrize(
    ("largest", "value", "text"),
    [
        (5, 5, "5"),
        (1_500, 1_500, "1.50"),
        (999_999, 1_000, "1.0"),
        (2_000_000, 1, "<0.01"),
        (2_000_000, 0, "0"),
        (2_000_000, None, "-"),
        (7_200_000_000_000, 7_200_000_000_000, "7,200.0"),
    ],
)
def test_units(largest: int, value: int | None, text: str) -> None:
    assert unit_for([largest, value]).show(value) == text


def test_one_large_value_does_not_make_all_others_nearly_nothing() -> None:
    unit = unit_for([5_300_000, 3_400, 2_700, 8_000, None, 0])
    assert (unit.name, unit.show(5_300_000), unit.show(3_400)) == ("us", "5,300.0", "3.4")
    assert unit_for([53_000_000, 3_400, 2_700, 8_000]).name == "ms"  # five digits say less
    assert unit_for([1_080_000_000, 440_000_000, 3_000_000, 2_000_000]).name == "ms"
    assert unit_for([8_210_000, 4_250_000, 160_000, 28_000]).name == "ms"
    mixed = [96_100_000, 18_000_000, 5_000_000, 33_000]
    assert [unit_for(mixed, fine=fine).show(33_000) for fine in (False, True)] == ["<0.1", "0.03"]


@pytest.mark.parametrize(
    ("moments", "unit", "texts"),
    [
        ([2_543_470_000, 2_543_480_000, None], "ms", ["2,543.47", "2,543.48", "-"]),
        ([0, 1_500], "us", ["0", "1.5"]),
        ([999], "ns", ["999"]),
    ],
)
def test_moments_can_be_told_apart(moments: list[int], unit: str, texts: list[str]) -> None:
    chosen = moment_unit(moments)
    assert (chosen.name, [chosen.show(moment) for moment in moments]) == (unit, texts)
