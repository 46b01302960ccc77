"""Corrected parts against the truth: calls of known work, recorded and not, in turns.

    python bench/corrected.py [--calls 1000] [--json FILE]

An operator computes for a while and calls another one five times, which computes for a shorter
while. Unprofiled, its time and that of the inner calls are taken from outside. Recorded, both are
longer by what recording costs; `report --subtract-overhead` takes that out again. The medians of
each round are compared, as the machine may change its pace, and of all rounds the median must agree
within 3 %.
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


def unprofiled(calls: int) -> tuple[list[int], list[int]]:
    """ns of each outer call, and of what five inner ones do, without what marking them costs: that
    is the Python of whoever calls."""
    now = time.perf_counter_ns
    outers, inners = [], []
    work = inner.__wrapped__
    for _ in range(BEFORE):
        outer()
    for _ in range(calls):
        began = now()
        outer()
        outers.append(now() - began)
    for _ in range(calls):
        began = now()
        for _ in range(INNER_CALLS):
            work()
        inners.append(now() - began)
    return outers, inners


def recorded(calls: int) -> dict[str, dict[str, list[int]]]:
    """By "raw" and "corrected", by part: ns of each outer call."""
    with opscope.profile(host="python") as run:
        for _ in range(BEFORE + calls):
            outer()
    found = {}
    for word, session in (("raw", run.session), ("corrected", analyse.corrected(run.session))):
        rows = [row for row in analyse.calls(session) if row.op == "outer"][BEFORE:]
        found[word] = {
            "wall": [row.wall_ns for row in rows],
            "sub-ops": [row.sub_ns or 0 for row in rows],
            # What ran: a call that was interrupted has waited, and the truth has that in its wall.
            "python": [(row.python_ns or 0) + (row.wait_ns or 0) for row in rows],
        }
    return found


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
        outers, inners = map(statistics.median, unprofiled(A_ROUND))
        found = recorded(A_ROUND)
        for part, real in (("wall", outers), ("sub-ops", inners), ("python", outers - inners)):
            raw, less = (float(np.median(found[word][part])) for word in ("raw", "corrected"))
            rounds.setdefault(part, []).append((real, raw, less))
    calls = len(rounds["wall"]) * A_ROUND
    figures: dict[str, object] = {"calls": calls}
    worst = 0.0
    print(f"{calls:,} calls; medians in us\n")
    print(f"{'':<10}{'unprofiled':>12}{'recorded':>12}{'corrected':>12}{'off by':>9}")
    for part, medians in rounds.items():
        real, raw, less = (statistics.median(column) for column in zip(*medians, strict=True))
        off = statistics.median(less / real for real, _, less in medians) - 1
        worst = max(worst, abs(off))
        figures[part] = {"unprofiled_ns": real, "recorded_ns": raw, "corrected_ns": less}
        figures[f"{part} off by"] = round(off, 4)
        print(f"{part:<10}{real / 1e3:>12.2f}{raw / 1e3:>12.2f}{less / 1e3:>12.2f}{off:>+9.1%}")
    passed = worst <= WITHIN
    print(f"{'PASS' if passed else 'FAIL'}: at most {worst:.1%} off, {WITHIN:.0%} allowed")
    if options.json:
        options.json.write_text(json.dumps(figures | {"passed": passed}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
