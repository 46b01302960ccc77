"""Programs in a folder of their own, run by plain Python and by `opscope run`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import opscope

Done = subprocess.CompletedProcess[bytes]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("OPSCOPE_")},
    "PYTHONPATH": str(Path(opscope.__file__).parents[1]),
    "PYTHONDONTWRITEBYTECODE": "1",
}
#: An operator that every script below may use.
WORK = """
import opscope

@opscope.custom_op
def work(x=0):
    return x + 1

"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def script(folder: Path) -> Callable[..., str]:
    """`script(text, name)` writes a script, with `work` defined in it, and gives its name."""

    def write(text: str, name: str = "s.py", *, head: str = WORK) -> str:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + dedent(text), encoding="utf-8")
        return name

    return write


def environment(more: dict[str, str]) -> dict[str, str]:
    return {**ENVIRONMENT, **more}


@pytest.fixture
def python() -> Callable[..., Done]:
    """`python(*args)` runs a Python program to its end."""

    def run(*args: str, env: dict[str, str] | None = None, **more: Any) -> Done:
        return subprocess.run(
            [sys.executable, *args],
            env=environment(env or {}),
            capture_output=True,
            timeout=120,
            check=False,
            **more,
        )

    return run


@pytest.fixture
def opscope_run(python: Callable[..., Done]) -> Callable[..., Done]:
    """`opscope_run(*args)` is `opscope run -o out.opscope args...`."""

    def run(*args: str, **more: Any) -> Done:
        return python("-m", "opscope", "run", "-o", "out.opscope", *args, **more)

    return run


@pytest.fixture
def started() -> Any:
    """`started(*args)` starts a Python program; whatever still runs in the end is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*args: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *args],
            env=environment(env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=60)


@pytest.fixture
def calls(folder: Path) -> Callable[..., int]:
    """How many calls of custom operators the recording holds."""

    def count(name: str = "out.opscope") -> int:
        session = opscope.load(folder / name)
        assert session.processes[0].damage == ""
        return sum(row["calls"] for row in opscope.summary(session))

    return count
