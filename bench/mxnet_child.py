"""One side of `against_mxnet.py`: the same program and the same measurements under one `mxnet`.

    python bench/mxnet_child.py mxnet|opscope.compat.mxnet OUTPUT_FOLDER ROUNDS OPS

Leaves `arrays.npz`, `profile.txt` and `costs.json` in the folder. Nothing is special to either.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PROGRAM = Path(__file__).parents[1] / "examples" / "mxnet_roi.py"


def main(module: str, folder: Path, rounds: int, ops: int) -> None:
    mx = importlib.import_module(module)
    sys.modules["mxnet"] = mx  # what the program imports, whatever its name was
    train = runpy.run_path(str(PROGRAM))["train"]
    np.savez(folder / "arrays.npz", **train())
    mx.profiler.set_config(
        filename=str(folder / "trace.json"), profile_imperative=True, aggregate_stats=True,
        continuous_dump=False,
    )  # fmt: skip
    mx.profiler.set_state("run")
    train()
    mx.profiler.set_state("stop")
    (folder / "profile.txt").write_text(mx.profiler.dumps(reset=True), "utf-8")
    define(mx)
    found = {name: paired(mx, work, rounds, ops) for name, work in works(mx, ops).items()}
    (folder / "costs.json").write_text(json.dumps(found))


class Body:
    """How many sub-operators the operator under measurement launches."""

    subs = 0


def define(mx: Any) -> None:
    """The operator under measurement."""

    class Op(mx.operator.CustomOp):  # type: ignore[misc]
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            for _ in range(Body.subs):
                mx.nd._internal._plus_scalar(in_data[0], scalar=1.0, out=out_data[0])

    @mx.operator.register("cost")
    class Prop(mx.operator.CustomOpProp):  # type: ignore[misc]
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Op()


def works(mx: Any, ops: int) -> dict[str, Callable[[], int]]:
    """Each does some work and says how many operators that were."""
    x, y = mx.nd.ones((100, 100)), mx.nd.ones((100, 100))

    def regular() -> int:
        for _ in range(ops):
            mx.nd._internal._plus_scalar(x, scalar=1.0, out=y)
        return ops

    def calls(subs: int) -> Callable[[], int]:
        def work() -> int:
            Body.subs = subs
            for _ in range(ops // 20):
                mx.nd.Custom(x, op_type="cost").wait_to_read()
            return ops // 20

        return work

    return {"regular": regular, "call": calls(0), "call of 20": calls(20)}


def paired(mx: Any, work: Callable[[], int], rounds: int, ops: int) -> dict[str, list[float]]:
    """CPU us per operator (of the whole process) off and on, round by round."""
    found: dict[str, list[float]] = {"off": [], "on": []}
    for number in range(rounds + 1):
        for side in found:
            if side == "on":
                mx.profiler.set_state("run")
            begun = time.process_time()
            count = work()
            mx.nd.waitall()
            spent = time.process_time() - begun
            if side == "on":
                mx.profiler.set_state("stop")
                mx.profiler.dumps(reset=True)
            if number:  # the first round warms up
                found[side].append(spent / count * 1e6)
    return found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
