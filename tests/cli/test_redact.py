"""`export --redact`: nothing that tells who, where or from which folder is in any file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import op, session, span

import opscope
from opscope.cli import main
from opscope.model import Kind, Lane, LinkKind, Process, Session
from opscope.present import FORMATS, Format

Command = Callable[..., tuple[int, str, str]]

SECRETS = ("qann", "jörg", "bob", "carol", "node7", "laptop", "corp", "hiddenx", "thesis")


@pytest.fixture
def made() -> Session:
    ours = op("/home/qann/hiddenx/m.py:f", file=r"C:\Users\Bob Lee\thesis\m.py", line=3)
    lines = [
        span(1, ours, Kind.CALL, 1000, 2000),
        span(2, "/home/jörg/hiddenx/x.py(12): f", Kind.OP, 1100, 1200, owner=1),
        span(
            3, r"C:\Users\bob\hiddenx\x.py(12): f", Kind.OP, 1300, 1400, owner=1, lane="pool qann"
        ),
        span(4, 'thesis/a"b.py by carol at laptop', Kind.RANGE, 500, 4000),
        span(5, "aten::mul", Kind.OP, 1500, 1600, owner=1),
    ]
    process = Process(
        pid=41,
        command=("/home/qann/hiddenx/python", "thesis/train.py", "--out=/data/thesis/o"),
        machine="node7.corp.example 1b2c",
    )
    lanes = [Lane("main"), Lane("pool qann", thread=9)]
    return session(lines, lanes=lanes, links=[(LinkKind.SPAWN, 1, 3)], processes=[process])


def left(data: bytes) -> list[str]:
    """Secrets in a file: as they are, and as JSON writes them."""
    plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    text = plain.decode(errors="replace").lower()
    return [s for s in SECRETS if s in text or json.dumps(s).strip('"') in text]


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: str(entry.ending))
def test_none_is_left(
    entry: Format,
    opscope_command: Command,
    made: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("USER", "carol")
    monkeypatch.setattr("socket.gethostname", lambda: "laptop.corp")
    ending = entry.ending if entry.ending.startswith(".") else f".{entry.ending}"
    plain, hidden, again = (tmp_path / f"{name}{ending}" for name in ("plain", "hidden", "again"))
    assert opscope_command("export", "f", "-o", str(plain)) == (0, "", "")
    assert opscope_command("export", "f", "--redact", "-o", str(hidden)) == (0, "", "")
    opscope.export(made, again, redact=True)
    assert again.read_bytes() == hidden.read_bytes()
    if "links" not in entry.ending:
        assert left(plain.read_bytes())
    assert left(hidden.read_bytes()) == []


def test_only_names_change(opscope_command: Command, tmp_path: Path) -> None:
    rows = []
    for name, options in (("plain", []), ("hidden", ["--redact"])):
        path = tmp_path / f"{name}.jsonl"
        assert opscope_command("export", "f", *options, "-o", str(path))[0] == 0
        rows.append([json.loads(line) for line in path.read_text("utf-8").splitlines()])
    named = {"name", "op", "key", "path", "lane"}
    for before, after in zip(*rows, strict=True):
        assert {k: v for k, v in before.items() if k not in named} == {
            k: v for k, v in after.items() if k not in named
        }
    assert rows[0][-1]["name"] == rows[1][-1]["name"] == "aten::mul"


def test_a_foreign_trace(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "dur": 5}
    names = ["/home/qann/hiddenx/x.py(1): f", "/home/qann/hiddenx/x.py(9): g"]
    events = [{**event, "name": name, "ts": 10 * n} for n, name in enumerate(names)]
    trace, out = tmp_path / "t.json", tmp_path / "out.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert main(["export", str(trace), "--redact", "-o", str(out)]) == 0
    assert left(out.read_bytes()) == []
    assert out.read_text("utf-8").count("path-1/x.py(") >= 2
