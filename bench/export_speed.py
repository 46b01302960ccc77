"""How fast a session becomes a file: each export beside json.dumps and the perfetto package.

    python bench/export_speed.py [--spans 1000000] [--rounds 3] [--only ENDING...] [--json FILE]

Each measurement is a process of its own that makes the same session, attributes it (every command
needs that, once; it is told apart) and writes it. CPU time of the export alone, the least of the
rounds. Memory is what the export added, at its peak, to what the process held, the most of the
rounds, and its ratio to the session's own tables. The rivals are given what the Chrome trace says,
already as dicts: their time is of writing alone. They get fewer spans (`--rivals`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from opscope.analyse.basis import basis
from opscope.model import LINK, SPAN, Kind, Lane, LinkKind, Op, Phase, Process, Session, Sight

EXPORTS = (
    *(".json", ".json.gz", ".pftrace", ".speedscope.json"),
    *("spans.jsonl", "links.jsonl", ".csv", "to_polars", "to_pandas"),
)
DUMPS, BUILDER = "json.dumps, dicts", "perfetto, TraceProtoBuilder"
FIRST = "first"

#: Seconds for a million spans, in one of the two formats that hold everything.
SECONDS = 5.0
#: Added memory to the size of the session's tables.
TIMES = 8.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spans", type=int, default=1_000_000, help="(1,000,000)")
    parser.add_argument("--rivals", type=int, default=200_000, help="spans for rivals (200,000)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (3)")
    parser.add_argument("--only", nargs="+", choices=(*EXPORTS, DUMPS, BUILDER), help="these")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "SPANS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(measured(chosen.child[0], int(chosen.child[1]))))
        return
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} CPUs")
    print(f"{'':28}    spans   CPU s  us each   spans/s    MB out  MB added  of the session")
    found = {}
    for what in chosen.only or (*EXPORTS, DUMPS, BUILDER):
        spans = min(chosen.rivals, chosen.spans) if what in (DUMPS, BUILDER) else chosen.spans
        found[what] = least(what, spans, chosen.rounds)
    verdict(found, chosen.spans)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), "utf-8")


def least(what: str, spans: int, rounds: int) -> dict[str, float] | None:
    runs = []
    for _ in range(rounds):
        command = [sys.executable, __file__, "--child", what, str(spans)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{what:28} not measured: {done.stderr.strip().splitlines()[-1][:90]}")
            return None
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    best: dict[str, float] = {key: min(run[key] for run in runs) for key in runs[0]}
    best["added_mb"] = max(run["added_mb"] for run in runs)
    best["first_s"] = min(run["first_s"] for run in runs)
    share = best["added_mb"] / best["session_mb"]
    print(
        f"{what:28} {spans:8,} {best['cpu_s']:7.2f} {best['cpu_s'] / spans * 1e6:8.2f} "
        f"{spans / best['cpu_s']:9,.0f} {best['out_mb']:9,.1f} {best['added_mb']:9,.0f} "
        f"{share:8.1f} x"
    )
    return best


def verdict(found: dict[str, dict[str, float] | None], spans: int) -> None:
    first = [run["first_s"] / run["spans"] for run in found.values() if run]
    if first:
        print(f"attribution, once a session: {min(first) * 1e6:.2f} us a span")
    for ending, rival in ((".json", DUMPS), (".pftrace", BUILDER)):
        ours, theirs = found.get(ending), found.get(rival)
        if ours and theirs:
            ratio = (ours["cpu_s"] / ours["spans"]) / (theirs["cpu_s"] / theirs["spans"])
            print(f"{ending}: {ratio:.2f} of the time of {rival}")
    for ending in (".json", ".pftrace"):
        if (ours := found.get(ending)) and spans == 1_000_000:
            budget(f"{ending}: {SECONDS:g} s", ours["cpu_s"] <= SECONDS)
    for ending in EXPORTS:
        if (ours := found.get(ending)) and not ending.startswith("to_"):
            share = ours["added_mb"] / ours["session_mb"]
            budget(f"{ending}: {TIMES:g} times the session added", share <= TIMES)


def budget(words: str, kept: bool) -> None:
    print(f"  budget {words}: {'PASS' if kept else 'over'}")


# --- in a process of its own ----------------------------------------------------------------------


def measured(what: str, spans: int) -> dict[str, float]:
    session = made(spans)
    before = time.process_time()
    basis(session)
    first_s = time.process_time() - before
    work, after = METHODS.get(what, exported(what))(session), 0.0
    floor = reset_peak_kb()
    before = time.process_time()
    out = work()
    after = time.process_time()
    return {
        "spans": len(session.spans),
        "cpu_s": after - before,
        "first_s": first_s,
        "out_mb": out / 1e6,
        "added_mb": (peak_kb() - floor) * 1024 / 1e6,
        "session_mb": (session.spans.nbytes + session.links.nbytes) / 1e6,
    }


Work = Callable[[], int]


def exported(what: str) -> Callable[[Session], Work]:
    """Writes with `opscope.export`, or makes a data frame; the answer is its size in bytes."""

    def prepare(session: Session) -> Work:
        import opscope
        from opscope.present import export

        def frame() -> int:
            return len(getattr(opscope, what)(session))

        def file() -> int:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / (what if not what.startswith(".") else f"trace{what}")
                export(session, path)
                return path.stat().st_size

        if what.startswith("to_"):
            getattr(opscope, what)(made(16))  # imports the library, which is no part of the export
            return frame
        return file

    return prepare


def dumps(session: Session) -> Work:
    """One json.dumps an event, and a write."""
    events = list(chrome_dicts(session))

    def work() -> int:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            for event in events:
                file.write(json.dumps(event) + ",\n")
            return file.tell()

    return work


def builder(session: Session) -> Work:
    """Begins and ends as the documentation of the package makes them: names not interned."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    events = [event for event in chrome_dicts(session) if event["ph"] == "X"]
    begin, end = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END

    def work() -> int:
        trace = TraceProtoBuilder()
        for event in events:
            packet = trace.add_packet()
            packet.timestamp = int(event["ts"] * 1000)
            packet.trusted_packet_sequence_id = 1
            made = packet.track_event
            made.type, made.track_uuid, made.name = begin, event["tid"], event["name"]
            made.categories.append(event["cat"])
            for key, value in event["args"].items():
                note = made.debug_annotations.add()
                note.name = key
                if isinstance(value, int):
                    note.int_value = value
                else:
                    note.string_value = str(value)
            packet = trace.add_packet()
            packet.timestamp = int((event["ts"] + event["dur"]) * 1000)
            packet.trusted_packet_sequence_id = 1
            packet.track_event.type, packet.track_event.track_uuid = end, event["tid"]
        return len(trace.serialize())

    return work


def chrome_dicts(session: Session) -> Iterator[dict[str, Any]]:
    from opscope.present import chrome_events

    return map(json.loads, chrome_events(session))


METHODS: dict[str, Callable[[Session], Work]] = {DUMPS: dumps, BUILDER: builder}


def reset_peak_kb() -> int:
    """Forget the peak so far, where the system can; the memory in use now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    return peak_kb()


def peak_kb() -> int:
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


# --- a session ------------------------------------------------------------------------------------

#: (kind, phase, name, lane, start, length, number of the owner in the round, pushed at) of the
#: spans of one round. A forward call with a nested one, work on a pool and a device, a backward.
ROUND = (
    (Kind.CALL, Phase.FORWARD, 0, 0, 0, 400, 0, 0),
    (Kind.DISPATCH, Phase.NONE, 4, 0, 0, 20, 1, 0),
    (Kind.OP, Phase.NONE, 5, 0, 40, 30, 1, 0),
    (Kind.OP, Phase.NONE, 6, 0, 90, 40, 1, 0),
    (Kind.CALL, Phase.FORWARD, 1, 0, 150, 120, 1, 0),
    (Kind.OP, Phase.NONE, 7, 0, 160, 30, 5, 0),
    (Kind.OP, Phase.NONE, 8, 0, 210, 40, 5, 0),
    (Kind.WAIT, Phase.NONE, 9, 0, 300, 80, 1, 0),
    (Kind.TASK, Phase.NONE, 10, 1, 310, 60, 1, 290),
    (Kind.OP, Phase.NONE, 6, 1, 320, 30, 9, 0),
    (Kind.OP, Phase.NONE, 11, 2, 60, 50, 1, 35),
    (Kind.DEVICE, Phase.NONE, 12, 3, 120, 60, 1, 0),
    (Kind.OP, Phase.NONE, 7, 0, 420, 50, 0, 0),
    (Kind.RUNTIME, Phase.NONE, 13, 0, 480, 10, 0, 0),
    (Kind.CALL, Phase.BACKWARD, 0, 4, 500, 200, 0, 0),
    (Kind.OP, Phase.NONE, 8, 4, 540, 60, 15, 0),
)
NAMES = (
    *("lib::outer", "lib::inner", "lib::more", "lib::other", "enter", "aten::add", "aten::mul"),
    *("aten::matmul", "aten::relu", "result", "prepare", "copy", "void kernel<float, 4>", "gc"),
)


def made(count: int) -> Session:
    """A session of `count` spans, always the same; lengths are drawn."""
    rounds = -(-count // len(ROUND))
    rng = np.random.default_rng(7)
    spans = np.zeros((rounds, len(ROUND)), SPAN)
    scale = rng.integers(20, 200, rounds)
    zero = 10**15 + np.concatenate(([0], np.cumsum(scale[:-1] * 720)))
    base = np.arange(rounds) * len(ROUND)
    for place, (kind, phase, name, lane, start, length, owner, pushed) in enumerate(ROUND):
        column = spans[:, place]
        column["id"], column["kind"], column["phase"] = base + place + 1, kind, phase
        column["owner"] = base + owner if owner else 0
        column["name"] = name + 2 * (np.arange(rounds) % 2) if kind == Kind.CALL else name
        column["lane"], column["submitted_lane"], column["cpu_ns"] = lane, 0, -1
        column["start_ns"] = zero + start * scale
        column["end_ns"] = column["start_ns"] + length * scale - rng.integers(0, scale)
        if pushed:
            column["submitted_ns"] = zero + pushed * scale
    first = spans["id"]
    links = np.empty((rounds, 2), LINK)
    links["kind"] = LinkKind.LAUNCH, LinkKind.BACKWARD
    links["source"] = first[:, (2, 14)]
    links["target"] = first[:, (11, 0)]
    kept = spans.ravel()[:count]
    joined = links.ravel()
    return Session(
        spans=kept,
        names=NAMES,
        lanes=(
            *(Lane("MainThread", thread=101), Lane("prepare_0", thread=102)),
            *(Lane("engine-worker-1", thread=103), Lane("stream 7", "stream")),
            Lane("autograd", thread=104),
        ),
        links=joined[(joined["source"] <= count) & (joined["target"] <= count)],
        ops=tuple(Op("python", "function", name, file="/x/lib.py", line=9) for name in NAMES[:4]),
        op_names=(0, 1, 2, 3),
        sight=(Sight("python", sees=("all waits", "device")),),
        processes=(Process(pid=100, command=("train.py",), complete=True),),
    )


if __name__ == "__main__":
    main()
