"""The recorded program closes descriptors that are not its own, and gets their numbers again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import opscope
from opscope.store import FileSink, load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its descriptors differ")


def _taken_over(sink: FileSink, path: Path) -> int:
    """Close the descriptor of the sink and open another file under its number."""
    number = sink._descriptor
    os.close(number)
    other = os.open(path, os.O_CREAT | os.O_RDWR)
    if other != number:
        os.dup2(other, number)
        os.close(other)
    os.write(number, b"theirs")
    return number


def test_a_file_of_the_program_is_neither_written_nor_closed(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "s.opscope")
    sink.put("notes", ["before"])
    sink.flush()
    number = _taken_over(sink, tmp_path / "other")
    sink.put("notes", ["after"])
    sink.flush()
    sink.close()
    assert (tmp_path / "other").read_bytes() == b"theirs"
    os.write(number, b"!")
    os.close(number)
    (process,) = load([sink.path]).processes
    assert (process.notes, process.damage) == (("before", "after"), "")


def test_without_its_file_the_recording_ends_in_order(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "s.opscope")
    number = _taken_over(sink, tmp_path / "other")
    sink.path.unlink()
    sink.put("notes", ["lost"])
    with pytest.raises(OSError, match="the program closed it"):
        sink.flush()
    sink.abandon()
    assert (tmp_path / "other").read_bytes() == b"theirs"
    os.close(number)


def test_a_program_that_closes_everything_is_recorded_to_its_end(tmp_path: Path) -> None:
    script = tmp_path / "daemon.py"
    script.write_text(
        "import os, opscope\n"
        "work = opscope.custom_op('work')(lambda: None)\n"
        "work()\n"
        "os.closerange(0, 256)\n"
        "other = os.open('other', os.O_CREAT | os.O_RDWR)\n"
        "os.dup2(other, 1), os.dup2(other, 2), os.dup2(other, 3)\n"
        "os.write(3, b'theirs')\n"
        "work()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "opscope", "run", "-o", "s.opscope", script.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(opscope.__file__).parents[1])},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert (tmp_path / "other").read_bytes().startswith(b"theirs")
    assert b"\x89opscope" not in (tmp_path / "other").read_bytes()
    session = load([tmp_path / "s.opscope"])
    assert len(session.spans) == 2
    assert session.processes[0].complete
    assert session.processes[0].damage == ""


def test_standard_descriptors_that_are_closed_are_not_taken(tmp_path: Path) -> None:
    program = (
        "import os, sys, opscope\n"
        "with opscope.profile(output='s.opscope'):\n"
        "    for number in range(3):\n"
        "        try:\n"
        "            os.write(number, b'noise')\n"
        "        except OSError:\n"
        "            pass\n"
    )
    code = (
        "import os, sys\n"
        "os.closerange(0, 3)\n"
        "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(opscope.__file__).parents[1])},
        timeout=60,
        check=False,
    )
    (process,) = load([tmp_path / "s.opscope"]).processes
    assert (process.complete, process.damage) == (True, "")
