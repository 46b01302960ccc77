"""What recording costs the built-in engine: CPU time per operator, off and on, in paired rounds.

    python bench/engine_overhead.py [--rounds 31] [--ops 2000]

Every figure compares rounds of one run: off and on alternate, so that a machine that speeds up or
slows down does so for both. CPU time is that of the whole process, the writer's thread included.
"On" writes to a file and is measured twice: as the program feels it, and with the rest written.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import opscope
from opscope import engine as nd

Work = Callable[[int], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=31, help="paired rounds (default 31)")
    parser.add_argument("--ops", type=int, default=2000, help="operators a round (default 2000)")
    chosen = parser.parse_args()
    print(
        f"opscope {opscope.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
        f", {os.cpu_count()} CPUs; {chosen.rounds} paired rounds of {chosen.ops} operators"
    )
    for kind in ("threaded", "naive"):
        nd.use(kind, **({"workers": 1} if kind == "threaded" else {}))
        print(f"\n{kind} engine, CPU us per operator          off       on   on - off   + writing")
        for name, work in works().items():
            report(name, *paired(work, chosen.rounds, chosen.ops))
        sub_operators(chosen.rounds, chosen.ops)
        print("pushes per second (wall), pushed and done           off       on      on / off")
        for name, work in pushes().items():
            rates(name, work, chosen.rounds, chosen.ops)


def works() -> dict[str, Work]:
    """Regular operators: the array front end, and the bare engine."""
    x = nd.ones((100, 100))
    var = nd.new_var()

    def front_end(count: int) -> None:
        for _ in range(count):
            x + 1.0

    def bare(count: int) -> None:
        for _ in range(count):
            nd.push_sync(None, writes=(var,), name="empty")

    return {"x + 1.0, 100x100 (and DeleteVariable)": front_end, "push_sync of nothing": bare}


def pushes() -> dict[str, Work]:
    """What the engine alone can take: nothing to do, and an addition in place."""
    data, var = np.ones((100, 100)), nd.new_var()

    def add() -> None:
        np.add(data, 1.0, out=data)

    def empty(count: int) -> None:
        for _ in range(count):
            nd.push_sync(None, name="empty")

    def adds(count: int) -> None:
        for _ in range(count):
            nd.push_sync(add, writes=(var,), name="add")

    return {"empty": empty, "100x100 add": adds}


@nd.register("overhead_bench")
class Prop(nd.CustomOpProp):
    """An operator whose body pushes as many sub-operators as `Op.subs` says."""

    def list_arguments(self) -> list[str]:
        return ["data"]

    def list_outputs(self) -> list[str]:
        return ["output"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, [in_shape[0]], []

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Op:
        return Op()


class Op(nd.CustomOp):
    subs = 0

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        for _ in range(Op.subs):
            in_data[0] + 1.0


def sub_operators(rounds: int, ops: int) -> None:
    """Sub-operators: a call with many less a call with none, so that the call itself drops out."""
    x, calls = nd.ones((100, 100)), max(ops // 20, 1)

    def call(count: int) -> None:
        for _ in range(calls):
            nd.custom(x, op_type="overhead_bench")

    found = {}
    for subs in (0, 100):
        Op.subs = subs
        found[subs] = paired(call, rounds, calls)
    report("custom operator, no sub-operators", *found[0])
    each = [
        [(many - none) / 100 for many, none in zip(found[100][i], found[0][i], strict=True)]
        for i in range(3)
    ]
    report("sub-operator x + 1.0 (and DeleteVariable)", *each)


def paired(work: Work, rounds: int, count: int) -> tuple[list[float], list[float], list[float]]:
    """CPU us per operator: off, on, and on with everything written."""
    off, on, written = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        once(work, count, None)
        for number in range(rounds):
            off.append(once(work, count, None)[0])
            felt, told = once(work, count, Path(folder) / f"{number}.opscope")
            on.append(felt)
            written.append(told)
    return off, on, written


def once(work: Work, count: int, output: Path | None) -> tuple[float, float]:
    """One round: (CPU us per operator until all is done, the same until all is written)."""
    profile = opscope.profile(output=output) if output else None
    with profile or nullcontext():
        begun = time.process_time_ns()
        work(count)
        nd.waitall()
        done = time.process_time_ns()
        if profile:
            profile.flush()
        ended = time.process_time_ns()
    return (done - begun) / count / 1e3, (ended - begun) / count / 1e3


def report(name: str, off: list[float], on: list[float], written: list[float]) -> None:
    felt = statistics.median(b - a for a, b in zip(off, on, strict=True))
    told = statistics.median(b - a for a, b in zip(off, written, strict=True))
    medians = f"{statistics.median(off):8.2f} {statistics.median(on):8.2f}"
    print(f"  {name:42} {medians}   {felt:+8.2f}   {told:+8.2f}")


def rates(name: str, work: Work, rounds: int, count: int) -> None:
    """Operators per second by the wall clock: medians, and the median ratio of pairs."""
    found: dict[bool, list[float]] = {False: [], True: []}
    work(count)
    nd.waitall()
    for _ in range(rounds):
        for recorded in found:
            with opscope.profile() if recorded else nullcontext():
                begun = time.perf_counter()
                work(count)
                nd.waitall()
                found[recorded].append(count / (time.perf_counter() - begun))
    off, on = statistics.median(found[False]), statistics.median(found[True])
    ratio = statistics.median(b / a for a, b in zip(found[False], found[True], strict=True))
    print(f"  {name:42} {off:8,.0f} {on:8,.0f}      {ratio:7.2f}")


if __name__ == "__main__":
    main()
