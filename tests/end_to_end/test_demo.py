"""`opscope demo` leaves a recording and a trace, and explains them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.cli.demo import _program
from opscope.present import as_json, report_rows


def test_it_trains_reports_and_leaves_two_files(python: Any, folder: Path) -> None:
    done = python("-m", "opscope", "demo", "-o", "new/folder", "--epochs", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode()
    assert text.startswith("training on handwritten digits, 1 epoch:\nepoch 1: loss ")
    recorded, trace = (
        folder / "new" / "folder" / f"demo.{end}" for end in ("opscope", "trace.json.gz")
    )
    assert f"opscope report {recorded.relative_to(folder)}" in text
    page = recorded.with_suffix(".html").relative_to(folder)
    assert f"opscope html {recorded.relative_to(folder)} -o {page} --open" in text
    total = len({(*r.path, r.phase) for r in report_rows(opscope.load(recorded), "sub")})
    assert f"what they launched, by path, the longest 8 of {total}:" in text
    assert {path.name for path in recorded.parent.iterdir()} == {recorded.name, trace.name}

    session = opscope.load(recorded)
    assert session.processes[0].complete
    assert session.processes[0].damage == ""
    rows = {(row["op"], row["phase"]): row for row in opscope.summary(session)}
    assert set(rows) == {
        (op, phase) for op in ("SoftmaxLoss", "Swish") for phase in ("forward", "backward")
    }
    for (op, _), row in rows.items():
        assert op in text
        assert row["calls"] == row["calls"] - row["failed"] - row["incomplete"] > 10
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert any(event["name"] == "Swish" for event in events)
    again = opscope.load(trace)
    for by in ("op", "sub", "call", "lane"):
        every = [list(map(as_json, report_rows(one, by))) for one in (session, again)]
        assert every[0] == every[1], by


@pytest.mark.parametrize("there", ["demo.opscope", "demo.trace.json.gz"])
def test_it_overwrites_nothing_and_says_so_before_it_trains(
    python: Any, folder: Path, there: str
) -> None:
    (folder / there).write_bytes(b"mine")
    done = python("-m", "opscope", "demo", "--epochs", "1")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().strip() == (
        f"opscope: error: {there} exists: choose another folder, or overwrite it with --force"
    )
    assert [path.read_bytes() for path in folder.iterdir()] == [b"mine"]
    assert python("-m", "opscope", "demo", "--epochs", "1", "--force").returncode == 0
    assert (folder / there).read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("-o", "file"), "cannot make the folder file: File exists"),
        (("-o", "file/below"), "cannot make the folder file/below: Not a directory"),
        (("--epochs", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    python: Any, folder: Path, args: tuple[str, ...], reason: str
) -> None:
    (folder / "file").write_bytes(b"mine")
    done = python("-m", "opscope", "demo", *args)
    assert (done.returncode, done.stdout) == (2, b"")
    assert reason in done.stderr.decode()


@pytest.mark.parametrize("found", [True, False])
def test_what_it_says_to_type_can_be_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    program = folder / ".venv" / "bin" / "opscope"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", str(program.parent) if found else str(folder))
    assert _program() == ("opscope" if found else ".venv/bin/opscope")


def test_disabled_it_says_so(python: Any, folder: Path) -> None:
    done = python("-m", "opscope", "demo", env={"OPSCOPE_DISABLE": "1"})
    assert done.returncode == 2
    assert "OPSCOPE_DISABLE is set" in done.stderr.decode()
    assert list(folder.iterdir()) == []
