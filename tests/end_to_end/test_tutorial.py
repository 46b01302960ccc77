"""The tutorial can be followed: every command of its console blocks, in order, as it stands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.conftest import ENVIRONMENT

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"

#: What must be in the answer to a command that begins so: key facts, whatever the numbers are.
FACTS = {
    "opscope run -o build/slow": [r"^50 batches, mean distance 0\.7978$"],
    "opscope report build/slow": [
        r"^normalise .*[█#]+[░.]+$",
        r"^[└`-]+ ?clip ",
        r"^publish ",
        r"^largest total first",
    ],
    "opscope html": [],
    "opscope run --repeat 5 -o build/before": [r"^50 batches, mean distance 0\.7978$"],
    "opscope run --repeat 5 -o build/after": [r"^50 batches, mean distance 0\.7978$"],
    "opscope diff": [
        r"^5 base runs against 5 new: \d changes? beyond the noise$",
        r"^normalise: python faster by (100|[5-9]\d)%",
        r"^normalise: wait faster by (100|[5-9]\d)%",
    ],
    "opscope check build/after": [r"\A(opscope: .*\n)*exit code 0$"],
    "opscope check build/before": [r"^normalise: python slower by ", r"^exit code 1$"],
}


def blocks() -> list[tuple[str, str]]:
    """(command, the answer shown) of every console block, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown))
    return found


def facts(command: str) -> list[str]:
    (found,) = [wanted for start, wanted in FACTS.items() if command.startswith(start)]
    return found


@pytest.fixture
def clone(folder: Path) -> Path:
    """The examples, and an `opscope` as it stands in the environment's folder of programs."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "opscope"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m opscope "$@"\n', "utf-8")
    program.chmod(0o755)
    (folder / "build").mkdir()  # `make demo` left it
    return folder


def test_the_answers_shown_are_of_the_kind_that_is_given() -> None:
    assert [command for command, _ in blocks() if not facts(command)] == [
        "opscope html build/slow.opscope -o build/slow.html"
    ]
    for command, shown in blocks():
        for fact in facts(command) if shown else ():
            assert re.search(fact, shown, re.MULTILINE), (command, fact)


def test_every_command_does_what_it_says(clone: Path) -> None:
    environment = {
        **ENVIRONMENT,
        "PATH": f"{clone / 'bin'}:{ENVIRONMENT['PATH']}",
        "COLUMNS": "80",
        "PYTHONUTF8": "1",
    }
    assert len(blocks()) == len(FACTS)
    for command, _ in blocks():
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        )
        out = done.stdout.decode()
        assert done.returncode == 0, (command, out)
        assert "Traceback" not in out
        for fact in facts(command):
            assert re.search(fact, out, re.MULTILINE), (command, fact, out)
    recorded = {f"{side}.{run}.opscope" for side in ("before", "after") for run in range(1, 6)}
    assert {path.name for path in (clone / "build").iterdir()} == {
        *recorded,
        "slow.opscope",
        "slow.html",
    }
    assert "normalise" in (clone / "build" / "slow.html").read_text("utf-8")


def test_what_it_links_to_is_there() -> None:
    text = TUTORIAL.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (TUTORIAL.parent / target).exists(), target
