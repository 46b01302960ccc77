"""From a PyTorch trace to the printed table: opscope beside json.load and HolisticTraceAnalysis.

    python bench/import_speed.py [--events 1000000] [--scale] [--huge] [--hta PYTHON] [--json FILE]

Each measurement is a process of its own. opscope's figures are of everything, from its start to the
printed table; the others' begin with reading the file, after their imports, and end when it is
read. CPU time, the least of some rounds (HolisticTraceAnalysis runs once); peak memory, the most.
`--scale` reads files of 0.1 to 3 million events, `--huge` one of 10 million (2.6 GB on disk).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kineto_like

OURS, PLAIN, THEIRS = "opscope, table", "json.load", "HolisticTraceAnalysis, load"
MILLION = 1_000_000
SCALE = (100_000, 300_000, MILLION, 3 * MILLION)
HUGE = 10 * MILLION

#: Of opscope's CPU time to that of HolisticTraceAnalysis; seconds and MB for a million events.
SHARE, SECONDS, MEGABYTES = 1 / 10, 4.0, 1_000
#: Of ten million events to one million, and MB for them.
TIMES, HUGE_MEGABYTES = 12, 6_000
#: An exponent may be measured so much too large.
NOISE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=MILLION, help="of the file (1,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (default 3)")
    parser.add_argument("--scale", action="store_true", help="also 0.1, 0.3, 1, 3 million events")
    parser.add_argument("--huge", action="store_true", help="also 10 million events")
    parser.add_argument("--hta", metavar="PYTHON", help="a Python with HolisticTraceAnalysis")
    parser.add_argument("--json", type=Path, help="a file for the figures of every process")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        what, file = chosen.child
        print(json.dumps(METHODS[what](file)))
        return
    bench = Bench(chosen.rounds)
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs")
    print(f"{'':30}   CPU, s    us each  MB at most")
    side_by_side(bench, chosen.events, chosen.hta)
    if chosen.scale:
        scale(bench)
    if chosen.huge:
        huge(bench)
    if chosen.json:
        chosen.json.write_text(json.dumps(bench.figures, indent=1), "utf-8")


class Bench:
    """Measures, and keeps all figures: CPU seconds, those before the file was opened, MB."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.figures: dict[str, list[dict[str, float]]] = {}

    def of(self, events: int, *methods: tuple[str, str]) -> list[dict[str, float]]:
        """The least of each figure, but of memory the most, of each (method, Python)."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{events}.json"
            size = kineto_like.write(path, events)
            print(f"{events:,} events in a file of {size / 1e6:,.0f} MB")
            return [self._least(what, python, path, events) for what, python in methods]

    def _least(self, what: str, python: str, path: Path, events: int) -> dict[str, float]:
        kept = self.figures.setdefault(f"{what}, {events}", [])
        rounds = 1 if what == THEIRS else self.rounds
        kept += [in_process(what, python, path) for _ in range(rounds)]
        least = {key: min(each[key] for each in kept) for key in ("cpu_s", "start_s", "work_s")}
        least["peak_mb"] = max(each["peak_mb"] for each in kept)
        print(
            f"  {what:28} {least['cpu_s']:8.2f}   {least['cpu_s'] / events * 1e6:8.2f}  "
            f"{least['peak_mb']:10,.0f}"
        )
        return least


def in_process(what: str, python: str, path: Path) -> dict[str, float]:
    command = [python, __file__, "--child", what, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{what} failed on {path}:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def side_by_side(bench: Bench, events: int, hta: str | None) -> None:
    methods = [(OURS, sys.executable), (PLAIN, sys.executable)]
    if hta:
        methods.append((THEIRS, hta))
    ours, plain, *theirs = bench.of(events, *methods)
    print(f"opscope takes {ours['cpu_s'] / plain['cpu_s']:.2f} of json.load's time")
    for their in theirs:
        share = ours["cpu_s"] / their["cpu_s"]
        print(
            f"opscope takes 1/{1 / share:.1f} of HolisticTraceAnalysis' time, "
            f"1/{their['peak_mb'] / ours['peak_mb']:.1f} of its memory"
        )
        budget(f"1/{1 / SHARE:.0f} of its time", share <= SHARE)
    if events == MILLION:
        budget(f"{SECONDS:g} s", ours["cpu_s"] <= SECONDS)
        budget(f"{MEGABYTES:,} MB", ours["peak_mb"] <= MEGABYTES)


def scale(bench: Bench) -> None:
    found = [bench.of(events, (OURS, sys.executable))[0] for events in SCALE]
    exponent = slope(SCALE, [each["work_s"] for each in found])
    most = slope(SCALE, [events * math.log(events) for events in SCALE])
    print(f"time without the start grows as n^{exponent:.2f}; n log n would be n^{most:.2f}")
    budget(f"n^{most:.2f}, {NOISE:g} for noise", exponent <= most + NOISE)


def huge(bench: Bench) -> None:
    small, large = (bench.of(events, (OURS, sys.executable))[0] for events in (MILLION, HUGE))
    times = large["work_s"] / small["work_s"]
    print(f"ten times the events take {times:.1f} times the time, without the start")
    budget(f"{TIMES} times", times <= TIMES)
    budget(f"{HUGE_MEGABYTES:,} MB", large["peak_mb"] <= HUGE_MEGABYTES)


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """Of the straight line nearest to the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return above / sum((a - x) ** 2 for a in xs)


def budget(words: str, kept: bool) -> None:
    print(f"  budget {words}: {'PASS' if kept else 'over'}")


# --- in a process of its own --------------------------------------------------------------------


def ours(file: str) -> dict[str, float]:
    import opscope
    from opscope.present import render_summary

    return measured(lambda: print(render_summary(opscope.load(file))), whole=True)


def plain(file: str) -> dict[str, float]:
    def read() -> Any:
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)

    return measured(read)


def theirs(file: str) -> dict[str, float]:
    from hta.trace_analysis import TraceAnalysis

    return measured(lambda: TraceAnalysis(trace_files={0: file}))


METHODS: dict[str, Callable[[str], dict[str, float]]] = {OURS: ours, PLAIN: plain, THEIRS: theirs}


def measured(work: Callable[[], Any], whole: bool = False) -> dict[str, float]:
    """`whole`: what the process took before the work counts too."""
    before = cpu_s()
    kept = work()
    after = cpu_s()
    del kept
    peak_kb = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "cpu_s": after if whole else after - before,
        "start_s": before,
        "work_s": after - before,
        "peak_mb": peak_kb * 1024 / 1e6,
    }


def cpu_s() -> float:
    """Of this process and those it has waited for."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


if __name__ == "__main__":
    main()
