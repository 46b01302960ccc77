"""The commands of the README on the shipped example: the keys of every report, and the sum rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PARTS = (
    "python_ns", "native_ns", "sub_ns", "wait_ns", "dispatch_ns", "runtime_ns", "untracked_ns"
)  # fmt: skip
BESIDE = (
    "sub_wait_ns", "elsewhere_ns", "elsewhere_union_ns", "elsewhere_python_ns",
    "device_ns", "device_union_ns", "queue_ns", "span_ns",
)  # fmt: skip
TIMED = {"wall_ns", *PARTS, *BESIDE}
KEYS = {
    "op": {
        "op", "key", "host", "kind", "site", "path", "phase", "calls", "subs",
        "failed", "incomplete", "estimated",
        "mean_ns", "p50_ns", "p95_ns", "max_ns", "first_ns",
    } | TIMED,
    "sub": {
        "path", "op", "key", "name", "kind", "phase", "count", "total_ns", "self_ns", "mean_ns",
        "p50_ns", "p95_ns", "max_ns",
    },
    "call": {
        "call", "op", "key", "path", "phase", "parent", "forward_call", "process", "lane",
        "start_ns", "subs", "flags",
    } | TIMED,
}  # fmt: skip


def opscope(*args: str | Path) -> str:
    """Run the command; returns what it printed."""
    run = subprocess.run(
        [sys.executable, "-m", "opscope", *map(str, args)],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, recorded by `opscope run`."""
    file = tmp_path_factory.mktemp("contract") / "x.opscope"
    opscope("run", "-o", file, ROOT / "examples" / "digits_loss.py")
    return file


def rows(recording: Path, by: str) -> list[dict[str, Any]]:
    """The rows of one report."""
    printed = opscope("report", recording, "--json", "--by", by)
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.parametrize("by", list(KEYS))
def test_keys(recording: Path, by: str) -> None:
    found = rows(recording, by)
    assert found
    for row in found:
        assert set(row) == KEYS[by]


def test_the_default_is_by_op(recording: Path) -> None:
    assert opscope("report", recording, "--json") == opscope(
        "report", recording, "--json", "--by", "op"
    )


@pytest.mark.parametrize("by", ["op", "call"])
def test_the_parts_add_up(recording: Path, by: str) -> None:
    for row in rows(recording, by):
        assert all(row[part] is None or row[part] >= 0 for part in PARTS), row
        assert row["wall_ns"] == sum(row[part] or 0 for part in PARTS), row


def test_what_the_example_really_did(recording: Path) -> None:
    calls = rows(recording, "call")
    # 3 epochs of 30 batches, each forward and backward, and one forward more after each epoch.
    count = {(op, phase): 0 for op in ("Swish", "SoftmaxLoss") for phase in ("forward", "backward")}
    for call in calls:
        count[call["op"], call["phase"]] += 1
        assert (call["forward_call"] is None) is (call["phase"] == "forward")
    assert set(count.values()) == {93, 90}
    subs = {(tuple(row["path"]), row["kind"]): row["count"] for row in rows(recording, "sub")}
    assert subs[("Swish", "exp"), "op"] == 93
    assert subs[("_backward_Swish", "exp"), "op"] == 90
    assert all(call["device_ns"] is None for call in calls)
