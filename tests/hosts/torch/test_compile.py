"""A program that torch.compile compiles gets the same answers, graphs and recompiles, and its
custom operators' calls are seen when they run. Each backend has a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.torch.ops import owned, rows

import opscope

pytest.importorskip("torch", reason="PyTorch is not installed")

PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
import torch, torch._dynamo, opscope
from torch._dynamo.utils import counters
folder, backend, when = sys.argv[1:4]
RUNS = {"forward": 0}
def kernel(x: torch.Tensor) -> torch.Tensor:
    RUNS["forward"] += 1
    return torch.neg(torch.exp(x))
op = torch.library.custom_op("opscope_compile::op", kernel, mutates_args=())
op.register_fake(torch.empty_like)
def setup(ctx, inputs, output):
    ctx.save_for_backward(output)
def gradient(ctx, slope):
    return slope * ctx.saved_tensors[0]
op.register_autograd(gradient, setup_context=setup)
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, slope):
        return slope * 2
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x):
        return Doubled.apply(op(self.linear(x))).sum()
torch.manual_seed(0)
net = Net()
graphs = []
inner = torch._dynamo.lookup_backend(backend)
def counting(gm, example):
    graphs.append(len(list(gm.graph.nodes)))
    return inner(gm, example)
compiled = torch.compile(net, backend=counting, fullgraph=True)
answers = []
def steps(times, size=2):
    for number in range(times):
        net.zero_grad()
        out = compiled(torch.full((size, 4), 0.1 * number))
        out.backward()
        answers.append([out.item(), net.linear.weight.grad.tolist()])
output = f"{folder}/{backend}_{when}.opscope"
run = None if when == "off" else opscope.profile(output=output, force=True)
if when == "all":
    run.start()
steps(2)
if when == "later":
    run.start()
steps(4)
steps(2, size=3)  # another shape, which is compiled once more
if run is not None:
    run.stop()
steps(1, size=3)
KEYS = ("stats", "recompiles", "graph_break", "frames")
told = {key: dict(value) for key, value in counters.items() if value and key in KEYS}
with open(f"{folder}/{backend}_{when}.json", "w") as file:
    json.dump([answers, graphs, told, RUNS], file)
"""


def runs_inductor() -> bool:
    return any(shutil.which(name) for name in ("c++", "g++", "clang++"))


@pytest.fixture(scope="module", params=["eager", "aot_eager", "inductor"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "inductor" and not runs_inductor():
        pytest.skip("inductor needs a C++ compiler, and there is none here")
    return str(request.param)


_kept: dict[tuple[str, str], Any] = {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


def ran(backend: str, when: str, folder: Path) -> Any:
    """What the program tells: answers, graphs, counters, executions."""
    if (backend, when) not in _kept:
        _kept[backend, when] = None
        script = folder / "program.py"
        script.write_text(PROGRAM, "utf-8")
        done = subprocess.run(
            [sys.executable, script, folder, backend, when],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode and backend == "inductor" and when == "off":
            pytest.skip(f"inductor does not work here: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr
        text = (folder / f"{backend}_{when}.json").read_text("utf-8")
        _kept[backend, when] = json.loads(text)
    assert _kept[backend, when] is not None, "the program has failed before"
    return _kept[backend, when]


WHEN = ["all", "later"]


@pytest.mark.parametrize("when", WHEN)
def test_answers_graphs_and_recompiles_are_the_same(backend: str, when: str, folder: Path) -> None:
    plain, recorded = ran(backend, "off", folder), ran(backend, when, folder)
    assert recorded[0] == plain[0]
    assert recorded[1] == plain[1]
    assert recorded[2] == plain[2]
    assert recorded[3] == plain[3]


@pytest.mark.parametrize("when", WHEN)
def test_each_execution_is_a_call_and_tracing_is_none(
    backend: str, when: str, folder: Path
) -> None:
    ran(backend, "off", folder)
    *_, runs = ran(backend, when, folder)
    session = opscope.load(folder / f"{backend}_{when}.opscope")
    check(session)
    assert session.processes[0].broken == ()
    found = rows(session, "opscope_compile::op", "forward")
    last = 1  # runs after opscope has stopped
    before = 0 if when == "all" else 2
    assert len(found) == runs["forward"] - last - before
    for row in found:
        assert owned(session, row)["aten::exp"] == owned(session, row)["aten::neg"] == 1
        assert not {"failed", "incomplete"} & set(row.flags)


@pytest.mark.parametrize("when", WHEN)
def test_backward_is_seen_or_said_to_be_merged(backend: str, when: str, folder: Path) -> None:
    ran(backend, "off", folder)
    ran(backend, when, folder)
    session = opscope.load(folder / f"{backend}_{when}.opscope")
    backward = rows(session, "opscope_compile::op", "backward")
    notes = " ".join(session.processes[0].notes)
    if backend == "eager":
        forward = rows(session, "opscope_compile::op", "forward")
        assert [row.forward_call for row in backward] == [row.call for row in forward]
        assert "CompiledFunctionBackward" not in notes
    else:
        assert backward == []
        assert "CompiledFunctionBackward" in notes
    (sight,) = [sight for sight in session.sight if sight.host == "torch"]
    assert "compiled backward" in sight.misses
