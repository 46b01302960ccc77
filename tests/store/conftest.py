"""A small recording with something of everything, as facts and as the bytes of its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.model import SPAN, Kind, Op
from opscope.store import FileSink

Facts = Sequence[tuple[str, Any]]


def row(
    id: int, name: int, start_ns: int, end_ns: int, kind: Kind = Kind.CALL, owner: int = 0
) -> tuple[int, ...]:
    """The twelve fields of a span on lane 0."""
    return (id, owner, name, int(kind), 0, 0, 0, 0, start_ns, end_ns, 0, -1)


@pytest.fixture
def facts() -> Facts:
    op = Op("python", "function", "outer", "mod.outer", "", 1, "mod.py", 7)
    head = {"pid": 7, "command": ["python", "x.py"], "machine": "here", "versions": {"numpy": "2"}}
    return [
        ("process", {**head, "start_ns": 1000}),
        ("sight", [{"host": "python", "version": "3", "sees": ["cpu"], "misses": {"locks": "no"}}]),
        ("names", [0, ["outer", "mul"]]),
        ("lanes", [0, [["MainThread", "thread", 77]]]),
        ("ops", [0, [[0, asdict(op)]]]),
        ("open", [list(row(1, 0, 1100, 0)), list(row(9, 0, 1500, 0))]),
        ("spans", np.array([row(2, 1, 1200, 1300, Kind.OP, owner=1)], SPAN).tobytes()),
        ("anchor", [1600, 1_700_000_000_000_000_000]),
        ("names", [2, ["sleep"]]),
        ("spans", np.array([row(3, 2, 1300, 1350, Kind.WAIT, 1), row(1, 0, 1100, 1400)],
                           SPAN).tobytes()),
        ("links", [[1, 1, 2], [4, 1, 9]]),
        ("pauses", [[1410, 1420]]),
        ("drops", [[1430, 1440, 3]]),
        ("samples", [{"line": 3, "hits": 2}]),
        ("broken", ["engine hook 'pushed': KeyError: 1"]),
        ("notes", ["a note of SPAN and DONE"]),
        ("anchor", [1700, 1_700_000_000_000_000_100]),
        ("end", {"end_ns": 1800}),
    ]  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Facts], bytes]:
    """Writes facts through a FileSink and gives the bytes of the file."""

    def write(facts: Facts) -> bytes:
        sink = FileSink(tmp_path / "written.opscope", force=True)
        for word, data in facts:
            sink.put(word, data)
        sink.close()
        return sink.path.read_bytes()

    return write


@pytest.fixture
def whole(facts: Facts, written: Callable[[Facts], bytes]) -> bytes:
    """The file of `facts`."""
    return written(facts)
