"""A recording that the program starts and never stops ends with the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import opscope

PROGRAM = """
import atexit, gc, os, sys, threading, opscope
recording = opscope.profile(output="out.opscope").start()
gc.collect()  # the first thing that is seen of this thread is no call
@opscope.custom_op
def work(): pass
work()
atexit.register(work)
"""


def run(folder: Path, ending: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + ending],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit(3)", 3), ("1 / 0", 1), ("os.fork() or os._exit(0); os.wait()", 0)],
)
def test_it_ends_with_the_interpreter(tmp_path: Path, ending: str, code: int) -> None:
    done = run(tmp_path, ending)
    assert done.returncode == code
    assert "opscope" not in done.stderr
    session = opscope.load(tmp_path / "out.opscope")
    assert session.processes[0].complete
    (row,) = opscope.summary(session)
    assert row["calls"] == 2  # the one at exit is in it


def test_it_is_one_lane_a_thread(tmp_path: Path) -> None:
    run(tmp_path)
    session = opscope.load(tmp_path / "out.opscope")
    seen = {session.lanes[lane].name for lane in session.spans["lane"]}
    assert seen == {"MainThread"}
    assert len(set(session.spans["lane"].tolist())) == 1


def test_one_that_was_stopped_stays_stopped(tmp_path: Path) -> None:
    done = run(tmp_path, "recording.stop()")
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = opscope.summary(opscope.load(tmp_path / "out.opscope"))
    assert row["calls"] == 1
