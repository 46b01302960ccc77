"""Names that would break a careless writer, through every format and both ways."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.cells import cell_len
from tests.builders import op, session, span
from tests.present.trace import check, slices

from opscope.model import Kind, Phase, Session
from opscope.present import render_report, write_csv, write_spans

LONG = "x" * 127
NASTY = [
    *("Custom", "A::B", "A::pure_python", "_backward_G", 'a"b', "a\\b", "a\\n", "line\nbreak"),
    *("nul\0", "\x1b[31mred", "emoji 🦀", "lone \ud800", "e\u0301", "wide 漢字", "[red]markup[/]"),
    *(
        "[/]",
        "</script>",
        "y" * 300,
        LONG + "1",
        LONG + "2",
        "",
        " ",
        "a,b",
        "=1+1",
        "\u202e",
        ":x:",
    ),
]


@pytest.fixture(scope="module")
def made() -> Session:
    lines = []
    for number, name in enumerate(NASTY):
        start, call = 1000 * number, 3 * number + 1
        phase = Phase.BACKWARD if number % 2 else Phase.FORWARD
        lines.append(span(call, name, Kind.CALL, start, start + 500, phase=phase))
        lines.append(span(call + 1, name, Kind.OP, start + 100, start + 200, owner=call))
        lines.append(span(call + 2, name, Kind.OP, start + 600, start + 700, lane=name))
    return session(lines)


def test_chrome_gives_every_name_back(made: Session) -> None:
    found = slices(check(made))
    by_id = {event["args"]["id"]: event for event in found if "id" in event["args"]}
    for number, name in enumerate(name.replace("\ud800", "\\ud800") for name in NASTY):
        prefix = "_backward_" * (number % 2) + name
        call, inner, plain = (by_id[3 * number + 1 + offset] for offset in range(3))
        assert (call["name"], call["cat"]) == (prefix, "Custom Operator")
        assert (inner["name"], inner["cat"]) == (f"{prefix}::{name}", "Custom Operator")
        assert (plain["name"], plain["cat"]) == (name, "operator")
        assert (call["args"]["op"], inner["args"]["op"]) == (name, name)
        assert plain["args"]["op"] is None


def test_json_lines_give_every_name_back(made: Session) -> None:
    file = io.StringIO()
    write_spans(made, file)
    assert file.getvalue().isascii()
    records = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [record["name"] for record in records] == [n for name in NASTY for n in [name] * 3]


def test_csv_gives_every_name_back_by_the_rule_it_states(made: Session) -> None:
    file = io.StringIO()
    write_csv(made, file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue().encode().decode(), newline="")))
    names = [json.loads('"' + row["name"].replace('"', '\\"') + '"') for row in rows]
    assert names == [n for name in NASTY for n in [name] * 3]
    assert file.getvalue().count("\n") == len(rows) + 1


@pytest.mark.parametrize("by", ["op", "sub", "call", "lane", "step"])
@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_tables_show_them_all_and_fit(made: Session, by: str, width: int) -> None:
    text = render_report(made, by=by, width=width)
    assert all(line.isprintable() for line in text.splitlines())
    if width >= 60:
        assert max(map(cell_len, text.splitlines())) <= width
    if by == "op":
        for shown in (r"nul\x00", r"lone \ud800", "[red]markup[/]", r"\x1b[31mred", ":x:"):
            assert shown in text or width < 60


def test_a_console_without_box_characters_gets_ascii(made: Session) -> None:
    from rich.console import Console

    from opscope.present import print_report

    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_report(made, Console(file=file, width=100))
    file.flush()
    assert rb"emoji \U0001f980" in raw.getvalue()


def test_two_operators_of_one_name_stay_apart_everywhere() -> None:
    one, two = op("f", qualified="a.f"), op("f", qualified="b.f")
    made = session([span(1, one, Kind.CALL, 0, 10), span(2, two, Kind.CALL, 20, 50)])
    keys = {event["args"]["key"] for event in slices(check(made))}
    assert keys == {"python:a.f#1", "python:b.f#1"}
    text = render_report(made)
    assert "f (python:a.f#1)" in text
    assert "f (python:b.f#1)" in text
