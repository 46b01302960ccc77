"""What the environment says when the stand-in is imported, each in a fresh interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "import opscope.compat.mxnet as mx\nfrom opscope import engine\n"


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in that folder, with these variables and no others of MXNet's."""
    others = {k: v for k, v in os.environ.items() if not k.startswith(("MXNET_", "OPSCOPE_"))}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", HEAD + code],
        env={**others, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def said(code: str, folder: Path, **environment: str) -> str:
    done = run(code, folder, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        ("NaiveEngine", "naive"),
        ("ThreadedEngine", "threaded"),
        ("ThreadedEnginePerDevice", "threaded"),
        ("", "threaded"),
    ],
)
def test_the_engine_type(variable: str, kind: str, tmp_path: Path) -> None:
    code = "print(engine.get().kind, (mx.nd.ones(3) + 1).asnumpy().tolist())"
    assert said(code, tmp_path, MXNET_ENGINE_TYPE=variable) == f"{kind} [2.0, 2.0, 2.0]"


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers(workers: int, tmp_path: Path) -> None:
    code = """
import threading
barrier = threading.Barrier(3)
def meet():
    barrier.wait(0.5)
for _ in range(3):
    engine.push_sync(meet)
try:
    mx.nd.waitall()
    print("met")
except mx.base.MXNetError as error:
    print("alone", type(error.__cause__).__name__)
"""
    wanted = "met" if workers == 3 else "alone BrokenBarrierError"
    assert said(code, tmp_path, MXNET_CPU_WORKER_NTHREADS=str(workers)) == wanted


def test_nothing_said_leaves_the_engine_in_use_alone(tmp_path: Path) -> None:
    code = "print(engine.current._engine)"
    assert said(code, tmp_path) == "None"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MXNET_ENGINE_TYPE", "Diesel"), ("MXNET_CPU_WORKER_NTHREADS", "many")],
)
def test_nonsense_is_refused_in_words(variable: str, value: str, tmp_path: Path) -> None:
    done = run("", tmp_path, **{variable: value})
    assert done.returncode == 1
    assert "MXNetError" in done.stderr
    assert variable in done.stderr
    assert repr(value) in done.stderr


def test_autostart_records_from_the_import_and_writes_at_exit(tmp_path: Path) -> None:
    code = "mx.nd.sqrt(mx.nd.ones(3)); print(mx.profiler.state())"
    assert said(code, tmp_path, MXNET_PROFILER_AUTOSTART="1") == "run"
    events = json.loads((tmp_path / "profile.json").read_text("utf-8"))["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"].count("sqrt") == 1


def test_autostart_0_does_not(tmp_path: Path) -> None:
    assert said("print(mx.profiler.state())", tmp_path, MXNET_PROFILER_AUTOSTART="0") == "stop"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("mx.profiler.set_state('run'); mx.nd.ones(3)", ["profile.json"]),
        ("mx.profiler.set_state('run'); mx.profiler.set_state('stop')", ["profile.json"]),
        ("mx.profiler.dumps()", []),
        ("mx.profiler.set_config(filename='a.json')", []),
    ],
)
def test_what_ran_is_written_at_exit(code: str, files: list[str], tmp_path: Path) -> None:
    said(code, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_a_finished_dump_is_the_last(tmp_path: Path) -> None:
    code = """
import os
mx.profiler.set_state('run'); mx.profiler.dump(); os.remove('profile.json'); mx.nd.ones(3)
"""
    said(code, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_work_under_way_at_the_exit_is_waited_for_even_if_it_fails(tmp_path: Path) -> None:
    code = """
import time
def slow():
    time.sleep(0.2)
    1 / 0
mx.profiler.set_state('run')
engine.push_sync(slow, name='slow')
"""
    said(code, tmp_path)
    events = json.loads((tmp_path / "profile.json").read_text("utf-8"))["traceEvents"]
    assert [e["args"]["flags"] for e in events if e["name"] == "slow"] == [["failed"]]
