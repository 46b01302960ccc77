"""Finding calls in flight, and ending those that are when recording ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.hosts.checks import Scene

from opscope.hosts.python import custom_op
from opscope.model import Flag, Phase
from opscope.record import InFlight, Recorder, adopt, on_stacks, scope
from opscope.record.adopt import settle
from opscope.record.scope import Frame
from opscope.store import MemorySink
from opscope.testing import ManualClock, assert_restored


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder(MemorySink(), ManualClock())
    with assert_restored():
        yield made


def flight(name: int, depth: int, frame: Frame | None = None, thread: int = 0) -> InFlight:
    here = thread or threading.get_ident()
    return InFlight(here, depth, name, Phase.NONE, frame, lambda frame: None)


class Finder:
    """Finds one call, and from the second time on nothing, as if it had ended meanwhile."""

    def __init__(self, thread: int) -> None:
        self.bound: list[Frame] = []
        self.thread = thread

    def __call__(self) -> list[InFlight]:
        if self.bound:
            return []
        return [InFlight(self.thread, 1, 0, Phase.NONE, None, self.bound.append)]


def test_a_call_that_ends_meanwhile_is_let_go(recorder: Recorder) -> None:
    finder = Finder(threading.main_thread().ident or 0)
    recorder.in_flight.append(finder)
    adopt(recorder)
    scope.push(None)
    (frame,) = finder.bound
    assert frame.left
    assert frame.closed
    assert not scope.adopted
    assert recorder.opened == {}
    (row,) = (row for buffer in recorder.buffers for row in buffer.rows)
    assert row[5] == Flag.CLAMPED | Flag.INCOMPLETE


def test_a_call_whose_end_has_begun_is_not_taken_in(recorder: Recorder) -> None:
    frame = Frame(Recorder(MemorySink(), ManualClock()), None, 3, Phase.NONE)
    frame.left = True
    recorder.in_flight.append(lambda: [flight(0, 1, frame)])
    adopt(recorder)
    assert recorder.opened == {}


def test_a_finder_that_fails_is_named_and_the_others_are_asked(recorder: Recorder) -> None:
    def fails() -> list[InFlight]:
        raise OSError("cannot find")

    frame = Frame(recorder, None, 3, Phase.NONE)
    recorder.in_flight += [fails, lambda: [flight(0, 1, frame)]]
    adopt(recorder)
    assert recorder.broken == ["finding calls in flight: OSError: cannot find"]


def finds_new(depth: int, made: list[Frame]) -> InFlight:
    """A call without a frame, until it is given one."""
    here = threading.get_ident()
    return InFlight(here, depth, 1, Phase.NONE, made[-1] if made else None, made.append)


def test_a_known_call_inside_a_new_one_stays_the_inner_one(recorder: Recorder) -> None:
    known = scope.enter(recorder, 0)
    made: list[Frame] = []
    recorder.in_flight.append(lambda: [flight(0, 2, known), finds_new(1, made)])
    adopt(recorder)
    assert scope.current(recorder) is known
    scope.leave(known)
    assert scope.current(recorder) is made[0]
    scope.leave(made[0])


def test_a_new_call_inside_a_known_one(recorder: Recorder) -> None:
    known, made = scope.enter(recorder, 0), list[Frame]()
    recorder.in_flight.append(lambda: [flight(0, 1, known), finds_new(2, made)])
    adopt(recorder)
    assert scope.held() is scope.current(recorder) is made[0]
    assert recorder.opened[made[0].call][1] == known.call
    scope.leave(made[0])
    assert scope.current(recorder) is known
    scope.leave(known)


def test_what_an_earlier_recording_left_is_forgotten(recorder: Recorder) -> None:
    earlier = Recorder(MemorySink(), ManualClock())
    gone, left = (Frame(earlier, None, number, Phase.NONE) for number in (3, 4))
    scope.adopted[12345] = (gone,)
    made = [left]
    recorder.in_flight.append(lambda: [finds_new(1, made)])
    adopt(recorder)
    assert made[0] is left
    assert left.recorder is earlier  # that one is its thread's
    assert scope.adopted == {threading.get_ident(): (made[1],)}
    scope.leave(made[1])


def test_settled_in_order_with_the_cpu_time_so_far(recorder: Recorder) -> None:
    clock = recorder.clock
    assert isinstance(clock, ManualClock)
    outer = scope.enter(recorder, 0)
    clock.tick(5)
    inner = scope.enter(recorder, 1)
    clock.tick(7)
    clock.idle(2)
    recorder.in_flight.append(lambda: [flight(0, 1, outer), flight(1, 2, inner)])
    settle(recorder)
    assert scope.held() is None
    assert recorder.opened == {}
    rows = {row[0]: row for buffer in recorder.buffers for row in buffer.rows}
    assert [rows[f.call][9] - rows[f.call][8] for f in (outer, inner)] == [14, 9]
    assert [rows[f.call][11] for f in (outer, inner)] == [12, 7]
    assert {row[5] for row in rows.values()} == {Flag.INCOMPLETE}
    scope.leave(inner)
    scope.leave(outer)
    assert sum(len(buffer.rows) for buffer in recorder.buffers) == 2


def test_the_stacks_of_all_threads() -> None:
    inside, go = threading.Event(), threading.Event()

    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        else:
            inside.set()
            go.wait(30)

    thread = threading.Thread(target=deep, args=(2,))
    thread.start()
    inside.wait(30)
    found = [(ident, depth) for ident, depth, _ in on_stacks(frozenset((deep.__code__,)))]
    go.set()
    thread.join()
    assert [ident for ident, _ in found] == [thread.ident] * 3
    depths = [depth for _, depth in found]
    assert depths == list(range(depths[0], depths[0] + 3))


def test_a_call_that_is_about_to_begin_is_left_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording begins when its thread has seen that, and has not got its frame yet."""
    scene, enter, found = Scene(), scope.enter, []

    @custom_op("late")
    def late() -> None:
        scene.tick(1)

    def slow_enter(recorder: Recorder, *args: Any, **kwargs: Any) -> Frame:
        adopt(recorder)
        found.append(len(recorder.opened))
        return enter(recorder, *args, **kwargs)

    late_items = custom_op("late items")(lambda: (yield 1))
    with scene:
        monkeypatch.setattr(scope, "enter", slow_enter)
        late()
        assert list(late_items()) == [1]
    assert found == [0, 0]
    assert len(scene.calls()) == 2
