"""The script that makes the pictures of the documentation, run without a browser."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.end_to_end.conftest import ENVIRONMENT

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    done = subprocess.run(
        [sys.executable, PICTURES / "make.py", folder],
        env={**ENVIRONMENT, "PATH": str(folder)},  # where no browser is
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "no pictures of the page" in done.stdout.decode()
    return folder


def words(file: Path) -> str:
    """All text of a drawing."""
    return " ".join(ElementTree.parse(file).getroot().itertext()).replace("\u00a0", " ")


def test_tables_and_drawings_hold_what_they_are_about(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {
        *("table-80.svg", "table-200.svg", "tree-80.svg", "limits-2019.svg")
    }
    for name in ("table-80.svg", "table-200.svg"):
        assert {"Swish", "SoftmaxLoss", "elsewhere", "_backward_Swish"} <= set(
            words(made / name).split()
        )
    assert "phase" in words(made / "table-200.svg").split("largest")[0]
    assert "└ XX::XX" in words(made / "tree-80.svg")
    for path in made.glob("t*-*.svg"):
        assert below_the_last_line(path) > 5, path
    assert "Custom::XX::XX" in words(made / "limits-2019.svg")


def below_the_last_line(file: Path) -> float:
    """How much of a terminal can be seen below the foot of its last words."""
    text = file.read_text("utf-8")
    shown = re.search(r'clip-terminal">\s*<rect [^>]*height="([\d.]+)"', text)
    assert shown is not None
    words_at = re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>[^<]*[a-z][^<]*</text>', text)
    return float(shown[1]) - max(map(float, words_at))


def slice_of(name: str, ts: float, dur: float, kind: str, **args: Any) -> dict[str, Any]:
    args |= {"kind": kind}
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "tid": 2, "cat": "op", "args": args}


def test_slices_that_meet_are_drawn_side_by_side_below_their_call() -> None:
    lane = {"ph": "M", "name": "thread_name", "tid": 2, "args": {"name": "worker"}}
    drawn = runpy.run_path(str(PICTURES / "draw.py"))["draw"](
        [
            lane,
            slice_of("Custom", 198851.036, 5131.706, "call", flags=["failed"]),
            slice_of("Custom::dispatch", 198851.036, 20.696, "dispatch"),
            slice_of("Custom::own", 198871.732, 1864.145, "own"),  # to a float it begins too early
            slice_of("Custom::wait", 200735.877, 3037.886, "wait"),
        ]
    )
    row = re.compile(r"<title>(\S+) [^<]*</title><rect [^>]*?y=\"(\d+)\"")
    tops = {name: int(y) for name, y in row.findall(drawn)}
    assert len(tops) == 4
    assert tops["Custom::dispatch"] == tops["Custom::own"] == tops["Custom::wait"] > tops["Custom"]
    assert "call that raised" in drawn


def test_they_fetch_nothing_and_name_no_folder_of_this_machine(made: Path) -> None:
    for path in (*made.iterdir(), *PICTURES.glob("*.svg")):
        text = path.read_text("utf-8")
        assert str(ROOT) not in text
        assert set(re.findall(r"https?://[^\"'<> ]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_every_picture_is_there_small_and_shown() -> None:
    shown = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).is_file(), (page, target)
            shown.add((page.parent / target).name)
    here = {path.name: path.stat().st_size for path in PICTURES.iterdir() if path.suffix != ".py"}
    assert {name for name in here if "__" not in name} <= shown
    assert max(here.values()) <= 150_000
