"""The same program on real MXNet 1.9.1 and on the engine: results, profiles, and what they cost.

    make bench-mxnet        (makes an environment with MXNet, and runs this)

Both sides run in this one run, each in a process of its own with the same single worker. Exit code
1 if any result differs by more than 1e-6.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TOLERANCE = 1e-6
SAME = {"OMP_NUM_THREADS": "1", "MXNET_CPU_WORKER_NTHREADS": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", required=True, help="a Python that has mxnet 1.9.1")
    parser.add_argument("--rounds", type=int, default=15, help="paired rounds (default 15)")
    parser.add_argument("--ops", type=int, default=600, help="operators a round (default 600)")
    chosen = parser.parse_args()
    sides = {
        "MXNet 1.9.1": (chosen.python, "mxnet"),
        "opscope": (sys.executable, "opscope.compat.mxnet"),
    }
    with tempfile.TemporaryDirectory() as temporary:
        folders = {}
        for side, (python, module) in sides.items():
            folders[side] = Path(temporary) / module
            folders[side].mkdir()
            command = [python, HERE / "mxnet_child.py", module, folders[side]]
            subprocess.run(
                [*command, str(chosen.rounds), str(chosen.ops)],
                env={**os.environ, **SAME}, check=True,
            )  # fmt: skip
        worst = compare(*(np.load(folder / "arrays.npz") for folder in folders.values()))
        for side, folder in folders.items():
            print(f"\n--- the profile of {side} ".ljust(100, "-"))
            print((folder / "profile.txt").read_text("utf-8").rstrip())
        costs({side: json.loads((f / "costs.json").read_text()) for side, f in folders.items()})
    return 0 if worst <= TOLERANCE else 1


def compare(real: dict[str, np.ndarray], ours: dict[str, np.ndarray]) -> float:
    """Print how far each array is from MXNet's; returns the largest distance."""
    print(f"{'result':28} {'shape':16} largest difference")
    worst = 0.0
    for name in real:
        apart = float(np.abs(real[name] - ours[name]).max())
        worst = max(worst, apart)
        print(f"{name:28} {real[name].shape!s:16} {apart:.1e}")
    print(f"{'all':45} {worst:.1e}: {'the same' if worst <= TOLERANCE else 'NOT the same'}")
    return worst


def costs(found: dict[str, dict[str, dict[str, list[float]]]]) -> None:
    """CPU us per operator off, and on - off: medians of paired rounds."""
    print("\n--- what recording costs: CPU us, medians of paired rounds ".ljust(101, "-"))
    print(f"{'':42}" + "".join(f"{side:>14} off   on - off" for side in found))
    rows = {
        "regular operator (_plus_scalar, 100x100)": ("regular", None),
        "custom operator without sub-operators": ("call", None),
        "sub-operator (_plus_scalar, 100x100)": ("call of 20", "call"),
    }
    for title, (many, none) in rows.items():
        line = f"{title:42}"
        for side in found.values():
            off, on = (each(side, many, none, which) for which in ("off", "on"))
            more = statistics.median(b - a for a, b in zip(off, on, strict=True))
            line += f"{statistics.median(off):18.2f} {more:+10.2f}"
        print(line)


def each(
    side: dict[str, dict[str, list[float]]], many: str, none: str | None, which: str
) -> list[float]:
    """Figures per operator; with `none`, per sub-operator: what 20 of them add to a call."""
    if none is None:
        return side[many][which]
    return [(a - b) / 20 for a, b in zip(side[many][which], side[none][which], strict=True)]


if __name__ == "__main__":
    sys.exit(main())
