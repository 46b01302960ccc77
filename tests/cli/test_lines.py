"""`run --lines`, `report --lines`, `report --subtract-overhead`, on a program that really runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import opscope

SCRIPT = """\
import time
import opscope

def loop(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

@opscope.custom_op
def busy(seconds):
    loop(seconds)
    return seconds

@opscope.custom_op
def other(seconds):
    loop(seconds)

busy(0.3)
other(0.1)
"""
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("OPSCOPE_")},
    "PYTHONPATH": str(Path(opscope.__file__).parents[1]),
}


def command(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "opscope", *words],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=200,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lines")
    (place / "s.py").write_text(SCRIPT, "utf-8")
    file = str(place / "lines.opscope")
    command("run", "--lines", "-o", file, "--host", "python", str(place / "s.py"))
    command("run", "-o", str(place / "plain.opscope"), "--host", "python", str(place / "s.py"))
    return place


def test_the_lines_of_each_operator_stand_beside_the_source(folder: Path) -> None:
    out = command("report", "--lines", "--width", "300", str(folder / "lines.opscope"))
    first, second = out.split("\n\n")
    assert first.startswith("busy  about ")
    assert second.startswith("other  about ")
    for part in (first, second):
        assert f"loop  {folder / 's.py'}" in part
        assert re.search(r"%.* [67]      (while time.thread_time|    pass)", part)


def test_the_same_as_rows_of_one_operator(folder: Path) -> None:
    out = command("report", "--lines", "--json", "--op", "bu*", str(folder / "lines.opscope"))
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["op"] for row in rows} == {"busy"}
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert list(rows[0]) == [
        *("op", "key", "phase", "file", "line", "function", "body_lines"),
        *("share", "margin", "ns", "samples"),
    ]
    assert all(row["body_lines"] == [11] for row in rows if row["function"] == "loop")
    # The truth is 0.3 s of CPU time; what is sampled is right to within a period or so of each.
    assert 0.2e9 < sum(row["ns"] for row in rows) < 0.4e9


def test_without_lines_it_says_how_to_get_some(folder: Path) -> None:
    assert "opscope run --lines" in command("report", "--lines", str(folder / "plain.opscope"))
    error = command("report", "--op", "busy", str(folder / "plain.opscope"), code=2)
    assert "--op goes with --lines" in error


def test_lines_go_with_no_other_table(folder: Path) -> None:
    file = str(folder / "lines.opscope")
    for words in (["--quality"], ["--by", "call"], ["--subtract-overhead"]):
        error = command("report", "--lines", *words, file, code=2)
        assert f"does not go with {words[0]}" in error
    assert command("report", "--lines", "--op", "none such", file) == (
        "No operator of such a name has hot lines.\n"
    )


def test_every_table_tells_what_recording_cost(folder: Path) -> None:
    out = command("report", str(folder / "plain.opscope"))
    assert re.search(r"own overhead +[<\d.]+ % of wall, [\d.]+ (ns|us) per event\n", out)


def test_the_overhead_is_taken_out(folder: Path) -> None:
    def wall(*options: str) -> dict[str, int]:
        out = command("report", "--json", *options, str(folder / "plain.opscope"))
        return {row["op"]: row["wall_ns"] for row in map(json.loads, out.splitlines())}

    raw, less = wall(), wall("--subtract-overhead")
    inside, _ = opscope.load(folder / "plain.opscope").processes[0].costs["call"]
    assert {name: raw[name] - less[name] for name in raw} == {"busy": inside, "other": inside}
    out = command("report", "--subtract-overhead", str(folder / "plain.opscope"))
    assert "taken out of the parts above" in out


def test_of_somebody_else_s_trace_it_is_not_known(tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    trace.write_text('{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "a", "pid": 1}]}')
    error = command("report", "--subtract-overhead", str(trace), code=2)
    assert "cannot subtract the overhead" in error
