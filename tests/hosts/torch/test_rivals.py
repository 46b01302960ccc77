"""The program's own torch.profiler goes first: it sees all it would see, and opscope what is left.

The programs run in two processes, one with and one without opscope, as torch's profiler decides on
its first start what it prints.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.torch.ops import SEES_THREADS, owned, rows, torch

import opscope
from opscope.analyse import PART_KEYS, calls

#: What runs before each program. `count(prof)` are the names and numbers of its events.
HEAD = """
import collections, contextlib, json, os, sys, threading, time
import torch, opscope
from torch.profiler import ProfilerActivity, profile, schedule
from torch._C._profiler import _ExperimentalConfig
CPU = [ProfilerActivity.CPU]
def kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.neg(torch.exp(x))
op = torch.library.custom_op("opscope_rivals::op", kernel, mutates_args=())
op.register_autograd(lambda ctx, slope: torch.cos(slope))
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sin(x)
    @staticmethod
    def backward(ctx, slope):
        return torch.tan(slope)
def work(times=1):
    for _ in range(times):
        Fn.apply(op(torch.ones(3, requires_grad=True))).sum().backward()
def count(prof):
    inner = getattr(prof, "profiler", prof)
    if inner is None or inner.kineto_results is None:
        return None
    return collections.Counter(e.name() for e in inner.kineto_results.events())
def start():
    run and run.start()
def stop():
    run and run.stop()
folder, on = sys.argv[1], sys.argv[2] == "on"
told = {}
for name, program in json.loads(sys.argv[3]).items():
    print("program:", name, flush=True)
    run = opscope.profile(output=f"{folder}/{name}.opscope", force=True) if on else None
    recording = run or contextlib.nullcontext()
    answers = []
    exec(program)
    told[name] = answers
with open(f"{folder}/{sys.argv[2]}.json", "w") as file:
    json.dump(told, file)
"""

PROGRAMS = {
    "the whole time": """
with profile(activities=CPU) as own:
    with recording:
        work(3)
answers.append(count(own))
""",
    "started inside": """
with recording:
    work()
    with profile(activities=CPU) as own:
        work(3)
    work()
answers.append(count(own))
""",
    "stopped inside": """
own = profile(activities=CPU)
own.start()
work()
start()
work()
own.stop()
work(2)
stop()
answers.append(count(own))
""",
    "goes on after": """
start()
work(2)
own = profile(activities=CPU)
own.start()
work()
stop()
work()
own.stop()
answers.append(count(own))
""",
    "two after each other": """
with recording:
    for number in range(2):
        with profile(activities=CPU) as own:
            work(2)
        answers.append(count(own))
        work()
""",
    "scheduled": """
with recording:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    def ready(prof):
        answers.append(count(prof))
    with profile(activities=CPU, schedule=plan, on_trace_ready=ready) as own:
        for _ in range(10):
            work()
            own.step()
    work()
""",
    "autograd": """
with recording:
    work()
    with torch.autograd.profiler.profile() as own:
        work(2)
    answers.append(count(own))
    work()
""",
    "all threads": """
with recording:
    options = _ExperimentalConfig(profile_all_threads=True)
    with profile(activities=CPU, experimental_config=options) as own:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        work()
    answers.append(count(own))
""",
    "shapes and stacks": """
with recording:
    with profile(activities=CPU, record_shapes=True, with_stack=True, profile_memory=True) as own:
        work(2)
    found = count(own)
    # Frames of Python are other ones with hooks.
    answers.append({name: n for name, n in found.items() if "::" in name or "Back" in name})
""",
    "that raises": """
with recording:
    with contextlib.suppress(KeyError), profile(activities=CPU) as own:
        work()
        raise KeyError
    answers.append(count(own))
    work()
""",
    "on another thread": """
def other():
    with profile(activities=CPU) as own:
        work(2)
    answers.append(count(own))
with recording:
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    work()
""",
    "paused": """
with recording:
    work()
    if run:
        run.pause()
    with profile(activities=CPU) as own:
        work(2)
    answers.append(count(own))
    if run:
        run.resume()
    work()
""",
    "collection off and on": """
with recording:
    with profile(activities=CPU) as own:
        work()
        own.toggle_collection_dynamic(False, CPU)
        own.toggle_collection_dynamic(True, CPU)
        work()
    work()
""",
    "prepared only": """
with recording:
    own = profile(activities=CPU)
    own.prepare_trace()
    work()
    own.start_trace()
    work(2)
    own.stop_trace()
    answers.append(count(own))
    work()
""",
}
if not SEES_THREADS:
    del PROGRAMS["all threads"]
if not hasattr(torch.profiler.profile, "toggle_collection_dynamic"):
    del PROGRAMS["collection off and on"]
#: Calls of each operator and phase in the program while opscope records.
CALLS = {
    "the whole time": 3,
    "started inside": 5,
    "stopped inside": 3,
    "goes on after": 3,
    "two after each other": 6,
    "scheduled": 11,
    "autograd": 4,
    "all threads": 2,
    "shapes and stacks": 2,
    "that raises": 2,
    "on another thread": 3,
    "paused": 2,
    "collection off and on": 3,
    "prepared only": 4,
}
#: Programs whose own profiler is still on when opscope stops: its events cannot be had then.
UNSEEN = {"the whole time", "goes on after"}


def run(programs: dict[str, str], on: bool, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What the programs saw in their own profiles, and the lines that were printed."""
    script = folder / "script.py"
    script.write_text(HEAD, "utf-8")
    word = "on" if on else "off"
    done = subprocess.run(
        [sys.executable, script, folder, word, json.dumps(programs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return json.loads((folder / f"{word}.json").read_text("utf-8")), done.stdout.splitlines()


Both = dict[bool, tuple[dict[str, Any], list[str]]]


@pytest.fixture(scope="module")
def both(folder: Path) -> Both:
    """The same with and without opscope."""
    return {on: run(PROGRAMS, on, folder) for on in (True, False)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rivals")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_sees_what_it_would_see(program: str, both: Both) -> None:
    assert both[True][0][program] == both[False][0][program]


@pytest.mark.parametrize("program", PROGRAMS)
def test_opscope_has_every_call(program: str, both: Both, folder: Path) -> None:
    session = opscope.load(folder / f"{program}.opscope")
    check(session)
    assert session.processes[0].broken == ()
    for op, names in (
        ("opscope_rivals::op", ("aten::exp", "aten::cos")),
        ("Fn", ("aten::sin", "aten::tan")),
    ):
        for phase, name in zip(("forward", "backward"), names, strict=True):
            found = rows(session, op, phase)
            assert len(found) == CALLS[program]
            inside = [owned(session, row)[name] for row in found]
            assert set(inside) <= {0, 1}
            if program not in UNSEEN:
                assert sum(inside) >= CALLS[program] - _not_taken(program)
        forward, backward = rows(session, op, "forward"), rows(session, op, "backward")
        assert [row.forward_call for row in backward] == [row.call for row in forward]
    notes = " ".join(session.processes[0].notes)
    assert "torch.profiler" in notes


def test_what_the_rival_kept_to_itself_is_not_zero(both: Both, folder: Path) -> None:
    session = opscope.load(folder / "goes on after.opscope")
    found = [row for row in calls(session) if row.op == "opscope_rivals::op"]
    seen = [row for row in found if row.sub_ns is not None]
    assert [(row.phase, bool(row.subs and row.sub_ns)) for row in seen] == [
        *(("forward", True), ("backward", True)) * 2
    ]
    assert {(row.sub_ns, row.subs, row.dispatch_ns) for row in found[len(seen) :]} == {
        (None, None, None)
    }
    for row in found:
        assert sum(getattr(row, key) or 0 for key in PART_KEYS[1:]) == row.wall_ns


def _not_taken(program: str) -> int:
    """Calls of which the program's own profile does not have the operators."""
    return {"scheduled": 6, "stopped inside": 0, "prepared only": 1}.get(program, 0)


@pytest.mark.parametrize("first", ["started inside", "the whole time"])
def test_kineto_prints_no_more_than_it_would(first: str, folder: Path) -> None:
    """It prints a line at each start and stop of the program's own profiles, if it prints any."""
    programs = {first: PROGRAMS[first]}

    def lines(on: bool) -> Counter[str]:
        found = run(programs, on, folder)[1]
        return Counter(line.rpartition("]")[2].strip() for line in found)

    assert not lines(True) - lines(False)


def test_without_a_rival_nothing_is_printed(folder: Path) -> None:
    _, lines = run({"alone": "with recording:\n    work()\n"}, True, folder)
    assert lines == ["program: alone"]
