"""torch's profiler is emptied while several threads run operators."""

from __future__ import annotations

import _thread
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.torch.ops import custom, sees_threads, torch
from tests.hosts.torch.windowed import due, recorded, whole

import opscope
from opscope.hosts.torch.quiet import Quiet
from opscope.record.clock import SystemClock

BUSY = """
import json, sys, threading, time
import torch, opscope
import opscope.hosts.torch.windows as windows
windows._FIRST_S = windows._LEAST_S = windows._MOST_S = 0.005
torch.set_num_threads(1)
x = torch.ones(300, 300)
over, done = threading.Event(), 0
def work():
    global done
    while not over.is_set():
        torch.mm(x, x)
        done += 1
work_on = threading.Thread(target=work)
with opscope.profile() as run:
    work_on.start()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        time.sleep(0.01)
        run._recorder.tell("tick")
    over.set()
    work_on.join()
session = run.session
names = [session.names[name] for name in session.spans["name"].tolist()]
print(json.dumps([done, names.count("aten::mm"), session.processes[0].notes]))
"""


@sees_threads
def test_a_thread_that_runs_operators_all_the_time_is_seen_to_the_end(tmp_path: Path) -> None:
    file = tmp_path / "busy.py"
    file.write_text(BUSY, "utf-8")
    for _ in range(4):  # where cores are short, one moment in a few is wrongly taken to be quiet
        found = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
        assert (found.returncode, found.stderr) == (0, "")
        done, seen, notes = json.loads(found.stdout)
        assert seen >= done - 2 or "operators are missing" in " ".join(notes), found.stdout
        if seen >= done - 2:
            break
    assert "stopped early" not in " ".join(notes)
    assert seen >= done - 2


# --- several threads ------------------------------------------------------------------------------

THREADS = """
import collections, json, sys, threading, time
import torch, opscope
import opscope.hosts.torch.windows as collector
from opscope.analyse import calls
from opscope.model import Kind
collector._FIRST_S = collector._LEAST_S = collector._MOST_S = 0.02
def kernel(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0.001)
    return torch.neg(torch.exp(x))
op = torch.library.custom_op("opscope_windows::op", kernel, mutates_args=())
op.register_autograd(lambda ctx, slope: torch.cos(slope))
COUNT = 400
def work():
    x = torch.ones(3, requires_grad=True)
    for _ in range(COUNT):
        op(x).sum().backward()
with opscope.profile() as run:
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
session = run.session
spans = session.spans
inside = collections.defaultdict(collections.Counter)
for row in spans[spans["kind"] == Kind.OP]:
    inside[int(row["owner"])][session.names[row["name"]]] += 1
told, OURS = [], ("aten::neg", "aten::exp", "aten::cos")
for row in calls(session):
    told.append([row.phase, row.forward_call, row.call, list(row.flags),
                 {k: v for k, v in inside[row.call].items() if k in OURS}])
print(json.dumps([told, session.processes[0].notes, session.processes[0].broken]))
"""


@sees_threads
def test_windows_that_end_while_other_threads_are_inside_operators(tmp_path: Path) -> None:
    file = tmp_path / "threads.py"
    file.write_text(THREADS, "utf-8")
    for _ in range(2):
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        told, notes, broken = json.loads(done.stdout)
        assert broken == []
        forward = [row for row in told if row[0] == "forward"]
        backward = [row for row in told if row[0] == "backward"]
        assert len(forward) == len(backward) == 1200
        assert sorted(row[1] for row in backward) == sorted(row[2] for row in forward)
        for row in told:
            wanted = {"aten::neg": 1, "aten::exp": 1} if row[0] == "forward" else {"aten::cos": 1}
            early = "stopped early" in " ".join(notes)
            assert row[4] == wanted or "lossy" in row[3] or early, row


@sees_threads
def test_tasks_of_a_call_across_windows(windows: list[int]) -> None:
    """One thread at a time is inside an operator; what a call hands over stays its own."""
    runs: list[opscope.profile] = []

    def task(x: Any) -> None:
        torch.exp(x)
        due(runs[0])
        torch.tan(x)

    def body(x: Any) -> Any:
        thread = threading.Thread(target=task, args=(x,))
        thread.start()
        thread.join()
        return torch.neg(x)

    op, x = custom("hands_over", body), torch.ones(3)

    def program(run: opscope.profile) -> None:
        runs[:] = [run]
        for _ in range(20):
            op(x)
            due(run)

    session = recorded(program)
    found = whole(session, op, Counter({"aten::exp": 1, "aten::tan": 1, "aten::neg": 1}))
    assert len(found) == 20


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="asks Linux about threads")
def test_a_thread_that_threading_did_not_start_is_seen_to_block_or_run() -> None:
    """As those of execnet, or of a C library that calls Python."""
    quiet = Quiet(SystemClock())
    gate, over = _thread.allocate_lock(), _thread.allocate_lock()
    begun, spins = threading.Event(), [True]

    def stranger() -> None:
        begun.set()
        while spins[0]:
            pass
        with gate:
            over.release()

    with gate:
        over.acquire()
        _thread.start_new_thread(stranger, ())
        begun.wait()
        assert not any(quiet.others() for _ in range(20))
        spins[0] = False
        assert any(quiet.others() for _ in range(200))
    with over:
        pass
