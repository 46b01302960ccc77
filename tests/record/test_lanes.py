"""Lanes of threads that have not recorded anything yet."""

from __future__ import annotations

import threading

import pytest

from opscope.record import Recorder
from opscope.store import MemorySink


def begun(
    recorder: Recorder, asks: bool = True
) -> tuple[threading.Thread, list[int], threading.Event]:
    """A thread that goes on when told to, and asks for its own lane (or records nothing)."""
    go = threading.Event()
    lanes: list[int] = []

    def run() -> None:
        go.wait()
        if asks:
            lanes.append(recorder.here().lane)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, lanes, go


def test_a_thread_keeps_the_lane_that_was_asked_for_from_outside() -> None:
    recorder = Recorder(MemorySink())
    thread, lanes, go = begun(recorder)
    lane = recorder.lane_of(thread.ident or 0)
    assert recorder.lane_of(thread.ident or 0) == lane
    go.set()
    thread.join()
    assert lanes == [lane]


def test_another_thread_of_the_same_ident_gets_a_lane_of_its_own() -> None:
    recorder = Recorder(MemorySink())
    for _ in range(100):
        first, _, go = begun(recorder, asks=False)
        lane, ident = recorder.lane_of(first.ident or 0), first.ident
        ended(go, first)
        second, lanes, go = begun(recorder)
        ended(go, second)
        if second.ident == ident and second is not first:
            assert lanes[0] != lane
            return
    pytest.skip("the system gave no ident twice")


def ended(go: threading.Event, thread: threading.Thread) -> None:
    go.set()
    thread.join()
