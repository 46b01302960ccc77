"""What only the C recorder can get wrong: its rows, its memory, its arguments, its interpreter."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from opscope import custom_op, profile
from opscope.model import SPAN, Kind, Phase
from opscope.record import Recorder, Writer, extension, recorder_class, scope
from opscope.record.scope import Frame
from opscope.store import MemorySink
from opscope.testing import ManualClock

native: Any = extension.native
needs_native = pytest.mark.skipif(native is None, reason=extension.missing or "it is there")
FIELDS = (7, 6, 5, 4, 3, 2, 1, 8, 100, 200, 50, -1)
LARGEST = {1: 2**7, 2: 2**15, 4: 2**31, 8: 2**63}


@pytest.fixture
def recorder(recorder_kind: str) -> Recorder:
    return Recorder(MemorySink(), ManualClock())


@needs_native
def test_a_row_is_a_list_of_twelve() -> None:
    row = native.Row(FIELDS)
    assert (list(row), len(row), row[-1], row[:2]) == (list(FIELDS), 12, -1, (7, 6))
    row[5] |= 64
    row[-1] = 9
    assert (row[5], row[11], repr(row)[:7]) == (66, 9, "Row((7,")
    for index in (12, -13):
        with pytest.raises(IndexError):
            row[index]
        with pytest.raises(IndexError):
            row[index] = 1
    with pytest.raises(TypeError):
        del row[0]
    with pytest.raises(TypeError):
        row[0] = "x"
    for wrong in ((), [1], "twelve chars", None, range(12)):
        with pytest.raises((TypeError, ValueError)):
            native.Row(wrong)


@needs_native
@pytest.mark.parametrize("index", range(12))
def test_every_field_holds_what_the_file_holds_and_no_more(index: int) -> None:
    size = SPAN[index].itemsize
    for value in (LARGEST[size] - 1, -LARGEST[size]):
        fields = list(FIELDS)
        fields[index] = value
        recorder = Recorder(MemorySink())
        recorder.put(tuple(fields))
        (packed,) = np.frombuffer(recorder.here().take(1), SPAN).tolist()
        assert packed == tuple(fields)
    for value in (LARGEST[size], -LARGEST[size] - 1):
        with pytest.raises(OverflowError):
            native.Row((*FIELDS[:index], value, *FIELDS[index + 1 :]))


class Index:
    """A number that empties the list it is in when it is asked for its value."""

    def __init__(self, of: list[Any]) -> None:
        self.of = of

    def __index__(self) -> int:
        self.of.clear()
        return 1


@needs_native
def test_a_list_that_changes_while_it_is_read() -> None:
    fields: list[Any] = [1] * 12
    fields[3] = Index(fields)
    with pytest.raises(ValueError, match="12 fields"):
        native.Row(fields)


def test_what_goes_in_comes_out_in_order_whatever_is_taken_when(recorder: Recorder) -> None:
    dice = random.Random(5)
    buffer, taken, put = recorder.here(), b"", 0
    for _ in range(300):
        for _ in range(dice.choice((0, 1, 3, 400, 1100))):
            put += 1
            recorder.put((put, *FIELDS[1:]))
        before = buffer.waiting()
        some = buffer.take(dice.choice((0, 1, 511, 512, 513, 5000)))
        assert buffer.waiting() == before - len(some) // 64
        assert len(buffer.rows) == buffer.waiting()
        taken += some
    taken += buffer.take(10**9)
    assert np.frombuffer(taken, SPAN)["id"].tolist() == list(range(1, put + 1))
    assert buffer.take(5) == b""


@pytest.mark.parametrize("bound", [1, 2, 511, 512, 513, 1024])
def test_the_bound_holds_and_drops_say_when(bound: int, recorder_kind: str) -> None:
    recorder = Recorder(MemorySink(), bound=bound)
    for number in range(1, bound + 4):
        recorder.put((number, *FIELDS[1:8], number * 10, number * 10 + 5, 0, -1))
    buffer = recorder.here()
    assert buffer.waiting() == bound
    assert buffer.dropped == 3
    assert (buffer.drop_from, buffer.drop_to) == ((bound + 1) * 10, (bound + 3) * 10 + 5)
    assert [row[0] for row in buffer.rows] == list(range(1, bound + 1))
    assert recorder.wake.is_set()


def test_arguments(recorder: Recorder) -> None:
    begin: Any = recorder.begin
    span = begin(kind=Kind.OP, name=3, owner=2, phase=Phase.BACKWARD, lane=5, start_ns=7)
    assert list(recorder.opened[span]) == [span, 2, 3, 2, 2, 0, 5, 5, 7, 0, 0, -1]
    recorder.end(span=span, flags=1, cpu_ns=4, end_ns=9)
    assert recorder.here().rows[0] == (span, 2, 3, 2, 2, 1, 5, 5, 7, 9, 0, 4)
    for wrong in (
        lambda: begin(),
        lambda: begin(Kind.OP, 3),
        lambda: begin(Kind.OP, 3, owner=1, nobody=2),
        lambda: begin(Kind.OP, 3, name=3, owner=1),
        lambda: begin(*[1] * 20, owner=1),
        lambda: recorder.end(),  # type: ignore[call-arg]
        lambda: scope.enter(recorder),  # type: ignore[call-arg]
        lambda: scope.leave(),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError):
            wrong()
    assert recorder.opened == {}


def test_a_clock_that_fails_costs_no_more_than_the_call(recorder_kind: str) -> None:
    class Stopped(ManualClock):
        stopped = False

        def now(self) -> int:
            if self.stopped:
                raise OSError("no time")
            return super().now()

    clock = Stopped()
    recorder = Recorder(MemorySink(), clock)
    frame = scope.enter(recorder, 0)
    clock.stopped = True
    with pytest.raises(OSError, match="no time"):
        scope.leave(frame)
    assert scope.held() is None
    with pytest.raises(OSError, match="no time"):
        scope.enter(recorder, 0)
    assert scope.held() is None


@needs_native
def test_a_recorder_that_is_not_set_up_or_was_taken_apart() -> None:
    core = native.Core()
    for recorder in (core, Recorder(MemorySink())):
        if isinstance(recorder, Recorder):
            del recorder.opened
        for use in (
            lambda recorder=recorder: recorder.begin(1, 2, owner=0, lane=0),
            lambda recorder=recorder: recorder.end(1),
            lambda recorder=recorder: scope.enter(recorder, 0),
        ):
            with pytest.raises((TypeError, AttributeError)):
                use()
    with pytest.raises(AttributeError):
        core.here()
    assert scope.held() is None


def test_ended_once_by_whoever_is_first(recorder: Recorder) -> None:
    spans = [recorder.begin(Kind.OP, 0, owner=0) for _ in range(2000)]
    gate = threading.Barrier(4)

    def end() -> None:
        gate.wait()
        for span in spans:
            recorder.end(span)

    threads = [threading.Thread(target=end) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [row[0] for buffer in recorder.buffers for row in buffer.rows]
    assert sorted(set(rows)) == spans
    assert recorder.opened == {}
    if recorder_class() is not Recorder:
        assert len(rows) == len(spans)


def test_frames_and_recorders_are_collected(recorder_kind: str) -> None:
    recorder = Recorder(MemorySink())
    frame = Frame(recorder, None, 1, Phase.FORWARD)
    frame.mark = (frame, recorder)  # type: ignore[assignment]
    recorder.taps.append(lambda rows, frame=frame: None)  # type: ignore[misc]
    gone = weakref.ref(recorder)
    del recorder, frame
    gc.collect()
    assert gone() is None


def test_a_recorder_goes_with_a_clock_that_knows_it(recorder_kind: str) -> None:
    clock = ManualClock()
    recorder = Recorder(MemorySink(), clock)
    clock.recorder = recorder  # type: ignore[attr-defined]
    gone = weakref.ref(recorder)
    del clock, recorder
    gc.collect()
    assert gone() is None


@needs_native
def test_rows_let_go_of_their_class() -> None:
    before = sys.getrefcount(native.Row)
    for _ in range(100):
        native.Row(FIELDS)
    assert sys.getrefcount(native.Row) < before + 50


def test_once_recording_has_ended_a_call_has_no_row(recorder: Recorder) -> None:
    recorder.closed = True
    frame = scope.enter(recorder, 0)
    assert recorder.begin(Kind.CALL, 0, owner=0) == 0
    assert (frame.call, dict(recorder.opened)) == (0, {})
    scope.leave(frame)
    assert scope.held() is None


def test_no_row_ends_before_it_begins(recorder: Recorder) -> None:
    recorder.end(recorder.begin(Kind.CALL, 0, owner=0, start_ns=50), end_ns=20)
    (row,) = recorder.here().rows
    assert (row[8], row[9]) == (50, 50)


def test_a_loss_begins_with_the_earliest_that_is_lost(recorder_kind: str) -> None:
    recorder = Recorder(MemorySink(), ManualClock(), bound=1)
    for number, start in enumerate((10, 50, 20, 30), 1):
        recorder.put((number, 0, 0, 1, 0, 0, 0, 0, start, 60, 0, -1))
    buffer = recorder.here()
    assert (buffer.drop_from, buffer.drop_to, buffer.dropped) == (20, 60, 3)


def test_a_long_chain_of_frames_can_go(recorder: Recorder) -> None:
    frame: Frame | None = None
    for _ in range(200_000):
        frame = Frame(recorder, frame, 0, Phase.NONE)
    del frame


def test_a_buffer_that_is_gone_is_not_used_again(recorder: Recorder) -> None:
    recorder.put(FIELDS)
    recorder.buffers.clear()
    del recorder._local.buffer
    recorder.put(FIELDS)
    (buffer,) = recorder.buffers
    assert buffer is recorder.here()
    assert buffer.waiting() == 1


GARBAGE = """
import gc
from opscope.record import Recorder, scope
from opscope.store import MemorySink
recorder = Recorder(MemorySink())
class Knot:
    def __init__(self):
        self.me = self
    def __del__(self):
        for _ in range(3):
            scope.leave(scope.enter(recorder, 0))
for most in range(1, 40):
    gc.set_threshold(most)
    for number in range(200):
        Knot()
        keep = [[] for _ in range(number % 7)]
        outer = scope.enter(recorder, 0)
        scope.leave(scope.enter(recorder, 0))
        scope.leave(outer)
        assert scope.held() is None
assert gc.isenabled()
"""


def test_finalizers_in_the_middle_of_entering_a_call(recorder_kind: str) -> None:
    ended = subprocess.run([sys.executable, "-c", GARBAGE], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_threads_that_die_with_rows_in_their_buffer(recorder_kind: str) -> None:
    sink = MemorySink()
    recorder = Recorder(sink)
    writer = Writer(recorder)

    def work() -> None:
        for _ in range(3):
            recorder.end(recorder.begin(Kind.OP, recorder.name("mul"), owner=0))

    for _ in range(100):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if random.random() < 0.3:
            writer.flush()
    writer.flush()
    assert recorder.buffers == []
    writer.finish()
    assert sorted(sink.session().spans["id"].tolist()) == list(range(1, 901))


@needs_native
def test_the_fields_of_a_frame() -> None:
    recorder = Recorder(MemorySink())
    outer = Frame(recorder, None, 0, Phase.NONE)
    frame = Frame(recorder, outer, 3, Phase.BACKWARD)
    assert (frame.recorder, frame.outer, frame.call, frame.task) == (recorder, outer, 3, 0)
    assert (frame.phase, frame.lane, frame.cpu, frame.around) == (Phase.BACKWARD, -1, 0, ())
    assert (frame.closed, frame.left, frame.mark, frame.yielding) == (False, False, None, None)
    frame.around += (outer,)
    frame.mark, frame.lane, frame.cpu, frame.closed = (1, 2), 4, -1, True
    assert (frame.around, frame.mark, frame.lane, frame.cpu) == ((outer,), (1, 2), 4, -1)
    frame.outer = None
    assert frame.outer is None
    with pytest.raises(AttributeError):
        frame.colour = 3  # type: ignore[attr-defined]
    with pytest.raises((TypeError, ValueError)):
        frame.phase = 1000  # type: ignore[assignment]
    with pytest.raises(TypeError):
        native.claim(recorder)
    with pytest.raises(TypeError):
        native.Operators(object(), {}, int, 2, 3, print)


@needs_native
@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 they share what C keeps")
def test_another_interpreter_is_refused_and_records_in_python() -> None:
    code = (
        "import sys\n"
        "try: import _interpreters as i\n"
        "except ImportError: import _xxsubinterpreters as i\n"
        "n = i.create()\n"
        f"i.run_string(n, {PROBE!r})\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stdout.strip() in ("refused", "no numpy here"), told.stderr


PROBE = """
try:
    import opscope.record._native
except ImportError as error:
    print("refused" if "interpreter" in str(error) else "no numpy here", flush=True)
"""


@needs_native
def test_fork_and_exit_with_rows_waiting() -> None:
    code = """
import os, threading, opscope
from opscope import custom_op

@custom_op
def work(n):
    return n and work(n - 1)

def forever():
    while True:
        work(3)

with opscope.profile():
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    for _ in range(5):
        child = os.fork()
        if not child:
            work(5)
            with opscope.profile() as again:
                work(5)
            calls = (again.session.spans["kind"] == 1).sum()
            os._exit(0 if calls == 6 else 9)
        assert os.waitpid(child, 0)[1] == 0
profile = opscope.profile().start()
work(50)
"""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (told.returncode, told.stderr) == (0, "")


def test_a_signal_handler_that_records(recorder_kind: str) -> None:
    import signal

    @custom_op
    def inside() -> None:
        pass

    def handler(number: int, frame: Any) -> None:
        inside()

    before = signal.signal(signal.SIGALRM, handler)
    gc.disable()  # a matter of its own
    try:
        with profile() as recorded:
            signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
            for _ in range(30_000):
                inside()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)
    spans = recorded.session.spans
    assert len(spans) > 30_000
    assert (spans["start_ns"] <= spans["end_ns"]).all()
    assert len(set(spans["id"].tolist())) == len(spans)
