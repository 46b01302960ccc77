"""A comparison as a table: at every width, in words as in colour, and with any name."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.analyse.runs import Did, made

from opscope.analyse.compare import Comparison, compare
from opscope.model import Session
from opscope.present.diff import print_diff, render_diff, sentence

FIVE = (1000, 1020, 990, 1010, 980)


def side(factor: float, *more: Did, name: str = "f", at: int = 0) -> list[Session]:
    return [
        made(
            Did(name, [int(value * factor * 100)] * 8, [value * 10] * 8),
            Did("steady", [value * 50] * 6),
            *more,
            at=at + 2 * place,
        )
        for place, value in enumerate(FIVE)
    ]


@pytest.fixture
def found() -> Comparison:
    return compare(side(1.0), side(1.3, Did("young", [900] * 6), at=1))


def printed(comparison: Comparison, monkeypatch: pytest.MonkeyPatch, **more: Any) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    file = io.StringIO()
    settings = {"force_terminal": True, "color_system": "standard", "width": 100, **more}
    print_diff(comparison, Console(file=file, **settings))
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_it_fits(found: Comparison, width: int) -> None:
    lines = render_diff(found, width=width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert lines[0] == "5 base runs against 5 new: 1 change beyond the noise"[:width].rstrip() or (
        width < 60
    )


def test_a_row_an_operator(found: Comparison) -> None:
    lines = render_diff(found, width=120).splitlines()
    rows = {line.split()[0]: line.split() for line in lines[5:8]}
    head = lines[2].split()
    assert head == ["operator", "calls", "base", "new", "change", "by", "python", "wait"]
    # 100 + 10 us before, 130 + 10 us after.
    assert rows["f"] == ["f", "8", "110.0", "140.0", "+27%", "+30.0", "+30.0", "0", "▲", "python",
                         "+30%"]  # fmt: skip
    assert rows["steady"] == ["steady", "6", "50.0", "50.0", "0%", "0", "0", "0"]
    assert rows["young"] == ["young", "6", "-", "0.9", "-", "-", "-", "-", "new"]


def test_what_changed_is_told_in_words(found: Comparison) -> None:
    text = render_diff(found, width=200)
    (line,) = (line for line in text.splitlines() if line.startswith("f: python"))
    assert line.startswith("f: python slower by 30%, +30.0 us a call (+")
    assert line.endswith(", from 100.0 us to 130.0 us")
    assert "young: only in the new runs" in text
    told = " ".join(text.split())
    assert "3 parts were judged together, for at most 5% chance of one false mark" in told


def test_a_sentence_of_few_runs_has_no_interval() -> None:
    (change,) = compare(side(1.0)[:1], side(0.5)[:1]).marked
    assert sentence(change) == "f: python faster by 50%, -50.0 us a call, from 100.0 us to 50.0 us"


def test_few_runs_say_so() -> None:
    text = render_diff(compare(side(1.0)[:2], side(1.1)[:2]), width=100)
    assert text.startswith("2 base runs against 2 new: no changes that few runs can show\n")
    assert text.count("not comparable\n") == 2
    assert "note  2 and 2 runs are too few" in text
    assert "judged together" not in text


def test_notes_stand_below() -> None:
    text = render_diff(compare(side(1.0), side(1.0, at=100)), width=120)
    assert "no changes beyond the noise" in text
    assert "\nnote  the base runs were made before the new ones" in text


def test_other_numbers_of_calls_are_told() -> None:
    base = [made(Did("f", [value] * 8)) for value in FIVE]
    new = [made(Did("f", [value] * calls)) for value, calls in zip(FIVE, range(8, 13), strict=True)]
    text = render_diff(compare(base, new), width=100)
    assert "f: 8 to 10 calls" in text


def test_nothing_to_compare() -> None:
    found = compare([made()], [made()])
    assert "No operator to compare" in render_diff(found)
    assert render_diff(found).startswith("1 base run against 1 new\n")


def test_colours(found: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(found, monkeypatch)
    assert "\x1b[31m▲ python" in text  # red
    assert "\x1b[31mf: python slower" in text
    fewer = compare(side(1.3), side(1.0, at=1))
    assert "\x1b[32m▼ python" in printed(fewer, monkeypatch)  # green


def test_no_color_is_respected(found: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(found, monkeypatch, no_color=True)
    assert "\x1b[3" not in text
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.StringIO()
    print_diff(found, Console(file=file, force_terminal=True, width=100))
    assert "\x1b[3" not in file.getvalue()
    assert "▲ python" in file.getvalue()


def test_a_console_without_such_characters(found: Comparison) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_diff(found, Console(file=file, width=100))
    file.flush()
    text = raw.getvalue().decode("ascii")
    assert "^ python +30%" in text
    assert "^ slower, v faster" in " ".join(text.split())


@pytest.mark.parametrize("name", ["[red]x[/red]", "a\nb\x1b[31m", "😀" * 40, "x" * 300, ":smile:"])
@pytest.mark.parametrize("width", [80, 200])
def test_any_name(name: str, width: int) -> None:
    text = render_diff(compare(side(1.0, name=name), side(1.3, name=name, at=1)), width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text
    if name in ("[red]x[/red]", ":smile:"):
        assert f"\n{name}: python slower" in text


def test_large_and_impossible_ratios() -> None:
    base = [made(Did("f", [value] * 8, [0] * 8)) for value in FIVE]
    new = [made(Did("f", [value * 20] * 8, [value * 9] * 8)) for value in FIVE]
    text = render_diff(compare(base, new), width=200)
    assert "▲ python x20" in text
    assert "f: wait slower, +9.00 us a call" in text
