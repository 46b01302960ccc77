"""Frames that are whole and say what cannot be: told, and nothing behind the reader meets them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.model import SPAN, Kind
from opscope.present import REPORTS, export, render_summary, report_rows
from opscope.store import parse

ROW = {"id": 999, "kind": Kind.OP, "end_ns": 5, "cpu_ns": -1}
OP = {"host": "h", "kind": "k", "name": "n"}
PROCESS = {"pid": 1, "command": ["x"], "machine": "m", "versions": {}, "start_ns": 1}
SIGHT = {"host": "h", "version": "1", "sees": ["calls"], "misses": {"a": "b"}}


def framed(tag: bytes, data: Any) -> bytes:
    payload = data if isinstance(data, bytes) else json.dumps(data).encode()
    return struct.pack("<4sII", tag, len(payload), zlib.crc32(payload, zlib.crc32(tag))) + payload


def span(**fields: int) -> bytes:
    row = np.zeros(1, SPAN)
    for field, value in {**ROW, **fields}.items():
        row[field] = value
    return row.tobytes()


FRAMES = [
    *((b"SPAN", span(kind=kind)) for kind in (0, 10, 127, -1)),
    *((b"SPAN", span(phase=phase)) for phase in (4, -1)),
    *((b"SPAN", span(**{word: place})) for word in ("name", "lane", "submitted_lane")
      for place in (-1, 2**31 - 1)),
    *((b"SPAN", span(id=id_)) for id_ in (0, -5)),
    (b"OPEN", [[5000, 0, -3, 77, -9, 0, 0, 0, 0, 0, 0, -1]]),
    (b"NAME", [10**12, ["a"]]), (b"NAME", [-5, ["a"]]), (b"NAME", [0, [None]]),
    (b"LANE", [10**12, [["a", "thread", 1]]]), (b"LANE", [0, [[None, 5, "x"]]]),
    (b"OPER", [9, [[10**12, OP]]]), (b"OPER", [9, [["q", OP]]]),
    (b"OPER", [9, [[1, {**OP, "name": ["n"]}]]]), (b"OPER", [9, [[1, {**OP, "line": "x"}]]]),
    (b"PROC", {**PROCESS, "pid": "x"}), (b"PROC", {**PROCESS, "command": [1, 2]}),
    (b"PROC", {**PROCESS, "start_ns": 1e300}), (b"PROC", {**PROCESS, "versions": {"a": 5}}),
    (b"SIGH", [{**SIGHT, "version": None}]), (b"SIGH", [{**SIGHT, "sees": [1]}]),
    (b"SIGH", [{**SIGHT, "misses": {"a": 5}}]),
    (b"SAMP", [{"op": None}]), (b"NOTE", [5]), (b"BROK", [None]),
    (b"DONE", {"end_ns": 10**25}), (b"TIME", [1e30, 5]), (b"COST", {"call": [1e300, 1]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tag", "data"), FRAMES, ids=[f"{n} {tag.decode()}" for n, (tag, _) in enumerate(FRAMES)]
)
def test_it_is_told_and_the_rest_is_used(
    whole: bytes, tmp_path: Path, tag: bytes, data: Any
) -> None:
    intact = parse(whole, "x")
    for place in (12, len(whole)):  # before and behind all other frames
        session = parse(whole[:place] + framed(tag, data) + whole[place:], "x")
        assert "no sense" in session.processes[0].damage
        assert session.spans.tolist() == intact.spans.tolist()
        assert (session.names, session.lanes, session.ops) == (
            intact.names, intact.lanes, intact.ops,
        )  # fmt: skip
        assert session.sight == intact.sight
        for by in REPORTS:
            report_rows(session, by)
        assert "no sense" in render_summary(session)
        for ending in ("json", "pftrace", "jsonl", "csv", "speedscope.json", "html"):
            export(session, tmp_path / f"x.{ending}", force=True)
