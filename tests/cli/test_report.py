"""`opscope report` on a terminal: no flood of rows, and no word of those that were asked away."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

Command = Callable[..., tuple[int, str, str]]
TOLD = "1 of 2 rows (--limit 2 shows all), in order of start"


@pytest.fixture
def on_terminal(opscope_command: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`on_terminal(*options)` is the report on a terminal where one row is a screenful."""

    def run(*options: str, terminal: bool = True) -> str:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        return opscope_command("report", "f", *options)[1]

    monkeypatch.setattr("opscope.cli.report._SCREENFUL", 1)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return run


def shown(out: str) -> set[str]:
    return {name for name in ("big", "small") if f"\n{name} " in out}


def test_a_terminal_gets_a_screenful_of_calls_and_is_told(on_terminal: Callable[..., str]) -> None:
    out = on_terminal("--by", "call")
    assert shown(out) == {"small"}
    assert TOLD in out
    out = on_terminal("--by", "call", "--sort", "wall_ns")
    assert shown(out) == {"big"}
    assert "sorted by wall_ns" in out


def test_whoever_says_how_many_gets_them(on_terminal: Callable[..., str]) -> None:
    for options in (["--by", "call", "--limit", "2"], ["--by", "op"]):
        out = on_terminal(*options)
        assert shown(out) == {"big", "small"}
        assert "shows all" not in out
    assert len(on_terminal("--by", "call", "--json").splitlines()) == 2


def test_a_pipe_gets_all_of_them(on_terminal: Callable[..., str]) -> None:
    assert shown(on_terminal("--by", "call", terminal=False)) == {"big", "small"}


def test_what_was_chosen_away_does_not_count_as_left_out(on_terminal: Callable[..., str]) -> None:
    out = on_terminal("--by", "call", "--exclude", "big")
    assert shown(out) == {"small"}
    assert "shows all" not in out
