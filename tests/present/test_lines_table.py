"""Hot lines beside their source, as it was when they ran."""

from __future__ import annotations

import os
import threading
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import op, session

from opscope.model import Session
from opscope.present import render_lines

SOURCE = """\
def forward(x):
\ty = x * 2
    # nothing
    z = y + 1



    return z  # \x07[red]not markup[/red]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ops.py"
    path.write_text(SOURCE, "utf-8")
    return path


def recorded(file: Path, *, read: bool = True) -> Session:
    data = file.read_bytes()
    rows: list[dict[str, Any]] = [
        {
            "op": op("Swish").key,
            "phase": "forward",
            "file": str(file),
            "line": line,
            "function": "forward",
            "body_file": str(file),
            "body_line": 8,
            "samples": samples,
            "ns": samples * 1_000_000,
        }
        for line, samples in ((8, 60), (2, 39), (4, 1))
    ]
    if read:
        rows.insert(0, {"source": str(file), "size": len(data), "crc32": zlib.crc32(data)})
    return replace(session([], ops=[op("Swish")]), samples=tuple(rows))


def table(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_shares_stand_beside_the_source(file: Path) -> None:
    found = table(render_lines(recorded(file), width=200))
    assert found == [
        "Swish forward  about 100.0 ms in its own lines, 100 samples",
        "   share     +-       ms  line",
        f"                                forward  {file}",
        "   39.0%   9.4%     39.0     2      y = x * 2",
        "                             3      # nothing",
        "    1.0%   3.2%      1.0     4      z = y + 1",
        "                           ...",
        "   60.0%   9.4%     60.0     8      return z  # \\x07[red]not markup[/red]",
    ]


def test_a_file_that_changed_is_not_shown(file: Path) -> None:
    session = recorded(file)
    file.write_text(SOURCE + "\n", "utf-8")
    found = table(render_lines(session, width=200))
    assert found[2].endswith("ops.py (the source has changed since it was recorded)")
    assert found[3:] == [
        "   39.0%   9.4%     39.0     2  from line 8",
        "    1.0%   3.2%      1.0     4  from line 8",
        "   60.0%   9.4%     60.0     8",
    ]


def test_a_file_that_is_not_here_is_named(file: Path) -> None:
    session = recorded(file)
    file.unlink()
    assert "ops.py (the source is not here)" in render_lines(session, width=200)
    nowhere = recorded_nowhere(session)
    assert "(no such file when it was recorded)" in render_lines(nowhere, width=200)


def recorded_nowhere(session: Session) -> Session:
    return replace(session, samples=session.samples[1:])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_file_any_more_is_not_waited_for(file: Path) -> None:
    session = recorded(file)
    file.unlink()
    os.mkfifo(file)
    # As a reader that waits would: it ends, with a file that changed.
    writer = threading.Timer(20, lambda: file.write_text(SOURCE, "utf-8"))
    writer.daemon = True
    writer.start()
    found = table(render_lines(session, width=200))
    writer.cancel()
    assert found[2].endswith(f"{file} (the source is not here)")


def test_what_is_no_python_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ops.py"
    file.write_bytes(b"# coding: nonsense\n\xff\n")
    assert "(the source is not readable as Python)" in render_lines(recorded(file), width=200)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_terminal(file: Path, width: int) -> None:
    for line in render_lines(recorded(file), width=width).splitlines():
        assert len(line) <= max(width, 20)


def test_without_samples_it_says_how_to_get_some() -> None:
    assert "opscope run --lines" in render_lines(session([]))
