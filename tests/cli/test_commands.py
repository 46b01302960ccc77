"""The command line: what it prints, where, and the exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.builders import session, span

import opscope
from opscope.cli import main
from opscope.cli.commands import TABLE
from opscope.cli.waiting import waiting
from opscope.model import Kind, Session
from opscope.present import as_json, report_rows
from opscope.store import FileSink

Command = Callable[..., tuple[int, str, str]]


def fresh(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`python -m opscope` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "opscope", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **more},
        check=False,
    )


def test_help_lists_every_command_and_loads_none() -> None:
    code = (
        "import sys; from opscope.cli import main; main(['--help']);"
        "print(sorted(m for m in sys.modules if m.startswith(('opscope.cli.', 'rich', 'numpy'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name, (_, about) in TABLE.items():
        assert f"  {name}" in done.stdout
        assert about in done.stdout
    assert done.stdout.splitlines()[-1] == "['opscope.cli.commands']"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from opscope._version import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"opscope {__version__}\n"


def test_report_prints_a_table(opscope_command: Command) -> None:
    code, out, err = opscope_command("report", "a", "b", "--width", "100")
    assert (code, err) == (0, "")
    rows = [line.split()[0] for line in out.splitlines() if line.startswith(("big", "small"))]
    assert rows == ["big", "small"]
    assert max(map(len, out.splitlines())) <= 100


def test_a_file_that_is_named_twice_would_count_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        with opscope.profile(host="python", output=name):
            pass
    for words in (["report", "a", "./a"], ["html", "a", "b", "a"]):
        code = main(words)
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert f"{words[-1]!r} is named twice" in err


@pytest.mark.parametrize("by", ["op", "sub", "call", "lane", "step"])
def test_report_as_json(opscope_command: Command, made: Session, by: str) -> None:
    code, out, err = opscope_command("report", "f", "--by", by, "--json")
    assert (code, err) == (0, "")
    expected = [as_json(row) for row in report_rows(made, by)]
    assert [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()] == expected


def names(out: str) -> list[str]:
    return [json.loads(line)["op"] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["big", "small"]),
        (["--sort", "op"], ["big", "small"]),
        (["--sort", "subs"], ["big", "small"]),
        (["--sort", "native_ns"], ["big", "small"]),
        (["--limit", "1"], ["big"]),
        (["--limit", "0"], []),
        (["--include", "s*"], ["small"]),
        (["--include", "s*", "--include", "b?g"], ["big", "small"]),
        (["--exclude", "b*"], ["small"]),
        (["--include", "*", "--exclude", "small"], ["big"]),
        (["--include", "S*"], []),
    ],
)
def test_choosing_rows(opscope_command: Command, options: list[str], expected: list[str]) -> None:
    code, out, _ = opscope_command("report", "f", "--json", *options)
    assert (code, names(out)) == (0, expected)


def test_an_unknown_sort_key_is_answered_with_the_keys(opscope_command: Command) -> None:
    for options in ([], ["--include", "nothing"]):
        code, out, err = opscope_command("report", "f", "--sort", "wall", *options)
        assert (code, out) == (2, "")
        assert err.startswith("opscope: error: cannot sort by 'wall'")
        assert "wall_ns" in err


def test_globs_need_operators(opscope_command: Command) -> None:
    code, _, err = opscope_command("report", "f", "--by", "lane", "--include", "x")
    assert code == 2
    assert "operators" in err


@pytest.mark.parametrize(
    "args",
    [
        ["report"],
        ["report", "f", "--by", "colour"],
        ["report", "f", "--limit", "-1"],
        ["report", "f", "--nonsense"],
        ["export", "f"],
        ["export", "f", "-o", "x.txt"],
        ["nonsense"],
    ],
)
def test_a_wrong_command_line_is_2(opscope_command: Command, args: list[str]) -> None:
    code, out, err = opscope_command(*args)
    assert (code, out) == (2, "")
    assert "rror" in err


def test_an_unknown_command_is_answered_with_those_there_are(opscope_command: Command) -> None:
    _, _, err = opscope_command("reprot")
    assert ", ".join(TABLE) in err


@pytest.mark.parametrize("command", [["report"], ["info"], ["export", "-o", "x.json"]])
def test_a_file_that_cannot_be_read_is_3(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x00\xff" * 40)
    for file in (tmp_path / "missing", foreign):
        assert main([*command, str(file)]) == 3
        out, err = capsys.readouterr()
        assert err.startswith("opscope: error: ")
        assert str(file) in err
        assert "Traceback" not in err + out


def test_export(opscope_command: Command, tmp_path: Path) -> None:
    target = tmp_path / "t.json"
    assert opscope_command("export", "f", "-o", str(target)) == (0, "", "")
    assert json.loads(target.read_bytes())["traceEvents"]
    code, _, err = opscope_command("export", "f", "-o", str(target))
    assert code == 2
    assert "already" in err
    assert opscope_command("export", "f", "-o", str(target), "--force")[0] == 0


def test_export_help_lists_the_formats(opscope_command: Command) -> None:
    assert "links.jsonl" in opscope_command("export", "--help")[1]


def test_info_about_files(opscope_command: Command) -> None:
    code, out, _ = opscope_command("info", "a.opscope", "b\x1b.opscope")
    assert code == 0
    first, second = out.split("\n\n")
    assert first.splitlines() == [
        "a.opscope",
        "  spans        4 (2 call, 1 op, 1 step)",
        "  operators    2",
        "               small: function",
        "               big: function",
        "  lanes        1",
        "  duration     3.50 us",
        "  complete     no: the recording of process 41 was not ended in order",
        "  process      41  train.py --fast",
        "  python       saw all waits, device",
    ]
    assert second.startswith("b\\x1b.opscope\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16"])
def test_info_in_an_encoding_that_lacks_letters(
    opscope_command: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    made = session([span(1, "\N{SNAKE}", Kind.CALL, 0, 10)])
    monkeypatch.setattr(opscope.sessions, "load", lambda *_, **__: made)
    octets = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(octets, encoding))
    assert main(["info", "\N{SNAKE}.opscope"]) == 0
    shown = "\N{SNAKE}" if encoding == "utf-16" else "\\U0001f40d"
    out = octets.getvalue().decode(encoding)
    assert out.startswith(f"{shown}.opscope")
    assert f"{shown}: function" in out


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_info_fits_the_terminal_whatever_the_letters(
    opscope_command: Command, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    name = "漢字の演算子" * 9
    made = session([span(1, name, Kind.CALL, 0, 10)])
    monkeypatch.setattr(opscope.sessions, "load", lambda *_, **__: made)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["info", "f"]) == 0
    lines = sys.stdout.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(cell_len, lines)) <= columns
    assert "".join(line.strip() for line in lines).count(name) == 1


def test_python_dash_m_and_a_reader_that_goes_away() -> None:
    assert fresh("--version").stdout.startswith("opscope ")
    code = (
        "import sys; from opscope.cli import commands, main; import click\n"
        "def long():\n"
        "    return click.Command('long', callback=lambda: print('x\\n' * 10**6))\n"
        "commands.TABLE['long'] = (long, '')\n"
        "sys.exit(main(['long']))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_exit_codes_of_commands_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    def leave(code: int) -> Callable[[], click.Command]:
        return lambda: click.Command("x", callback=lambda: click.get_current_context().exit(code))

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(TABLE, "five", (leave(5), ""))
    monkeypatch.setitem(TABLE, "stop", (lambda: click.Command("x", callback=interrupt), ""))
    assert main(["five"]) == 5
    assert main(["stop"]) == 130


def test_waiting_shows_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("reading", after_s=0):
        pass
    assert capsys.readouterr() == ("", "")


def test_waiting_shows_a_bar_only_when_it_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import time

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    with waiting("reading [file]", after_s=60):
        pass
    assert "reading" not in capsys.readouterr().err
    with waiting("reading [file]", after_s=0):
        time.sleep(0.3)
    out, err = capsys.readouterr()
    assert "reading [file]" in err
    assert out == ""


@pytest.mark.parametrize("args", [["report", ""], ["info", ""], ["diff", "", "--", "a.opscope"]])
def test_an_empty_name_is_not_the_folder_one_is_in(
    args: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    FileSink(tmp_path / "a.opscope").close()
    monkeypatch.chdir(tmp_path)
    code = main(args)
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert err == "opscope: error: a file was named by an empty text\n"
