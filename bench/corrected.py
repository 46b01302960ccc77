"""Corrected parts against the truth: calls of known work, recorded and not, in turns.

    python bench/corrected.py [--calls 1000] [--json FILE]

An operator computes for a while and calls another one five times, which computes for a shorter
while. Unprofiled, its time and that of the inner calls are taken from outside. Recorded, both are
longer by what recording costs; `report --subtract-overhead` takes that out again. A machine changes
its pace by more than that within seconds, so each call stands beside a plain computation, and what
is compared are times in units of that: of all rounds the median must agree within 3 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

import opscope
from opscope import analyse

WITHIN = 0.03
#: Calls that are counted in a round, and calls before them: what went before left caches cold.
INNER_CALLS, A_ROUND, BEFORE = 5, 25, 100


def compute(turns: int) -> int:
    total = 0
    for n in range(turns):
        total += n & 7
    return total


@opscope.custom_op
def inner() -> int:
    return compute(300)


@opscope.custom_op
def outer() -> int:
    total = compute(1500)
    for _ in range(INNER_CALLS):
        total += inner()
    return total


def pace() -> int:
    """ns of the plain computation, which recording does not touch."""
    began = time.perf_counter_ns()
    compute(1500)
    return time.perf_counter_ns() - began


def unprofiled(calls: int) -> dict[str, float]:
    """By part, as often as the plain computation: the inner calls are what they do, without what
    marking them costs, which is the Python of whoever calls."""
    now = time.perf_counter_ns
    outers, inners, paces = [], [], []
    work = inner.__wrapped__
    for _ in range(BEFORE):
        outer()
    for _ in range(calls):
        paces.append(pace())
        began = now()
        outer()
        ended = now()
        for _ in range(INNER_CALLS):
            work()
        outers.append(ended - began)
        inners.append(now() - ended)
    wall, subs = (statistics.median(times) / statistics.median(paces) for times in (outers, inners))
    return {"wall": wall, "sub-ops": subs, "python": wall - subs}


def recorded(calls: int) -> tuple[dict[str, float], dict[str, float]]:
    """The same as recorded, and corrected."""
    paces = []
    with opscope.profile(host="python") as run:
        for _ in range(BEFORE):
            outer()
        for _ in range(calls):
            paces.append(pace())
            outer()
            for _ in range(INNER_CALLS):  # so that caches are as they are unprofiled
                inner.__wrapped__()
    found = []
    for session in (run.session, analyse.corrected(run.session)):
        rows = [row for row in analyse.calls(session) if row.op == "outer"][BEFORE:]
        times = {
            "wall": [row.wall_ns for row in rows],
            "sub-ops": [row.sub_ns or 0 for row in rows],
            # What ran: a call that was interrupted has waited, and the truth has that in its wall.
            "python": [(row.python_ns or 0) + (row.wait_ns or 0) for row in rows],
        }
        unit = statistics.median(paces)
        found.append({part: float(np.median(values)) / unit for part, values in times.items()})
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Corrected parts against the truth.")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    unprofiled(A_ROUND)
    recorded(A_ROUND)
    #: By part: the medians of each round, as they were, recorded, and corrected.
    rounds: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(max(options.calls // A_ROUND, 1)):
        real, (raw, less) = unprofiled(A_ROUND), recorded(A_ROUND)
        for part in real:
            rounds.setdefault(part, []).append((real[part], raw[part], less[part]))
    calls = len(rounds["wall"]) * A_ROUND
    figures: dict[str, object] = {"calls": calls}
    worst = 0.0
    unit_us = statistics.median(pace() for _ in range(A_ROUND)) / 1e3
    print(f"{calls:,} calls; medians, in us at the pace of now\n")
    print(f"{'':<10}{'unprofiled':>12}{'recorded':>12}{'corrected':>12}{'off by':>9}")
    for part, medians in rounds.items():
        real, raw, less = (statistics.median(column) for column in zip(*medians, strict=True))
        off = statistics.median(less / real for real, _, less in medians) - 1
        worst = max(worst, abs(off))
        figures[part] = {"unprofiled": real, "recorded": raw, "corrected": less}
        figures[f"{part} off by"] = round(off, 4)
        shown = "".join(f"{value * unit_us:>12.2f}" for value in (real, raw, less))
        print(f"{part:<10}{shown}{off:>+9.1%}")
    passed = worst <= WITHIN
    print(f"{'PASS' if passed else 'FAIL'}: at most {worst:.1%} off, {WITHIN:.0%} allowed")
    if options.json:
        options.json.write_text(json.dumps(figures | {"passed": passed}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
