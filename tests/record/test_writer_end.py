"""How a recording begins and ends in the file."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

import numpy as np
import pytest

from opscope.model import SPAN, Flag, Kind, Op, Sight, no_rows
from opscope.record import Recorder, Writer
from opscope.record.begun import Begun
from opscope.record.writer import machine
from opscope.store import MemorySink
from opscope.testing import ManualClock

INCOMPLETE = int(Flag.INCOMPLETE)


@pytest.fixture
def made() -> tuple[ManualClock, Recorder, Writer, MemorySink]:
    clock, sink = ManualClock(), MemorySink()
    recorder = Recorder(sink, clock)
    return clock, recorder, Writer(recorder), sink


def call(recorder: Recorder, kind: Kind = Kind.CALL) -> int:
    return recorder.begin(kind, recorder.op(Op("python", "function", "f")), owner=0)


def spans(sink: MemorySink) -> list[Any]:
    found: list[Any] = sink.session().spans[["id", "end_ns", "flags"]].tolist()
    return found


def test_the_head_tells_about_the_process(made: Any) -> None:
    clock, _, writer, sink = made
    start_ns = clock.now()
    clock.tick(5)
    writer.head(["python", "x.py"], {"opscope": "1"})
    (process,) = sink.session().processes
    assert (process.pid, process.command) == (os.getpid(), ("python", "x.py"))
    assert (process.start_ns, process.machine) == (start_ns, machine())
    assert process.anchors == ((start_ns + 5, start_ns + 5),)
    assert not process.complete


def test_calls_tasks_and_steps_are_written_while_they_are_open(made: Any) -> None:
    clock, recorder, writer, sink = made
    for kind in (Kind.CALL, Kind.TASK, Kind.STEP, Kind.OP, Kind.WAIT):
        call(recorder, kind)
    clock.tick(7)
    writer.flush()
    now = clock.now()
    assert spans(sink) == [(1, now, INCOMPLETE), (2, now, INCOMPLETE), (3, now, INCOMPLETE)]


def test_what_is_open_at_the_end_is_written_and_ended_there(made: Any) -> None:
    clock, recorder, writer, sink = made
    for kind in (Kind.CALL, Kind.OP):
        call(recorder, kind)
    clock.tick(7)
    recorder.closed = True
    writer.finish()
    clock.tick(7)
    recorder.end(1)
    writer.flush()
    assert not recorder.here().rows
    assert spans(sink) == [(1, clock.now() - 7, INCOMPLETE), (2, clock.now() - 7, INCOMPLETE)]
    (process,) = sink.session().processes
    assert (process.complete, process.end_ns) == (True, clock.now() - 7)


def test_a_call_is_written_as_open_once(made: Any) -> None:
    _, recorder, writer, sink = made
    call(recorder)
    opened = []
    put = sink.put
    sink.put = lambda word, data: opened.append(data) if word == "open" else put(word, data)
    for _ in range(3):
        writer.flush()
    call(recorder)
    writer.flush()
    assert [[row[0] for row in rows] for rows in opened] == [[1], [2]]


def test_a_row_that_is_still_being_filled_in_is_not_written(made: Any) -> None:
    _, recorder, writer, sink = made
    recorder.opened[7] = [7, 0, 0, int(Kind.CALL), 0, 0, 0, 0, 0, 0, 0, -1]
    writer.flush()
    assert spans(sink) == []


def test_an_end_that_is_written_before_the_call_stops_being_open_is_its_end(made: Any) -> None:
    clock, recorder, writer, sink = made
    call(recorder)
    row = [*recorder.opened[1][:9], clock.now(), 0, -1]
    recorder.put(tuple(row))
    for _ in range(2):
        writer.flush()
    recorder.opened.pop(1)
    writer.finish()
    assert spans(sink) == [(1, clock.now(), 0)]


def test_lists_are_told_once_and_a_pause_ends_with_the_recording(made: Any) -> None:
    clock, recorder, writer, sink = made
    recorder.notes.append("one")
    recorder.sight.append(Sight("python", "3", ("cpu",), {"locks": "no"}))
    writer.flush()
    recorder.fault("hook", KeyError(1))
    recorder.notes.append("two")
    recorder.pause()
    clock.idle(10)
    recorder.resume()
    recorder.pause()
    clock.idle(5)
    writer.finish()
    session = sink.session()
    now = clock.now()
    assert session.pauses.tolist() == [(0, now - 15, now - 5), (0, now - 5, now)]
    assert session.processes[0].notes == ("one", "two")
    assert session.processes[0].broken == ("hook: KeyError: 1",)
    assert session.sight == (Sight("python", "3", ("cpu",), {"locks": "no"}),)


def test_operators_of_one_key_are_one_operator() -> None:
    recorder = Recorder(MemorySink())
    first = recorder.op(Op("python", "function", "f", file="a.py", line=1))
    assert recorder.op(Op("python", "function", "f", file="a.py", line=2)) == first
    assert recorder.op(Op("python", "function", "f", registration=2)) != first
    assert recorder.name("f") not in (first, first + 1)


def test_one_fact_that_cannot_be_written_costs_no_other(
    made: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _, recorder, writer, sink = made
    recorder.sight.append(Sight("odd", misses={"x": object()}))  # type: ignore[dict-item]
    recorder.notes.append("kept")
    recorder.end(recorder.begin(Kind.OP, recorder.name("mul"), owner=0))
    recorder.put((2**70, *[0] * 11))
    with caplog.at_level(logging.ERROR, "opscope"):
        writer.finish()
    session = sink.session()
    assert (session.names, len(session.spans), session.sight) == (("mul",), 1, ())
    assert session.processes[0].notes == ("kept",)
    assert session.processes[0].complete
    assert sorted(message.split(":")[1] for message in caplog.messages) == [
        " a span does not fit the file and is left out",
        " part of the recording was lost",
    ]


def test_a_file_that_cannot_be_closed_is_told_and_nothing_raises(
    made: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, recorder, writer, sink = made

    def close() -> None:
        raise OSError("the server is gone")

    monkeypatch.setattr(sink, "close", close)
    recorder.end(call(recorder))
    writer.finish()
    assert str(writer.error) == "the server is gone"
    assert len(spans(sink)) == 1
    (record,) = caplog.records
    assert record.getMessage().endswith("the server is gone")


def test_it_writes_by_itself_and_tells_so() -> None:
    recorder = Recorder(MemorySink(), ManualClock())
    told, written = threading.Event(), threading.Event()
    recorder.taps.append(lambda rows: written.set())
    recorder.listeners.append(lambda moment: told.set() if moment == "tick" else None)
    writer = Writer(recorder, flush_s=0.001)
    writer.start()
    try:
        recorder.end(call(recorder))
        assert written.wait(30)
        told.clear()
        assert told.wait(30)
    finally:
        writer.finish()


def test_what_has_ended_and_goes_with_the_next_flush_is_not_lost() -> None:
    """A call may end when the rows of a flush are counted, and before what is open is looked at."""
    row = [7, 0, 0, int(Kind.CALL), 0, 0, 0, 0, 10, 0, 0, -1]
    ended = np.array([(*row[:9], 15, *row[10:])], SPAN)
    begun = Begun()
    assert begun.news({7: row}, no_rows(SPAN), everything=False) == [row]
    assert begun.settle({}, b"", ended, 20) == []
    assert begun.settle({}, ended.tobytes(), no_rows(SPAN), 30) == []
    assert begun.news({8: [8, *row[1:]]}, no_rows(SPAN), everything=False) != []
    ((number, *_, end_ns, _, _),) = begun.settle({}, b"", no_rows(SPAN), 40)
    assert (number, end_ns) == (8, 40)
