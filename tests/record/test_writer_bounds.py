"""Memory stays flat, nothing is lost without being counted, and dead threads leave nothing."""

from __future__ import annotations

import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from opscope.model import Flag, Kind, Op
from opscope.record import Recorder, Writer
from opscope.store import FileSink, MemorySink

Row = tuple[int, int, int, int, int, int, int, int, int, int, int, int]


def row(recorder: Recorder, now: int) -> Row:
    return (recorder.next_id(), 0, 0, int(Kind.OP), 0, 0, 0, 0, now, now + 1, 0, -1)


class Slow(FileSink):
    """A disk that does one thing each time it is allowed to."""

    allowed = threading.Semaphore(0)

    def flush(self) -> None:
        if self._size:
            assert self.allowed.acquire(timeout=60)
        super().flush()


def test_a_slow_disk_costs_spans_and_no_memory_and_every_one_is_counted(tmp_path: Path) -> None:
    total, bound = 300_000, 1000
    sink = Slow(tmp_path / "s.opscope")
    recorder = Recorder(sink, bound=bound)
    recorder.name("mul")
    writer = Writer(recorder, flush_s=0.001)
    writer.start()
    buffer = recorder.here()
    most = 0
    tracemalloc.start()
    for now in range(1, total + 1):
        recorder.put(row(recorder, now))
        if now % 1000 == 0:
            most = max(most, len(buffer.rows))
        if now % 20_000 == 0:
            sink.allowed.release()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sink.allowed.release(100)
    recorder.closed = True
    writer.finish()
    session = sink.session()
    dropped = int(session.drops["count"].sum())
    assert len(session.spans) + dropped == total
    assert len(session.spans) >= bound
    assert most <= bound
    assert peak < 300 * 64 * bound
    # The stretches cover exactly what is missing.
    kept = set(session.spans["start_ns"].tolist())
    for drop in session.drops:
        assert drop["start_ns"] not in kept
        assert drop["end_ns"] - 1 not in kept
    assert (session.drops["start_ns"] <= session.drops["end_ns"]).all()
    missing = sorted(set(range(1, total + 1)) - kept)
    assert session.drops["start_ns"].min() == missing[0]
    assert session.drops["end_ns"].max() == missing[-1] + 1


def test_eight_busy_threads_lose_nothing(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "s.opscope")
    recorder = Recorder(sink)
    writer = Writer(recorder)
    writer.start()
    name = recorder.name("mul")

    def work() -> None:
        for _ in range(20_000):
            recorder.end(recorder.begin(Kind.OP, name, owner=0))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    recorder.closed = True
    writer.finish()
    session = sink.session()
    assert sorted(session.spans["id"].tolist()) == list(range(1, 160_001))
    assert len(session.drops) == 0
    assert len(session.lanes) == 8
    assert (session.spans["flags"] == 0).all()


@pytest.mark.parametrize("bound", [65_536, 1])
def test_buffers_of_dead_threads_are_let_go(bound: int) -> None:
    sink = MemorySink()
    recorder = Recorder(sink, bound=bound)
    writer = Writer(recorder)
    recorder.name("mul")
    recorder.here()
    for _ in range(5):
        for _ in range(100):
            thread = threading.Thread(target=lambda: [recorder.put(row(recorder, 5)) for _ in "ab"])
            thread.start()
            thread.join(60)
        writer.flush()
        assert recorder.buffers == [recorder.here()]
    writer.finish()
    session = sink.session()
    assert len(session.spans) + session.drops["count"].sum() == 1000
    assert len(session.spans) == (1000 if bound > 1 else 500)


def test_a_drop_that_is_not_told_yet_keeps_its_buffer() -> None:
    sink = MemorySink()
    recorder = Recorder(sink)
    writer = Writer(recorder)
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(recorder.here()))
    thread.start()
    thread.join(60)
    (buffer,) = made
    counted = [(buffer, 0)]
    buffer.dropped, buffer.drop_to = 1, 70  # as if between counting and letting go
    writer._forget_dead(counted)
    writer.finish()
    assert sink.session().drops.tolist() == [(0, 70, 70, 1)]
    assert recorder.buffers == []


def test_a_call_whose_end_was_dropped_does_not_seem_to_run_on() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, bound=1)
    writer = Writer(recorder)
    call = recorder.begin(Kind.CALL, recorder.op(Op("python", "function", "f")), owner=0)
    writer.flush()
    recorder.put(row(recorder, 5))
    recorder.end(call)
    writer.flush()
    lost = next(span for span in sink.session().spans if span["id"] == call)
    assert lost["flags"] == Flag.INCOMPLETE | Flag.LOSSY
    ended = lost["end_ns"]
    writer.finish()
    session = sink.session()
    assert [s["end_ns"] for s in session.spans if s["id"] == call] == [ended]
    assert session.drops["count"].tolist() == [1]
