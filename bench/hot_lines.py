"""Hot lines against the truth: what `profile(lines=True)` says of lines whose cost is known.

    OMP_NUM_THREADS=1 python bench/hot_lines.py [--cpu 6] [--json FILE]

An operator of five lines: a loop, a large matrix product, a NumPy call, a list comprehension, and a
function of its own that loops. The truth is measured in the same run, between the recorded calls:
the same statements by hand, each timed by the CPU time of the thread. Then what sampling costs: CPU
time of the same calls recorded with and without lines, in turns, as a ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import opscope
from opscope import analyse

#: Points of a share that it may be off.
WITHIN = 5.0

rng = np.random.default_rng(1)
LARGE, LONG = rng.random((420, 420)), rng.random(400_000)
LOOPS, ITEMS, INNER = 60_000, 60_000, 40_000


def loops() -> int:
    total = 0
    for n in range(INNER):
        total += n & 7
    return total


@opscope.custom_op
def mixed() -> None:
    total = 0
    for n in range(LOOPS):  # a loop
        total += n * n  # a loop
    LARGE @ LARGE  # a matrix product
    np.sort(LONG[:60_000])  # a NumPy call
    [n * 2 for n in range(ITEMS)]  # a list comprehension
    loops()


def by_hand() -> dict[str, int]:
    """CPU ns of each part of the operator."""
    spent: dict[str, int] = {}
    clock, at = time.thread_time_ns, time.thread_time_ns()

    def done(part: str) -> None:
        nonlocal at
        spent[part], at = clock() - at, clock()

    total = 0
    for n in range(LOOPS):
        total += n * n
    done("a loop")
    LARGE @ LARGE
    done("a matrix product")
    np.sort(LONG[:60_000])
    done("a NumPy call")
    [n * 2 for n in range(ITEMS)]
    done("a list comprehension")
    loops()
    done("a function that loops")
    return spent


def parts_of_lines() -> dict[int, str]:
    """Which part each line of this file is, by the comments above."""
    text = Path(__file__).read_text("utf-8").splitlines()
    first = next(n for n, line in enumerate(text) if line.startswith("def mixed"))
    last = next(n for n, line in enumerate(text) if line.startswith("def by_hand"))
    return {
        number + 1: text[number].partition("  # ")[2]
        for number in range(first, last)
        if "  # " in text[number]
    }


def shares(session: opscope.Session) -> tuple[dict[str, float], int]:
    """Percent by part as the hot lines have it, and how many samples that rests on."""
    known = parts_of_lines()
    found: dict[str, float] = {}
    rows = [row for row in analyse.lines(session) if row.op == "mixed"]
    for row in rows:
        part = known.get(row.line, "other lines")
        if row.function == "loops":
            part = "a function that loops"
        found[part] = found.get(part, 0.0) + 100 * row.share
    return found, sum(row.samples for row in rows)


def cost(rounds: int, calls: int = 3) -> float:
    """CPU time of recorded calls with lines as a ratio to those without."""
    ratios = []
    for number in range(rounds):
        spent = {}
        for lines in (True, False) if number % 2 else (False, True):
            with opscope.profile(host="python", lines=lines):
                spent[lines] = _timed(mixed, calls)
        ratios.append(spent[True] / spent[False])
    return statistics.median(ratios)


def _timed(call: Callable[[], None], count: int) -> int:
    begin = time.process_time_ns()
    for _ in range(count):
        call()
    return time.process_time_ns() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description="Hot lines against the truth.")
    parser.add_argument("--cpu", type=float, default=6.0, help="seconds of CPU time to sample")
    parser.add_argument("--rounds", type=int, default=31, help="rounds of the cost")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    mixed()
    truth: dict[str, int] = dict.fromkeys(by_hand(), 0)
    with opscope.profile(host="python", lines=True) as run:
        while sum(truth.values()) < options.cpu * 1e9:
            mixed()
            for part, spent in by_hand().items():
                truth[part] += spent
    found, samples = shares(run.session)
    whole = sum(truth.values())
    print(f"{samples:,} samples\n{'':<24}{'truth':>8}{'lines':>8}{'off by':>8}")
    figures: dict[str, object] = {"samples": samples}
    worst = 0.0
    for part in (*truth, "other lines"):
        real, told = 100 * truth.get(part, 0) / whole, found.get(part, 0.0)
        worst = max(worst, abs(told - real))
        figures[part] = {"truth": round(real, 2), "lines": round(told, 2)}
        print(f"{part:<24}{real:>7.1f}%{told:>7.1f}%{told - real:>+8.1f}")
    ratio = cost(options.rounds)
    passed = worst <= WITHIN
    print(f"CPU time with lines / without: {ratio:.3f}")
    print(f"{'PASS' if passed else 'FAIL'}: at most {worst:.1f} points off, {WITHIN} allowed")
    if options.json:
        figures |= {"worst": round(worst, 2), "cost": round(ratio, 4), "passed": passed}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
