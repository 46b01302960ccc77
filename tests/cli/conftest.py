"""Running the command in this process, on a session made by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.builders import session, span

import opscope.sessions
from opscope.cli import main
from opscope.model import Kind, Phase, Process, Session


@pytest.fixture
def made() -> Session:
    lines = [
        span(1, "small", Kind.CALL, 1000, 1100, phase=Phase.FORWARD),
        span(2, "big", Kind.CALL, 2000, 3000),
        span(3, "mul", Kind.OP, 2100, 2200, owner=2),
        span(4, "train", Kind.STEP, 500, 4000),
    ]
    return session(lines, processes=[Process(pid=41, command=("train.py", "--fast"))])


@pytest.fixture
def opscope_command(
    made: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """`opscope_command(*args)` -> (exit code, standard output, standard error)."""

    def load(*paths: str, custom: object = ()) -> Session:
        assert paths
        return made

    monkeypatch.setattr(opscope.sessions, "load", load)

    def run(*args: str) -> tuple[int, str, str]:
        code = main(list(args))
        out, err = capsys.readouterr()
        return code, out, err

    return run
