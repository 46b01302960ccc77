"""Everything a recorder can say comes back as it was said, through a file and through memory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.model import SPAN, Kind, Lane, Op, Sight
from opscope.store import FileSink, MemorySink, load

LONG = "n" * 127
NAMES = [
    "", "Custom", "A::B", "A::pure_python", "a 'quoted' \"name\"", "back\\slash", "two\nlines",
    "nul\0inside", "\N{SNAKE}\N{FIRE}", "lone \ud800 surrogate", "x" * 300, LONG + "1", LONG + "2",
    "\x1b[31mred", "<b>&amp;</b>", "PROC NAME SPAN DONE", "\N{RIGHT-TO-LEFT OVERRIDE}abc",
]  # fmt: skip


@pytest.fixture(params=["file", "memory"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return FileSink(tmp_path / "s.opscope") if request.param == "file" else MemorySink()


def put_all(sink: Any, facts: Any) -> None:
    for word, data in facts:
        sink.put(word, data)
    sink.close()


def test_every_fact_comes_back(sink: Any, facts: Any) -> None:
    put_all(sink, facts)
    session = sink.session()
    assert session.names == ("outer", "mul", "sleep")
    assert session.lanes == (Lane("MainThread", "thread", 0, 77),)
    assert session.ops == (Op("python", "function", "outer", "mod.outer", "", 1, "mod.py", 7),)
    assert session.op_names == (0,)
    assert [tuple(link) for link in session.links.tolist()] == [(1, 1, 2), (4, 1, 9)]
    assert [tuple(pause) for pause in session.pauses.tolist()] == [(0, 1410, 1420)]
    assert [tuple(drop) for drop in session.drops.tolist()] == [(0, 1430, 1440, 3)]
    assert session.samples == ({"line": 3, "hits": 2},)
    assert session.sight == (Sight("python", "3", ("cpu",), {"locks": "no"}),)
    (process,) = session.processes
    assert (process.pid, process.command, process.machine) == (7, ("python", "x.py"), "here")
    assert (process.start_ns, process.end_ns, process.complete) == (1000, 1800, True)
    assert [mono for mono, _ in process.anchors] == [1600, 1700]
    assert process.broken == ("engine hook 'pushed': KeyError: 1",)
    assert (process.notes, process.damage) == (("a note of SPAN and DONE",), "")
    assert dict(process.versions) == {"numpy": "2"}


def test_every_name_comes_back_in_every_place(sink: Any) -> None:
    ops = [Op("python", "function", name, name, registration=n) for n, name in enumerate(NAMES)]
    put_all(
        sink,
        [
            ("process", {"pid": 1, "command": NAMES, "machine": NAMES[9], "versions": {},
                         "start_ns": 1}),
            ("names", [0, NAMES]),
            ("lanes", [0, [[name, "thread", 0] for name in NAMES]]),
            ("ops", [0, [[n, asdict(op)] for n, op in enumerate(ops)]]),
            ("notes", NAMES),
            ("sight", [{"host": n, "version": n, "sees": [n], "misses": {n: n}} for n in NAMES]),
        ],
    )  # fmt: skip
    session = sink.session()
    assert list(session.names) == NAMES
    assert [lane.name for lane in session.lanes] == NAMES
    assert list(session.ops) == ops
    assert len({op.key for op in session.ops}) == len(NAMES)
    assert list(session.processes[0].command) == list(session.processes[0].notes) == NAMES
    assert [dict(sight.misses) for sight in session.sight] == [{name: name} for name in NAMES]


def test_extreme_numbers_come_back(sink: Any) -> None:
    big, small = 2**63 - 1, -(2**63)
    row = (big, big, 3, Kind.CALL, 3, 32767, 5, 4, small, big, big, -1)
    put_all(sink, [("spans", np.array([row], SPAN).tobytes())])
    session = sink.session()
    assert tuple(session.spans[0].tolist()) == row
    assert len(session.names) == 4
    assert len(session.lanes) == 6


def test_what_was_not_flushed_is_not_in_the_file(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "s.opscope")
    sink.put("names", [0, ["a"]])
    assert sink.session().names == ()
    sink.flush()
    assert sink.session().names == ("a",)
    sink.put("names", [1, ["b"]])
    sink.abandon()
    assert load([sink.path]).names == ("a",)


def test_the_file_is_found_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    sink = FileSink("s.opscope")
    monkeypatch.chdir("other")
    sink.close()
    assert sink.session().names == ()
