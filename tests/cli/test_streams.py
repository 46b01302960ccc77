"""What a command does when there is nobody, or no room, to write to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.cli import main

COMMANDS = [["report", "run.opscope"], ["report", "run.opscope", "--json"], ["info"], ["--help"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a recording in it."""
    place = tmp_path_factory.mktemp("streams")
    with opscope.profile(output=place / "run.opscope"), opscope.custom_op("work"):
        pass
    return place


@pytest.fixture
def unwritable() -> Iterator[int]:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def in_process(folder: Path, args: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opscope", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(opscope.__file__).parents[1])},
        text=True,
        timeout=60,
        check=False,
        **more,
    )


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_no_room_for_the_output_is_said_in_one_line(
    folder: Path, unwritable: int, args: list[str]
) -> None:
    done = in_process(folder, args, stdout=unwritable, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "opscope: error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("args", [*COMMANDS, ["report", "none"]], ids=" ".join)
def test_closed_streams(folder: Path, args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python has it: what is said goes nowhere."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(args) == (3 if "none" in args else 0)
    assert (sys.stdout, sys.stderr) == (None, None)


def test_a_program_sees_that_its_streams_are_closed(folder: Path) -> None:
    (folder / "look.py").write_text(
        "import sys; open('seen', 'w').write(repr((sys.stdout, sys.stderr)))\n"
    )
    code = (
        "import os, sys; os.closerange(1, 3); os.execv(sys.executable, [sys.executable, '-m',"
        " 'opscope', 'run', '-o', 'look.opscope', 'look.py'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(opscope.__file__).parents[1])},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert (folder / "seen").read_text() == "(None, None)"


def test_a_message_is_one_line_whatever_the_name_of_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["report", "\x1b[31mno\nsuch"]) == 3
    said = r"opscope: error: cannot read \x1b[31mno\nsuch: No such file or directory" + "\n"
    assert capsys.readouterr().err == said
