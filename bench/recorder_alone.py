"""What recording one span costs by itself: both recorders, beside what cannot be beaten.

    python bench/recorder_alone.py [--events 10000000] [--threads 16]

Three parts. CPU ns per span on one thread, least of several rounds, writing apart; the floors are
two readings of the clock from Python, and a C loop that reads the clock twice and stores 64 bytes.
Then many threads record at once: what went in must have come out, told apart into written and
dropped, and memory must not grow. Exit code 1 if a span was lost untold.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opscope
from opscope.model import Kind, Op
from opscope.record import Recorder, Writer, extension, scope
from opscope.store import MemorySink

C_LOOP = """
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
typedef struct { int64_t field[8]; } Span;
static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}
void loop(int64_t count) {
    Span *spans = malloc(8192 * sizeof(Span));
    for (int64_t n = 0; n < count; n++) {
        Span *span = &spans[n & 8191];
        span->field[0] = n;
        span->field[4] = now();
        span->field[5] = now();
    }
    free(spans);
}
"""


class Counting:
    """A sink that counts spans and forgets them."""

    def __init__(self) -> None:
        self.spans = self.dropped = 0

    def put(self, word: str, data: Any) -> None:
        if word == "spans":
            self.spans += len(data) // 64
        elif word == "drops":
            self.dropped += sum(drop[-1] for drop in data)

    def flush(self) -> None: ...
    def abandon(self) -> None: ...
    def close(self) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=10_000_000, help="spans of the second part")
    parser.add_argument("--threads", type=int, default=16, help="threads of the second part")
    chosen = parser.parse_args()
    print(
        f"opscope {opscope.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs"
    )
    if extension.native is None:
        print(f"no native recorder: {extension.missing}")
    kinds = ["python"] + (["native"] if extension.native is not None else [])
    print("\nCPU ns, one thread                          " + "".join(f"{k:>10}" for k in kinds))
    rows: dict[str, list[float]] = {}
    for kind in kinds:
        for name, ns in alone(kind).items():
            rows.setdefault(name, []).append(ns)
    for name, found in rows.items():
        print(f"  {name:42}" + "".join(f"{ns:10.0f}" for ns in found))
    blank = " " * 10 * (len(kinds) - 1)
    print(f"  {'floor: two clocks, from Python':42}{blank}{clocks():10.0f}")
    floor = c_loop()
    if floor:
        print(f"  {'floor: two clocks and 64 bytes, in C':42}{blank}{floor:10.0f}")
    print(f"\n{chosen.threads} threads, {chosen.events:,} spans")
    return max([many(kind, chosen.threads, chosen.events) for kind in kinds])


def recorder_of(kind: str, sink: Any) -> Recorder:
    os.environ[extension.VARIABLE] = kind
    return Recorder(sink)


def least(work: Callable[[int], None], after: Callable[[], None], count: int = 8000) -> float:
    """CPU ns per event of the best of many rounds."""
    found = []
    for _ in range(15):
        begun = time.thread_time_ns()
        work(count)
        found.append((time.thread_time_ns() - begun) / count)
        after()
    return min(found)


def alone(kind: str) -> dict[str, float]:
    """What the parts cost on a thread of its own, by name."""
    recorder = recorder_of(kind, MemorySink())
    recorder.sink = Counting()
    writer = Writer(recorder)
    name = recorder.op(Op("python", "function", "bench"))
    row = (1, 0, name, int(Kind.OP), 0, 0, 0, 0, 5, 6, 0, -1)

    def begin_end(count: int) -> None:
        begin, end, op = recorder.begin, recorder.end, Kind.OP
        for _ in range(count):
            end(begin(op, name, owner=0))

    def put(count: int) -> None:
        take = recorder.put
        for _ in range(count):
            take(row)

    def call(count: int) -> None:
        enter, leave = scope.enter, scope.leave
        for _ in range(count):
            leave(enter(recorder, name))

    def current(count: int) -> None:
        owner = scope.owner
        for _ in range(count):
            owner(recorder)

    works = {
        "begin and end of a span": begin_end,
        "a finished span put": put,
        "a call entered and left (two CPU clocks)": call,
        "whose is what happens now": current,
    }
    found = {text: least(work, writer.flush) for text, work in works.items()}
    recorder.closed = True
    writer.finish()
    return found


def clocks() -> float:
    now = time.perf_counter_ns

    def twice(count: int) -> None:
        for _ in range(count):
            now()
            now()

    return least(twice, lambda: None)


def c_loop() -> float:
    """The same in C; 0 without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "loop.c"), Path(folder, "loop.so")
        source.write_text(C_LOOP)
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", built], check=True)
        loop = ctypes.CDLL(str(built)).loop
        loop.argtypes = [ctypes.c_int64]
        return least(loop, lambda: None, 200_000)


def memory_mib() -> float:
    """What the process holds now."""
    if sys.platform != "linux":
        return float("nan")
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def many(kind: str, threads: int, events: int) -> int:
    """Spans in and out, and memory after each tenth of them; 1 if some are missing."""
    sink = Counting()
    recorder = recorder_of(kind, sink)
    writer = Writer(recorder)
    writer.start()
    name = recorder.name("mul")
    each = events // threads // 10
    held = [memory_mib()]
    begun, cpu = time.perf_counter(), time.process_time()
    gate = threading.Barrier(threads + 1)

    def work() -> None:
        begin, end, op = recorder.begin, recorder.end, Kind.OP
        for _ in range(10):
            for _ in range(each):
                end(begin(op, name, owner=0))
            gate.wait()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for _ in range(10):
        gate.wait()
        held.append(memory_mib())
    for worker in workers:
        worker.join()
    wall, used = time.perf_counter() - begun, time.process_time() - cpu
    recorder.closed = True
    writer.finish()
    put = each * 10 * threads
    missing = put - sink.spans - sink.dropped
    print(
        f"  {kind:8} in {put:,}, written {sink.spans:,}, dropped and told {sink.dropped:,}, "
        f"missing {missing:,}\n"
        f"           {used / put * 1e9:,.0f} ns CPU each, writing included; {put / wall:,.0f} a "
        f"second\n           memory, MiB: " + " ".join(f"{mib:.0f}" for mib in held)
    )
    return int(missing != 0)


if __name__ == "__main__":
    sys.exit(main())
