"""PyTorch traces by slow and plain means, for comparison."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from opscope.importers import Options, members, read
from opscope.model import Session

TRACES = Path(__file__).parents[3] / "shared" / "traces" / "kineto"

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_RUNTIME = {"cuda_runtime", "cuda_driver"}
_NOT_SHOWN = {"python_function", "Trace", "overhead"}
_THEIRS = re.compile(r"(vllm|_C|_C_cache_ops|aiter|sglang|sglang_profiler|sgl_kernel)::\w+\Z")


@cache
def raw(name: str) -> list[dict[str, Any]]:
    """The complete events that are shown, with `at` and `end` in ns, outer ones first."""
    found = []
    for event in everything(name):
        if event["ph"] == "X" and event["cat"] not in _NOT_SHOWN:
            at = int(event["ts"] * 1000)
            found.append({**event, "at": at, "end": at + int(event["dur"] * 1000)})
    return sorted(found, key=lambda event: (event["at"], -event["end"]))


@cache
def everything(name: str) -> list[dict[str, Any]]:
    """All events of a file, numbers as they are written."""
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events: list[dict[str, Any]] = json.load(file, parse_float=Decimal)["traceEvents"]
    return events


@cache
def imported(name: str, *custom: str) -> Session:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    (member,) = members(path)
    return read(member, Options(custom))


def lane(event: dict[str, Any]) -> tuple[Any, Any]:
    return event["pid"], event["tid"]


def is_custom(event: dict[str, Any]) -> bool:
    return event["cat"] == "cpu_op" and _THEIRS.match(event["name"]) is not None


def crossings(name: str) -> int:
    """Spans of host lanes that begin inside another and end after it."""
    open_: defaultdict[Any, list[int]] = defaultdict(list)
    found = 0
    for event in raw(name):
        if event["cat"] not in DEVICE:
            stack = open_[lane(event)]
            while stack and stack[-1] <= event["at"]:
                stack.pop()
            found += bool(stack) and stack[-1] < event["end"]
            stack.append(event["end"])
    return found


@cache
def operators(name: str) -> dict[Any, list[dict[str, Any]]]:
    """By lane."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for event in raw(name):
        if event["cat"] == "cpu_op":
            found.setdefault(lane(event), []).append(event)
    return found


def around(name: str, inner: dict[str, Any]) -> list[dict[str, Any]]:
    """Operators around an event, the innermost first."""
    found = [
        event
        for event in operators(name).get(lane(inner), ())
        if event["at"] <= inner["at"] and inner["end"] <= event["end"] and event is not inner
    ]
    return sorted(found, key=lambda event: event["end"] - event["at"])


@cache
def launches(name: str) -> list[tuple[dict[str, Any], dict[str, Any] | None, bool]]:
    """(work, what launched it, whether that is an operator) of all that ran on a device."""
    calls = {e["args"]["correlation"]: e for e in raw(name)[::-1] if e["cat"] in _RUNTIME}
    numbered = {
        e["args"]["External id"]: e
        for e in raw(name)[::-1]
        if e["cat"] == "cpu_op" and "External id" in e["args"]
    }
    found = []
    for work in (event for event in raw(name) if event["cat"] in DEVICE):
        call = calls.get(work["args"]["correlation"])
        if call is None:
            by = numbered.get(work["args"].get("External id"))
            found.append((work, by, by is not None))
        else:
            ops = around(name, call)
            found.append((work, ops[0] if ops else call, bool(ops)))
    return found


def texts(session: Session) -> dict[int, tuple[str, int, int]]:
    """(name, start, end) of each span by its id; of none by 0."""
    rows = session.spans
    columns = (rows[column].tolist() for column in ("id", "name", "start_ns", "end_ns"))
    told = {i: (session.names[n], s, e) for i, n, s, e in zip(*columns, strict=True)}
    return {0: ("", 0, 0), **told}


def shown(event: dict[str, Any] | None) -> tuple[str, int, int]:
    return ("", 0, 0) if event is None else (event["name"], event["at"], event["end"])
