"""`opscope check`: exit codes and lines, on made-up runs and on real ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.analyse.runs import Did, made

import opscope
import opscope.sessions
from opscope.analyse.compare import Change
from opscope.cli import main
from opscope.model import Session

Command = Callable[..., tuple[int, str, str]]
BASE = [f"b{number}" for number in range(5)]
#: Operator `f` is 40 % slower, its waits are 40 % longer, and `g` is as it was.
SLOW = [f"s{number}" for number in range(5)]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def load(*paths: str, custom: object = ()) -> Session:
        (path,) = paths
        number = int(path[-1])
        time = 1_000_000 + (0, 9000, -9000, 4000, -4000)[number]
        factor = 1.4 if path.startswith("s") else 1.0
        f = Did("f", [int(time * factor)] * 6, [int(time * factor / 2)] * 6)
        return made(f, Did("g", [time] * 6), at=2 * number + path.startswith("s"))

    def run(*args: str) -> tuple[int, str, str]:
        code = main(["check", *args])
        return (code, *capsys.readouterr())

    monkeypatch.setattr(opscope.sessions, "load", load)
    return run


def test_a_regression_is_1_and_a_line_each(check: Command) -> None:
    code, out, err = check(*SLOW, "--baseline", *BASE)
    assert (code, err) == (1, "")
    first, second = out.splitlines()
    assert first.startswith("f: python slower by 40%, +400.0 us a call (")
    assert second.startswith("f: wait slower by 40%, +200.0 us a call (")


def test_none_is_0_and_silence(check: Command) -> None:
    assert check(*BASE, "--baseline", *BASE)[:2] == (0, "")
    assert check(*BASE, "--baseline", *SLOW)[:2] == (0, "")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--part", "python"], ["python"]),
        (["--part", "python", "--part", "wait"], ["python", "wait"]),
        (["--part", "wall"], ["wall"]),
        (["--part", "dispatch"], []),
        (["--max-increase", "50%"], []),
        (["--max-increase", "39%"], ["python", "wait"]),
        (["--min-effect", "300us"], ["python"]),
        (["--min-effect", "1ms"], []),
        (["--op", "g"], []),
        (["--op", "g", "--op", "F*"], []),
        (["--op", "[f]"], ["python", "wait"]),
    ],
)
def test_what_counts(check: Command, options: list[str], parts: list[str]) -> None:
    code, out, _ = check(*SLOW, "--json", "--baseline", *BASE, *options)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, [row["part"] for row in rows]) == (int(bool(parts)), parts)
    assert all(tuple(row) == Change.KEYS for row in rows)


@pytest.mark.parametrize(
    "args",
    [
        [*SLOW, "--baseline", *BASE],
        ["--baseline", *BASE, "--", *SLOW],
        ["--baseline", *BASE, "--max-increase", "10%", *SLOW],
        [*SLOW[:2], "--baseline", *BASE[:2], "--json", *SLOW[2:], "--baseline", *BASE[2:]],
    ],
)
def test_the_baseline_is_all_up_to_the_next_option(check: Command, args: list[str]) -> None:
    code, out, err = check(*args, "--op", "f") if "--" not in args else check("--op", "f", *args)
    assert (code, err) == (1, "")
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize(
    "args",
    [
        [],
        SLOW,
        ["--baseline", *BASE],
        [*SLOW, "--baseline"],
        [*SLOW, "--baseline", *BASE, "--max-increase", "10"],
        [*SLOW, "--baseline", *BASE, "--min-effect", "10"],
        [*SLOW, "--baseline", *BASE, "--part", "speed"],
        [*SLOW, "--baseline", *BASE, "--op", "nothing"],
    ],
)
def test_a_wrong_command_line_is_2(check: Command, args: list[str]) -> None:
    code, out, err = check(*args)
    assert (code, out) == (2, "")
    assert "rror" in err


def test_with_few_runs_it_says_what_it_can_tell(check: Command) -> None:
    code, out, err = check("s1", "--baseline", "b1")
    assert code == 1
    assert "f: python slower by 40%" in out
    assert err.startswith("opscope: 1 and 1 runs are too few")


PROGRAM = """
import sys
import opscope

@opscope.custom_op
def inner(count):
    return sum(range(count))

@opscope.custom_op
def outer(count):
    return inner(count) + sum(range(20_000))

for _ in range(12):
    outer(int(sys.argv[1]))
"""


def test_real_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(opscope.__file__).parents[1]))
    for name in [name for name in os.environ if name.startswith("OPSCOPE_")]:
        monkeypatch.delenv(name)

    def command(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(list(args))
        return (code, *capfd.readouterr())

    Path("p.py").write_text(PROGRAM)
    for side, count in (("base", "100000"), ("new", "300000")):
        Path(side).mkdir()
        code, _, err = command("run", "--repeat", "5", "-o", f"{side}/r.opscope", "p.py", count)
        assert code == 0, err

    code, out, err = command("check", "new", "--baseline", "base")
    assert code == 1, err
    assert "outer::inner: python slower by" in out
    assert "not in alternation" in err
    # The other parts are what the machine makes of them: any of them may differ.
    inner = ("--op", "inner", "--part", "python")
    assert command("check", "new", "--baseline", "base", *inner, "--max-increase", "900%")[0] == 0
    assert command("check", "base", "--baseline", "new", *inner)[0] == 0
    _, out, _ = command("diff", "base", "new", "--json", "--op", "inner")
    (python,) = (row for row in map(json.loads, out.splitlines()) if row["part"] == "python")
    assert (python["verdict"], python["base_runs"], python["new_runs"]) == ("slower", 5, 5)
    assert python["ratio"] > 2
