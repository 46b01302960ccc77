"""The keys of everything that programs read. Changing one of these lists breaks scripts."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from tests.builders import session, span

from opscope.model import Kind, Phase, Session
from opscope.present import as_json, report_rows, write_csv, write_links, write_rows, write_spans

PARTS = [
    *("wall_ns", "python_ns", "native_ns", "sub_ns", "wait_ns"),
    *("dispatch_ns", "runtime_ns", "untracked_ns"),
]
BESIDE = [
    *("sub_wait_ns", "elsewhere_ns", "elsewhere_union_ns", "elsewhere_python_ns"),
    *("device_ns", "device_union_ns", "queue_ns", "span_ns"),
]
REPORT_KEYS = {
    "op": [
        *(
            "op",
            "key",
            "host",
            "kind",
            "site",
            "path",
            "phase",
            "calls",
            "subs",
            "failed",
            "incomplete",
        ),
        *("estimated", *PARTS, *BESIDE, "mean_ns", "p50_ns", "p95_ns", "max_ns", "first_ns"),
    ],
    "sub": [
        *("path", "op", "key", "name", "kind", "phase", "count", "total_ns", "self_ns"),
        *("mean_ns", "p50_ns", "p95_ns", "max_ns"),
    ],
    "call": [
        *("call", "op", "key", "path", "phase", "parent", "forward_call", "process", "lane"),
        *("start_ns", "subs", "flags", *PARTS, *BESIDE),
    ],
    "lane": [
        *("process", "lane", "kind", "thread", "spans", "calls", "busy_ns"),
        *("first_ns", "last_ns"),
    ],
    "step": [
        *("step", "index", "process", "lane", "start_ns", "step_ns", "calls"),
        *(*PARTS, *BESIDE),
    ],
}
SPANS = [
    *("id", "owner", "parent", "kind", "phase", "name", "op", "key", "path", "domain"),
    *("process", "lane", "thread", "start_ns", "end_ns", "submitted_ns", "cpu_ns", "flags"),
]
LINKS = ["kind", "source", "target"]


@pytest.fixture
def made() -> Session:
    return session(
        [
            span(1, "A", Kind.CALL, 1000, 2000, phase=Phase.BACKWARD, cpu_ns=7),
            span(2, "x", Kind.OP, 1500, 2500, owner=1, lane="w", submitted_ns=1100),
            span(3, "gc", Kind.RUNTIME, 1600, 1700),
            span(4, "y", Kind.OP, 3000, 3100),
            span(5, "s", Kind.STEP, 1000, 4000),
        ]
    )


def read(write: Any, *args: Any) -> list[dict[str, Any]]:
    file = io.StringIO()
    write(*args, file)
    return [json.loads(line, parse_constant=pytest.fail) for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("by", REPORT_KEYS)
def test_keys_of_reports(made: Session, by: str) -> None:
    rows = report_rows(made, by)
    records = read(write_rows, rows)
    assert records == [as_json(row) for row in rows]
    assert records
    for record in records:
        assert list(record) == REPORT_KEYS[by]


def test_spans(made: Session) -> None:
    records = read(write_spans, made)
    assert all(list(record) == SPANS for record in records)
    assert records[0] == {
        **{"id": 1, "owner": None, "parent": 5, "kind": "call", "phase": "backward", "name": "A"},
        **{"op": "A", "key": "python:A#1", "path": ["_backward_A"], "domain": "Custom Operator"},
        **{"process": 41, "lane": "main", "thread": 1000, "start_ns": 0, "end_ns": 1000},
        **{"submitted_ns": None, "cpu_ns": 7, "flags": ["estimated", "outlived"]},
    }
    assert records[1] == {
        **{"id": 2, "owner": 1, "parent": None, "kind": "op", "phase": "none", "name": "x"},
        **{"op": "A", "key": "python:A#1", "path": ["_backward_A", "x"]},
        **{"domain": "Custom Operator", "process": 41, "lane": "w", "thread": 1001},
        **{"start_ns": 500, "end_ns": 1500, "submitted_ns": 100, "cpu_ns": None, "flags": []},
    }
    assert [(r["domain"], r["op"], r["path"]) for r in records[2:]] == [
        ("runtime", None, ["gc"]),
        ("operator", None, ["y"]),
        ("operator", None, ["s"]),
    ]


def test_links(made: Session) -> None:
    assert read(write_links, made) == [{"kind": "push", "source": 1, "target": 2}]
    assert list(read(write_links, made)[0]) == LINKS


def test_csv_says_what_json_lines_say(made: Session) -> None:
    file = io.StringIO()
    write_csv(made, file)
    header, *rows = csv.reader(io.StringIO(file.getvalue()))
    assert header == SPANS
    for row, record in zip(rows, read(write_spans, made), strict=True):
        cells = dict(zip(header, row, strict=True))
        for key, value in record.items():
            if value is None:
                assert cells[key] == ""
            elif isinstance(value, list):
                assert json.loads(cells[key]) == value
            else:
                assert cells[key] == str(value)
