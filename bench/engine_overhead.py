"""What recording costs the built-in engine: CPU time per operator, off and on, in paired rounds.

    python bench/engine_overhead.py [--rounds 31] [--ops 2000] [--mxnet PYTHON]

Every figure compares rounds of one run: off and on, with each recorder, alternate, so that a
machine that speeds up or slows down does so for all. CPU time is that of the whole process, the
writer's thread included. "On" writes to a file and is measured twice: as the program feels it, and
with the rest written. What recording one operator takes by itself is measured too, one by one, as
means hide the worst: with warm caches, and with 8 MiB touched before each operator. `--mxnet` names
a Python that has MXNet 1.9.1: the same script is then run on it, its profiler off and on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import opscope
from opscope import engine as nd
from opscope.record import extension

Work = Callable[[int], None]
#: CPU us per operator, round by round: off, and for each recorder on, and on with all written.
Found = dict[str, list[float]]

HERE = Path(__file__).parent
RECORDERS = ("python", "native") if extension.native is not None else ("python",)
WRITTEN = " + writing"
#: As in `against_mxnet.py`.
SAME = {"OMP_NUM_THREADS": "1", "MXNET_CPU_WORKER_NTHREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=31, help="paired rounds (default 31)")
    parser.add_argument("--ops", type=int, default=2000, help="operators a round (default 2000)")
    parser.add_argument("--mxnet", metavar="PYTHON", help="a Python that has mxnet 1.9.1")
    chosen = parser.parse_args()
    print(
        f"opscope {opscope.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
        f", {os.cpu_count()} CPUs; {chosen.rounds} paired rounds of {chosen.ops} operators"
    )
    if extension.native is None:
        print(f"no native recorder: {extension.missing}")
    for kind in ("threaded", "naive"):
        nd.use(kind, **({"workers": 1} if kind == "threaded" else {}))
        columns = "".join(f"{name:>10}{'written':>10}" for name in RECORDERS)
        print(f"\n{kind} engine, CPU us per operator: off, and on - off {columns}")
        for name, work in works().items():
            report(name, paired(work, chosen.rounds, chosen.ops))
        sub_operators(chosen.rounds, chosen.ops)
        print(
            f"{'what recording one of them takes by itself, us':52}      mean    p50    p99  p99.9"
        )
        for cold in (False, True):
            for subs in (False, True):
                for recorder in RECORDERS:
                    alone(recorder, cold, subs, 300 if cold else chosen.ops * 5)
        rate_columns = "".join(f"{name:>10}" for name in RECORDERS)
        print(f"{'pushes per second (wall), pushed and done':52}{'off':>10}{rate_columns}")
        for name, work in pushes().items():
            rates(name, work, chosen.rounds, chosen.ops)
    if chosen.mxnet:
        beside_mxnet(chosen.mxnet, chosen.rounds, chosen.ops)


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
    body: Callable[..., None] | None = None

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        if Op.body is not None:
            Op.body()
            return
        for _ in range(Op.subs):
            in_data[0] + 1.0


def sub_operators(rounds: int, ops: int) -> None:
    """Sub-operators: a call with many less a call with none, so that the call itself drops out."""
    x, calls = nd.ones((100, 100)), max(ops // 20, 1)

    def call(count: int) -> None:
        for _ in range(count):
            nd.custom(x, op_type="overhead_bench")

    found = {}
    for subs in (0, 100):
        Op.subs = subs
        found[subs] = paired(call, rounds, calls)
    report("custom operator, no sub-operators", found[0])
    each = {
        side: [
            (many - none) / 100 for many, none in zip(found[100][side], found[0][side], strict=True)
        ]
        for side in found[0]
    }
    report("sub-operator x + 1.0 (and DeleteVariable)", each)


def paired(work: Work, rounds: int, count: int) -> Found:
    """CPU us per operator: off, and on with each recorder."""
    found: Found = {"off": []}
    with tempfile.TemporaryDirectory() as folder:
        once(work, count, None)
        for number in range(rounds):
            found["off"].append(once(work, count, None)[0])
            for recorder in RECORDERS:
                os.environ[extension.VARIABLE] = recorder
                felt, told = once(work, count, Path(folder) / f"{recorder}{number}.opscope")
                found.setdefault(recorder, []).append(felt)
                found.setdefault(recorder + WRITTEN, []).append(told)
    return found


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


def report(name: str, found: Found) -> None:
    """Medians of off, and of the differences of pairs."""
    shown = f"  {name:42} {statistics.median(found['off']):8.2f}"
    for side, values in found.items():
        if side != "off":
            felt = statistics.median(b - a for a, b in zip(found["off"], values, strict=True))
            shown += f"{felt:+10.2f}"
    print(shown)


def alone(recorder: str, cold: bool, subs: bool, count: int) -> None:
    """CPU time inside the hooks of each operator, one by one, less what asking the clock takes."""
    os.environ[extension.VARIABLE] = recorder
    spent: dict[int, int] = {}
    clock = time.thread_time_ns
    floor = min(_between(clock) for _ in range(2000))
    large = np.zeros(8 * 2**20, np.uint8)

    def timed(told: Callable[[Any], object]) -> Callable[[Any], None]:
        def tell(task: Any) -> None:
            begun = clock()
            told(task)
            spent[id(task.note)] = spent.get(id(task.note), 0) + clock() - begun - floor

        return tell

    tasks: list[Any] = []  # keeps the notes, so that no id is used twice
    x = nd.ones((100, 100))

    def body(*nothing: Any) -> None:
        for _ in range(count):
            if cold:
                np.add(large, 1, out=large)
            nd.push_sync(None, (x.storage.var,) if not subs else (), name="op")

    with opscope.profile():
        hooks = nd.hooks
        kept = {moment: getattr(hooks, moment) for moment in ("pushed", "started", "finished")}
        for moment, told in kept.items():
            setattr(hooks, moment, timed(told))
        pushed = hooks.pushed
        hooks.pushed = lambda task: (pushed(task), tasks.append(task.note))  # type: ignore[misc]
        try:
            if subs:
                Op.body = body
                nd.custom(x, op_type="overhead_bench")
            else:
                body()
            nd.waitall()
        finally:
            Op.body = None
            for moment, told in kept.items():
                setattr(hooks, moment, told)
    costs = np.array([max(spent.get(id(note), 0), 0) for note in tasks if note is not None]) / 1e3
    p50, p99, p999 = np.percentile(costs, (50, 99, 99.9))
    what = f"{'sub-operator' if subs else 'operator'}, {'8 MiB touched before' if cold else 'hot'}"
    print(f"  {what:36} {recorder:13} {costs.mean():10.2f} {p50:6.2f} {p99:6.2f} {p999:6.2f}")


def _between(clock: Callable[[], int]) -> int:
    begun = clock()
    return clock() - begun


def rates(name: str, work: Work, rounds: int, count: int) -> None:
    """Operators per second by the wall clock: medians."""
    found: dict[str, list[float]] = {side: [] for side in ("off", *RECORDERS)}
    work(count)
    nd.waitall()
    for _ in range(rounds):
        for side, measured in found.items():
            os.environ[extension.VARIABLE] = side if side != "off" else ""
            with opscope.profile() if side != "off" else nullcontext():
                begun = time.perf_counter()
                work(count)
                nd.waitall()
                measured.append(count / (time.perf_counter() - begun))
    print(f"  {name:50}" + "".join(f"{statistics.median(m):10,.0f}" for m in found.values()))


def beside_mxnet(python: str, rounds: int, ops: int) -> None:
    """The script of `mxnet_child.py` on MXNet and on the engine: on - off of each."""
    sides = {"MXNet 1.9.1": (python, "mxnet", "")}
    for recorder in RECORDERS:
        sides[f"opscope, {recorder}"] = (sys.executable, "opscope.compat.mxnet", recorder)
    print(
        f"\n{'the same script, CPU us on - off (quartiles)':40} regular operator       sub-operator"
    )
    least: dict[str, list[float]] = {}
    for side, (interpreter, module, recorder) in sides.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [interpreter, HERE / "mxnet_child.py", module, folder, str(rounds), str(ops)]
            environment = {**os.environ, **SAME, extension.VARIABLE: recorder}
            subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
            costs = json.loads((Path(folder) / "costs.json").read_text())
        regular = [b - a for a, b in zip(*costs["regular"].values(), strict=True)]
        call, twenty = (
            [b - a for a, b in zip(*costs[name].values(), strict=True)]
            for name in ("call", "call of 20")
        )
        each = [(many - none) / 20 for none, many in zip(call, twenty, strict=True)]
        shown = []
        for values in (regular, each):
            low, middle, high = statistics.quantiles(values, n=4)
            shown.append(f"{middle:6.2f} ({low:.2f} to {high:.2f})")
            least.setdefault(side, []).append(middle)
        print(f"  {side:38} {shown[0]:22} {shown[1]}")
    for side, (regular_us, sub_us) in least.items():
        if side != "MXNet 1.9.1":
            real = least["MXNet 1.9.1"]
            print(
                f"  {side} / MXNet: regular {regular_us / real[0]:.2f}, sub {sub_us / real[1]:.2f}"
            )


if __name__ == "__main__":
    main()
