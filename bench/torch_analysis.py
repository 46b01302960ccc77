"""From torch's stop() having returned to the printed table: opscope beside key_averages().table().

    python bench/torch_analysis.py [--events 300000] [--rounds 3] [--json FILE]

Each measurement is a process of its own that makes the same events, because what one way of looking
at them leaves in memory would count for the next. Their order alternates. CPU time of the process;
memory is how far its peak rose. "recording" is opscope's own way, in full mode and with one window
for all events, so that everything it does with them comes after torch's stop.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THEIRS = "key_averages().table()"
EXPLAIN, RECORDING, GETTERS = "opscope.explain, table", "opscope recording, table", "nine getters"
#: Of opscope's CPU time to that of torch's table.
BUDGET = 1 / 12

middle = statistics.median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=300_000, help="about so many (300,000)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (default 3)")
    parser.add_argument("--json", type=Path, help="a file for the figures of every process")
    parser.add_argument("--child", choices=METHODS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(METHODS[chosen.child](chosen.events)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
    for _ in range(chosen.rounds):
        for name in METHODS:
            found[name].append(in_process(name, chosen.events))
    report(found)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), "utf-8")


def in_process(method: str, events: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", method, "--events", str(events)]
    quiet = {**os.environ, "KINETO_LOG_LEVEL": "99"}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=quiet)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def report(found: dict[str, list[dict[str, float]]]) -> None:
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs; CPU time, medians of "
        f"{len(found[THEIRS])} processes each"
    )
    print(f"{'':26}   events  stop, us each  analysis, s  us each  of torch's  MB held    + MB")
    theirs = [each["analysis_s"] / each["events"] for each in found[THEIRS]]
    for name, processes in found.items():
        events, stop, analysis, held, added = (
            [each[key] for each in processes]
            for key in ("events", "stop_s", "analysis_s", "held_mb", "added_mb")
        )
        stop_us = middle(s / n * 1e6 for s, n in zip(stop, events, strict=True))
        each_us = middle(s / n * 1e6 for s, n in zip(analysis, events, strict=True))
        shares = zip(analysis, events, theirs, strict=True)
        share = middle(s / n / their for s, n, their in shares)
        part = f"1/{1 / share:.1f}"
        print(
            f"{name:26} {middle(events):8,.0f}  {stop_us:13.2f}  {middle(analysis):11.2f}  "
            f"{each_us:7.2f}  {part:>10}  {middle(held):7,.0f}  {middle(added):6,.0f}"
        )
        if name in (EXPLAIN, RECORDING):
            print(f"  budget 1/{1 / BUDGET:.0f}: {'PASS' if share <= BUDGET else 'over'}")


# --- in a process of its own --------------------------------------------------------------------


def theirs(events: int) -> dict[str, float]:
    return of_profile(events, lambda profile: print(profile.key_averages().table()))


def explained(events: int) -> dict[str, float]:
    import opscope
    from opscope.present import render_summary

    return of_profile(events, lambda profile: print(render_summary(opscope.explain(profile))))


def getters(events: int) -> dict[str, float]:
    """What nobody can do without: torch's events, read one field at a time."""
    names = (
        "name scope start_ns end_ns device_resource_id start_thread_id fwd_thread_id sequence_nr "
        "correlation_id"
    )

    def read(profile: Any) -> None:
        found = profile.profiler.kineto_results.events()
        for name in names.split():
            list(map(getattr(type(found[0]), name), found))

    return of_profile(events, read)


def of_profile(events: int, analyse: Callable[[Any], None]) -> dict[str, float]:
    """Make events under torch.profiler with all threads, and time its stop and the analysis."""
    work, each = program()
    from torch_overhead import ALONE, configurations

    make = configurations(Path())[ALONE]
    with make():  # the first start in a process takes long
        work(1)
    before = peak_mb()
    profile = make()
    profile.start()
    work(round(events / each))
    moments = [time.process_time()]
    profile.stop()
    moments.append(time.process_time())
    held = peak_mb()
    analyse(profile)
    moments.append(time.process_time())
    after = peak_mb()
    return figures(moments, len(profile.profiler.kineto_results.events()), before, held, after)


def recorded(events: int) -> dict[str, float]:
    """The same under opscope: notes when torch's profiler begins and has finished to stop."""
    import opscope
    from opscope.hosts.torch import windows
    from opscope.hosts.torch.kineto import Kineto

    work, each = program()
    stop = Kineto.stop
    noted: list[Any] = []

    def noting(kineto: Any) -> list[Any]:
        begun = time.process_time()
        found = stop(kineto)
        noted[:] = [begun, time.process_time(), len(found), peak_mb()]
        return found

    with opscope.profile():
        work(1)
    windows._FIRST_S = windows._MOST_S = 1e9
    windows._GROWN_BYTES = 1 << 60
    Kineto.stop = noting  # type: ignore[method-assign]
    before = peak_mb()
    with opscope.profile() as profile:
        work(round(events / each))
    print(profile)
    begun, stopped, count, held = noted
    return figures([begun, stopped, time.process_time()], count, before, held, peak_mb())


METHODS = {THEIRS: theirs, EXPLAIN: explained, RECORDING: recorded, GETTERS: getters}


def program() -> tuple[Callable[[int], None], int]:
    """Small operators, custom ones among them, forward and backward; and its events a step."""
    import torch
    from torch_overhead import ALONE, configurations, network

    torch.set_num_threads(1)
    step = network(8, 4)

    def work(count: int) -> None:
        for _ in range(count):
            step()

    make = configurations(Path())[ALONE]
    with make():
        work(1)
    with make() as profile:
        work(10)
    return work, len(profile.profiler.kineto_results.events()) // 10


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def figures(
    moments: list[float], count: int, before: float, held: float, after: float
) -> dict[str, float]:
    begun, stopped, printed = moments
    return {
        "events": count,
        "stop_s": stopped - begun,
        "analysis_s": printed - stopped,
        "held_mb": held - before,
        "added_mb": after - held,
    }


if __name__ == "__main__":
    main()
