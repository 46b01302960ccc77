"""Hot lines: what a sample stands for, whose line it is, and what is written of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from opscope import custom_op
from opscope import engine as nd
from opscope.model import Op, Phase
from opscope.profiler import profile
from opscope.record import Recorder, Writer, scope, watch
from opscope.record.lines import Sampler, Strata
from opscope.record.places import Place, before, of_op, stack_of
from opscope.store import MemorySink
from opscope.testing import ManualClock, assert_restored

HERE = __file__


class Scripted:
    """A recorder, and a sampler that the test calls where an alarm would."""

    def __init__(self, period_ns: int = 1000) -> None:
        self.clock = ManualClock()
        self.sink = MemorySink()
        self.recorder = Recorder(self.sink, self.clock)
        self.writer = Writer(self.recorder)
        self.sampler = Sampler(self.recorder, period_ns, lambda: 0.5)
        self.recorder.taps.append(self.sampler.ended)
        self.recorder.sources.append(self.sampler.news)
        watch.recorder = self.recorder

    def ring(self) -> int:
        """The alarm, seen from the line that calls this."""
        return self.sampler.sample(sys._getframe(1))

    def lines(self) -> list[tuple[str, str, str, int, int]]:
        """(op, phase, function, samples, ns) of everything written."""
        self.recorder.closed = True
        watch.recorder = None
        self.writer.finish()
        return [
            (row["op"], row["phase"], row["function"].rpartition(".")[2], row["samples"], row["ns"])
            for row in self.sink.session().samples
            if "op" in row
        ]


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with assert_restored():
        yield Scripted()
        watch.recorder = None


def begin(scripted: Scripted, op: Op, phase: Phase = Phase.NONE) -> scope.Frame:
    recorder = scripted.recorder
    return scope.enter(recorder, recorder.op(op), phase)


def this(function: Callable[..., Any]) -> Op:
    code = function.__code__
    return Op("x", "function", function.__name__, "", "", 1, code.co_filename, code.co_firstlineno)


# --- what a sample stands for ---------------------------------------------------------------------


def test_each_sample_stands_for_one_piece_of_time() -> None:
    strata = Strata(100, lambda: 0.25, 1000)
    assert strata.due_ns == 1025
    assert strata.taken(1024) == 0
    assert strata.taken(1026) == 100
    assert strata.due_ns == 1125
    assert strata.taken(1199) == 100


def test_one_taken_late_stands_for_all_that_went_by() -> None:
    strata = Strata(100, lambda: 0.25, 1000)
    assert strata.taken(1450) == 450
    assert strata.due_ns == 1475
    assert strata.taken(1475) == 100


@pytest.mark.parametrize("cycle", [70, 100, 150])
def test_work_in_step_with_the_samples_is_not_misread(cycle: int) -> None:
    """A third of each cycle is one line, whatever the cycle is to the period."""
    numbers = iter(range(10**9))
    strata = Strata(100, lambda: (next(numbers) * 0.6180339887) % 1, 0)
    found = 0
    for now in range(300_000):
        if (stood := strata.taken(now)) and now % cycle < cycle / 3:
            found += stood
    assert abs(found / 300_000 - 1 / 3) < 0.02


def test_all_that_samples_stand_for_is_the_time_that_went_by() -> None:
    strata = Strata(100, lambda: 0.9, 0)
    assert sum(strata.taken(now) for now in (95, 200, 777, 800, 890, 968)) == 890


# --- whose line it is -----------------------------------------------------------------------------


def test_samples_are_of_the_innermost_call(scripted: Scripted) -> None:
    def inner() -> None:
        frame = begin(scripted, this(inner), Phase.BACKWARD)
        scripted.clock.tick(2000)
        scripted.ring()
        scope.leave(frame)

    def outer() -> None:
        frame = begin(scripted, this(outer), Phase.FORWARD)
        scripted.clock.tick(1000)
        scripted.ring()
        inner()
        scripted.clock.tick(1000)
        scripted.ring()
        scope.leave(frame)

    outer()
    assert sorted(scripted.lines()) == [
        ("x:inner#1", "backward", "inner", 1, 2000),
        ("x:outer#1", "forward", "outer", 1, 1000),
        ("x:outer#1", "forward", "outer", 1, 1000),
    ]


def test_time_that_the_thread_did_not_run_is_left_out(scripted: Scripted) -> None:
    def waits() -> None:
        frame = begin(scripted, this(waits))
        scripted.clock.idle(1_000_000)
        assert scripted.ring() == 1000  # a whole period: nothing happens here
        scripted.clock.tick(1000)
        scripted.ring()
        scope.leave(frame)

    waits()
    assert scripted.lines() == [("x:waits#1", "none", "waits", 1, 1000)]


def test_known_waits_and_pauses_and_no_call_at_all_are_left_out(scripted: Scripted) -> None:
    def waits() -> None:
        frame = begin(scripted, this(waits))
        scope.wait_begin(frame)
        scripted.clock.tick(1000)
        scripted.ring()
        scope.wait_over(frame)
        watch.recorder = None
        scripted.clock.tick(1000)
        scripted.ring()
        watch.recorder = scripted.recorder
        scope.leave(frame)
        scripted.clock.tick(1000)
        scripted.ring()

    waits()
    assert scripted.lines() == []


def test_what_was_due_in_a_known_wait_is_taken_after_it(scripted: Scripted) -> None:
    def waits() -> None:
        frame = begin(scripted, this(waits))
        scripted.clock.tick(600)
        start_ns = scope.wait_begin(frame)
        scripted.ring()
        scope.wait_end(frame, scripted.recorder.name("sleep"), start_ns)
        scripted.clock.tick(1000)
        scripted.ring()
        scope.leave(frame)

    waits()
    assert scripted.lines() == [("x:waits#1", "none", "waits", 1, 1600)]


def test_what_was_due_before_a_wait_nobody_knew_of_is_taken_after_it(scripted: Scripted) -> None:
    def waits() -> None:
        frame = begin(scripted, this(waits))
        scripted.clock.idle(1_000_000)
        scripted.ring()  # idle: the next look is a whole period away, though one is due before
        scripted.clock.tick(600)
        scripted.clock.idle(5000)
        scripted.ring()
        scripted.clock.tick(1000)
        scripted.ring()
        scope.leave(frame)

    waits()
    assert scripted.lines() == [("x:waits#1", "none", "waits", 1, 1600)]


def test_where_it_was_seen_meanwhile_counts_more_than_where_it_is_now(scripted: Scripted) -> None:
    def product() -> tuple[Place, ...]:
        return stack_of(sys._getframe())

    def body() -> None:
        frame = begin(scripted, this(body))
        scripted.clock.tick(4000)
        scripted.sampler.sample(sys._getframe(), [product(), product(), stack_of(sys._getframe())])
        scope.leave(frame)

    body()
    assert sorted(scripted.lines()) == [
        ("x:body#1", "none", "body", 0, 1333),
        ("x:body#1", "none", "product", 1, 2666),
    ]


def test_open_calls_are_written_and_memory_stays_flat(scripted: Scripted) -> None:
    def endless() -> None:
        frame = begin(scripted, this(endless))
        for _ in range(100):
            scripted.clock.tick(1000)
            scripted.ring()
            scripted.writer.flush()
            assert not scripted.sampler._of_call
            assert len(scripted.sampler._table) <= 1
        scripted.recorder.opened.pop(frame.call)
        scope.pull(frame)

    endless()
    lines = scripted.lines()
    assert 1 < len(lines) <= 100 / 4
    assert sum(line[3] for line in lines) == 100
    assert sum(line[4] for line in lines) == 100_000


def test_they_are_written_as_the_run_goes_on(scripted: Scripted) -> None:
    def endless() -> None:
        frame = begin(scripted, this(endless))
        for _ in range(40):
            scripted.clock.tick(1000)
            scripted.ring()
            scripted.writer.flush()
        scripted.sink.flush()
        written.extend(row["samples"] for row in scripted.sink.session().samples if "op" in row)
        scope.leave(frame)

    written: list[int] = []
    endless()
    assert sum(written) == 40
    assert len(written) == 7 + 5  # soon at first, then once in a while
    scripted.lines()


def test_files_are_told_apart_by_what_is_in_them(scripted: Scripted) -> None:
    def body() -> None:
        frame = begin(scripted, this(body))
        scripted.clock.tick(1000)
        scripted.ring()
        scope.leave(frame)

    body()
    scripted.lines()
    (source,) = [row for row in scripted.sink.session().samples if "source" in row]
    assert source["source"] == HERE
    assert source["size"] > 0


# --- of whose file --------------------------------------------------------------------------------

BODY = Place("/me/ops.py", "forward", 10, 12, False)
MINE = Place("/me/more.py", "more", 3, 4, False)
THEIRS = Place("/lib/numpy/core.py", "mean", 100, 110, True)
MAIN = Place("/me/main.py", "<module>", 1, 50, False)
OP = Op("x", "function", "forward", "", "", 1, "/me/ops.py", 10)


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ((BODY,), (BODY, BODY)),
        ((MINE, BODY), (MINE, BODY)),
        ((THEIRS, BODY), (BODY, BODY)),
        ((THEIRS, MINE, THEIRS, BODY), (MINE, BODY)),
        ((MINE, BODY, MAIN), (MINE, BODY)),
        ((MINE, MAIN), (MINE, MAIN)),  # the op's own line is not known: the outermost
        ((THEIRS,), None),
    ],
)
def test_the_innermost_line_of_their_own(stack: Any, expected: Any) -> None:
    assert of_op(stack, OP) == expected


@pytest.mark.parametrize(
    ("line", "stack", "expected"),
    [
        (11, (MINE, BODY, MAIN), (MINE, BODY)),
        (11, (BODY, BODY, MAIN), (BODY, BODY)),
        (13, (MINE, BODY, MAIN), (MINE, MINE)),  # a block of that name somewhere else
    ],
)
def test_a_block_stands_inside_a_function(line: int, stack: Any, expected: Any) -> None:
    assert of_op(stack, Op("python", "block", "b", "", "", 1, "/me/ops.py", line)) == expected


def test_the_stack_ends_where_opscope_called_the_operator() -> None:
    found: list[tuple[Place, ...]] = []

    def deep() -> None:
        found.append(stack_of(sys._getframe()))

    @custom_op
    def called() -> None:
        deep()

    with profile(host="python"):
        called()
    (stack,) = found
    assert [place.function.rpartition(".")[2] for place in stack] == ["deep", "called"]


def test_it_ends_there_too_where_no_host_stands_between() -> None:
    """The engine runs the body itself, here on the thread that pushed it."""
    found: list[tuple[Place, ...]] = []

    class Deep(nd.CustomOp):
        def forward(self, is_train: bool, req: list[str], ins: Any, outs: Any, aux: Any) -> None:
            found.append(stack_of(sys._getframe()))

    @nd.register("stack's end")
    class DeepProp(nd.CustomOpProp):
        def create_operator(self, *_: Any) -> nd.CustomOp:
            return Deep()

    nd.use("naive")
    try:
        nd.custom(nd.ones(1), op_type="stack's end")
    finally:
        nd.use()
    (stack,) = found
    assert [place.function.rpartition(".")[2] for place in stack] == ["forward"]


def test_in_opscope_itself_it_is_nobody_s_line() -> None:
    frames: list[FrameType | None] = []

    @custom_op
    def called() -> None:
        frames.append(sys._getframe(1))  # the wrapper

    called()
    assert stack_of(frames.pop()) == ()


def test_what_came_before_a_call_is_not_of_what_is_called() -> None:
    found: list[tuple[str, int]] = []

    def called(*args: object) -> None:
        frame, line = before(_frames[-1])
        found.append((frame.f_code.co_name if frame else "", line))

    _frames: list[FrameType] = []

    def caller() -> None:
        len([0] * 3)
        sys._getframe()
        follow()

    def follow() -> None:
        called()

    def trace(frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code is follow.__code__ and event == "call":
            _frames.append(frame)
            here, line = before(frame)
            found.append((here.f_code.co_name if here else "", line))

    traced = sys.gettrace()
    sys.settrace(trace)
    try:
        caller()
    finally:
        sys.settrace(traced)
    first = caller.__code__.co_firstlineno
    assert found[0] == (("caller", first + 2) if sys.version_info >= (3, 11) else ("follow", 0))
    assert found[1] == ("follow", 0)  # in the middle of a function it is that one's time
