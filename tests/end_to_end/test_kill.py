"""`kill -9` at any moment: the file loads, lacks the last moment at most, shows what was open."""

from __future__ import annotations

import random
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.model import Flag, Kind, Session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX")

SEED = 20190717
TIMES = 20
SECOND = 10**9
#: Only a kill in the very moment of a write tears a frame.
CUT = ("", "the file ends inside a frame")

# Every finished call is noted, unbuffered, in a file beside: which function, when it had returned.
SCRIPT = """
import os, struct, threading, time
import numpy as np
from opscope import engine as nd

beside = os.open("finished", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def finished(kind):
    os.write(beside, struct.pack("<qq", kind, time.perf_counter_ns()))

class Twice(nd.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] + in_data[0])

    def backward(self, *args):
        pass

@nd.register("Twice")
class TwiceProp(nd.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Twice()

@opscope.custom_op
def plain(n):
    return n + 1

@opscope.custom_op
def endless():
    with opscope.custom_op("forever"):
        print("up", flush=True)
        threading.Event().wait()

def functions():
    while True:
        for n in range(5):
            plain(n)
            finished(0)
        time.sleep(0.002)

def operators():
    x = nd.array(np.ones(64, np.float32))
    while True:
        nd.custom(x, op_type="Twice").asnumpy()
        finished(1)
        time.sleep(0.002)

for target in (functions, operators):
    threading.Thread(target=target, daemon=True).start()
endless()
"""


def read(path: Path) -> list[tuple[int, int]]:
    """(which, when) of every call that was finished, in order."""
    data = path.read_bytes()
    return list(struct.iter_unpack("<qq", data[: len(data) // 16 * 16]))


def check(session: Session, finished: list[tuple[int, int]], killed_ns: int) -> None:
    names = {op.name: name for op, name in zip(session.ops, session.op_names, strict=True)}
    calls = session.spans[session.spans["kind"] == Kind.CALL]
    incomplete = (calls["flags"] & Flag.INCOMPLETE) != 0
    due_ns = killed_ns - SECOND
    for which, name in enumerate(("plain", "Twice")):
        noted = sum(kind == which and when_ns <= due_ns for kind, when_ns in finished)
        begun = ~incomplete & (calls["start_ns"] <= due_ns)
        held = int(((calls["name"] == names.get(name, -1)) & begun).sum())
        # One more may have begun and not been noted yet.
        assert held in (noted, noted + 1), (name, held, noted)
    shown = {name: calls[calls["name"] == names[name]] for name in ("endless", "forever")}
    for rows in shown.values():
        assert rows["flags"].tolist() == [Flag.INCOMPLETE]
        assert rows["end_ns"].tolist() == [session.processes[0].end_ns]
    assert shown["forever"]["owner"].tolist() == shown["endless"]["id"].tolist()
    assert session.processes[0].end_ns > due_ns


def test_a_killed_process_loses_at_most_its_last_moment(
    script: Any, started: Any, folder: Path
) -> None:
    dice = random.Random(SEED)
    print(f"seed {SEED}")
    script(SCRIPT)
    for turn in range(TIMES):
        # Every other one soon, while the file is young; the rest once a call can be old enough.
        wait_s = dice.uniform(0, 0.4) if turn % 2 else dice.uniform(1.0, 1.6)
        (folder / "finished").unlink(missing_ok=True)
        process = started("-m", "opscope", "run", "-o", f"{turn}.opscope", "s.py")
        assert process.stdout.readline() == b"up\n"
        began_ns = time.perf_counter_ns()
        time.sleep(wait_s)
        killed_ns = time.perf_counter_ns()
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        print(f"turn {turn}: killed after {(killed_ns - began_ns) / SECOND:.3f} s")
        session = opscope.load(folder / f"{turn}.opscope")
        assert not session.processes[0].complete
        assert session.processes[0].damage.partition(" at ")[0] in CUT
        assert opscope.summary(session) is not None
        if killed_ns - began_ns > SECOND:
            check(session, read(folder / "finished"), killed_ns)
