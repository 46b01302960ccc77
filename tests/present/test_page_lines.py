"""Hot lines on the page: data beside the operators, source as text and nothing else."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.builders import op, session, span
from tests.present.pages import page_of

from opscope.analyse.redact import redacted
from opscope.model import Kind, Session
from opscope.present.page.lines import LINES, hot_lines

SOURCE = "def f():\n\tx = '</script><script>alert(1)</script>'\n\n    return x\n" + "\n" * 90


def sampled(tmp_path: Path, lines: tuple[int, ...]) -> Session:
    file = tmp_path / "ops.py"
    file.write_text(SOURCE, "utf-8")
    data = file.read_bytes()
    samples: list[dict[str, Any]] = [
        {"source": str(file), "size": len(data), "crc32": zlib.crc32(data)}
    ]
    samples += [
        {
            "op": op("A").key,
            "phase": "none",
            "file": str(file),
            "line": line,
            "function": "f",
            "body_file": str(file),
            "body_line": line,
            "samples": 1,
            "ns": 1000 * line,
        }
        for line in lines
    ]
    return replace(session([span(1, "A", Kind.CALL, 0, 100)]), samples=tuple(samples))


def test_lines_stand_with_their_source(tmp_path: Path) -> None:
    page = page_of(sampled(tmp_path, (2, 4)))
    (entry,) = page.data("lines-data")
    assert (entry["key"], entry["phase"], entry["samples"]) == (op("A").key, "none", 2)
    ((function, file, why, lines),) = entry["functions"]
    assert (function, file, why) == ("f", str(tmp_path / "ops.py"), "")
    assert [line[:2] for line in lines] == [
        [2, "    x = '</script><script>alert(1)</script>'"],
        [3, ""],
        [4, "    return x"],
    ]
    assert [line[2] for line in lines] == [0.33333, None, 0.66667]
    (row,) = page.data("operators-data")["rows"]
    assert row["phases"][0]["key"] == entry["key"]
    assert "alert(1)" not in "".join(page.code)


def test_the_costliest_lines_are_kept(tmp_path: Path) -> None:
    (entry,) = hot_lines(sampled(tmp_path, tuple(range(1, LINES + 11))))
    assert entry["left_out"] == 10
    kept = [line[0] for line in entry["functions"][0][3]]
    assert kept == list(range(11, LINES + 11))


def test_a_redacted_page_has_no_source(tmp_path: Path) -> None:
    (entry,) = hot_lines(redacted(sampled(tmp_path, (2,))))
    assert entry["functions"][0][2] == "the source is not here"
    assert entry["functions"][0][3][0][1] is None
    assert str(tmp_path) not in str(entry)


def test_without_samples_there_is_nothing(tmp_path: Path) -> None:
    assert hot_lines(session([span(1, "A", Kind.CALL, 0, 100)])) == []
