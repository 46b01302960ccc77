"""Rows D7 and 28 to 32 of the faults of real MXNet: its profiler calls, in any order.

The other rows are in test_mxnet_faults.py. Each scene runs in a process of its own, twenty times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BEGIN = """
import json, sys, threading
import opscope.compat.mxnet as mx

class Op(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] + 1)

@mx.operator.register("A")
class Prop(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Op()

def calls(count):
    for _ in range(count):
        mx.nd.Custom(mx.nd.ones((2, 2)), op_type="A")
    mx.nd.waitall()

def seen(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert names.count("A::_plus_scalar") == names.count("A")
    return names.count("A")

def table():
    found = json.loads(mx.profiler.dumps(format="json"))["Time"]["Custom Operator"]
    return found["A"]["Count"]

profiler, before = mx.profiler, 0
for time in range(20):
    a, b = f"a{time}.json", f"b{time}.json"
    profiler.set_config(filename=a, profile_imperative=True, aggregate_stats=True)
    profiler.set_state("run")
"""

#: Each scene makes three calls, then two; `before` counts those of earlier rounds.
SCENES = {
    "d07 a new file name": """
    calls(3); profiler.dump(False)
    profiler.set_config(filename=b)
    calls(2); profiler.dump(False)
    assert (seen(a), seen(b)) == (before + 3, before + 5)
""",
    "28 an unfinished dump, calls, a dump": """
    calls(3); profiler.dump(False); calls(2); profiler.dump()
    assert seen(a) == before + 5
""",
    "29 the table, calls, a dump": """
    calls(3); first = table(); calls(2); profiler.dump()
    assert (first, table(), seen(a)) == (before + 3, before + 5, before + 5)
""",
    "30 a dump, a run, a dump": """
    calls(3); profiler.dump()
    profiler.set_state("run"); calls(2); profiler.dump()
    assert seen(a) == before + 5
""",
    "31 the same, dumped all the time": """
    profiler.set_config(filename=a, continuous_dump=True, dump_period=0.01)
    calls(3); profiler.dump()
    profiler.set_state("run"); calls(2); profiler.dump()
    assert seen(a) == before + 5
    profiler.set_config(filename=a, continuous_dump=False)
""",
    "32 everything, begun while other threads are at work": """
    profiler.set_state("stop")
    profiler.set_config(profile_all=True)
    over, made = threading.Event(), [0, 0]
    def busy(which):
        while not over.is_set():
            made[which] += mx.nd.ones((2,)).asnumpy().sum() == 2
    threads = [threading.Thread(target=busy, args=(which,)) for which in (0, 1)]
    for thread in threads: thread.start()
    while not all(made): pass
    profiler.set_state("run"); calls(3); calls(2); over.set()
    for thread in threads: thread.join()
    profiler.dump()
    assert seen(a) == before + 5
""",
}

END = """
    profiler.set_state("stop")
    before += 5
print("fine", before)
"""


@pytest.mark.parametrize("kind", ["NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"])
@pytest.mark.parametrize("scene", list(SCENES))
def test_every_dump_is_one_complete_document(kind: str, scene: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", BEGIN + SCENES[scene] + END],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MXNET_ENGINE_TYPE": kind},
    )
    assert (run.returncode, run.stdout.strip()) == (0, "fine 100"), run.stderr
