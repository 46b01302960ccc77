"""The chain of open frames: what is current, and that nothing stays in it."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.hosts.checks import in_thread

from opscope.model import Flag, LinkKind, Phase
from opscope.record import Recorder, recorder_class, scope
from opscope.record.scope import Frame
from opscope.store import MemorySink
from opscope.testing import ManualClock


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A recorder, in a context that is empty before and after."""
    yield Recorder(MemorySink(), ManualClock())
    assert scope.held() is None
    assert not scope.adopted
    assert not scope._waiting


def rows(recorder: Recorder) -> dict[int, tuple[int, ...]]:
    return {row[0]: row for buffer in recorder.buffers for row in buffer.rows}


def test_nesting(recorder: Recorder) -> None:
    assert scope.current(recorder) is None
    assert scope.owner(recorder) == 0
    outer = scope.enter(recorder, 0)
    inner = scope.enter(recorder, 1, Phase.BACKWARD)
    assert scope.current(recorder) is inner
    scope.leave(inner, Flag.FAILED)
    assert scope.owner(recorder) == outer.call
    scope.leave(outer)
    found = rows(recorder)
    assert [found[frame.call][1] for frame in (outer, inner)] == [0, outer.call]
    assert found[inner.call][4:6] == (Phase.BACKWARD, Flag.FAILED)


def test_left_out_of_order(recorder: Recorder) -> None:
    frames = [scope.enter(recorder, number) for number in range(4)]
    for number in (1, 0, 3):
        scope.leave(frames[number])
    assert scope.current(recorder) is frames[2]
    scope.leave(frames[2])
    scope.leave(frames[2])
    assert len(rows(recorder)) == 4
    assert not any(scope.claim(frame) for frame in frames)


def test_its_end_has_begun_whoever_ended_it(recorder: Recorder) -> None:
    for ended_before in (False, True):
        frame = scope.enter(recorder, 0)
        assert not frame.left
        if ended_before:
            scope.claim(frame)
        scope.leave(frame)
        assert frame.left


def test_garbage_is_collected_by_one_thread_at_a_time() -> None:
    scope.collecting(True)
    try:
        for begins in (True, False):
            in_thread(scope.collecting, begins)
            assert scope.keeps_beside()
    finally:
        scope.collecting(False)
    assert not scope.keeps_beside()


def test_somebody_else_has_ended_it(recorder: Recorder) -> None:
    frame = scope.enter(recorder, 0)
    assert scope.claim(frame)
    assert not scope.claim(frame)
    scope.leave(frame)
    assert rows(recorder) == {}


def test_an_owner_that_is_known_better(recorder: Recorder) -> None:
    outer = scope.enter(recorder, 0)
    frames = [scope.enter(recorder, 1, under=owner) for owner in (0, outer.call)]
    for frame in (*reversed(frames), outer):
        scope.leave(frame)
    assert [rows(recorder)[frame.call][1] for frame in frames] == [0, outer.call]


def test_nobody_on_purpose_hides_who_is_around(recorder: Recorder) -> None:
    outer = scope.enter(recorder, 0)
    scope.push(Frame(recorder, outer, 0, Phase.NONE))
    assert scope.owner(recorder) == 0
    scope.push(outer)
    scope.leave(outer)


def test_other_recordings_are_looked_through(recorder: Recorder) -> None:
    other = Recorder(MemorySink(), ManualClock())
    outer = scope.enter(recorder, 0)
    inner = scope.enter(other, 0)
    assert scope.current(recorder) is outer
    assert scope.current(other) is inner
    other.closed = True
    last = scope.enter(recorder, 1)
    assert last.outer is outer
    scope.leave(last)
    scope.leave(inner)
    assert rows(other) == {}
    scope.leave(outer)


def test_closed_in_another_context(recorder: Recorder) -> None:
    frame = scope.enter(recorder, 0)

    def elsewhere() -> None:
        scope.leave(frame)
        frame.closed = True
        assert scope.held() is None

    contextvars.copy_context().run(elsewhere)
    assert scope.held() is frame
    assert scope.current(recorder) is None
    scope.leave(scope.enter(recorder, 0))
    assert scope.held() is None


def test_the_chain_does_not_grow(recorder: Recorder) -> None:
    """Blocks that end in other contexts stay in this one's chain, but not for ever."""
    elsewhere = contextvars.copy_context()
    longest, open_frame = 0, scope.enter(recorder, 0)
    for _ in range(50):
        frame = scope.enter(recorder, 0)
        frame.yielding = sys._getframe()  # as blocks in generators have it
        elsewhere.run(scope.leave, open_frame)
        open_frame.closed = True
        open_frame, length, walk = frame, 0, scope.held()
        while walk is not None:
            length, walk = length + 1, walk.outer
        longest = max(longest, length)
    scope.leave(open_frame)
    scope.push(None)
    assert longest <= 3


def test_the_chain_does_not_grow_by_tasks_that_each_start_the_next(recorder: Recorder) -> None:
    context = contextvars.copy_context()
    frames: list[Frame] = []

    def task() -> None:
        frame = scope.enter(recorder, 0)
        scope.push(frame.outer)  # suspended
        frame.outer = scope.link(frame)
        scope.push(frame)
        frames.append(frame)
        nonlocal context
        context = contextvars.copy_context()
        scope.leave(frame)

    for _ in range(5):
        context.run(task)
    found = rows(recorder)
    assert [found[frame.call][1] for frame in frames] == [0, *(f.call for f in frames[:-1])]
    assert len(list(scope._outwards(frames[-1]))) <= 3


def test_who_is_over_keeps_those_around_it_that_are_not(recorder: Recorder) -> None:
    outer = scope.enter(recorder, 0)
    done = [scope.enter(recorder, 1) for _ in range(3)]
    context = contextvars.copy_context()
    for frame in reversed(done):
        scope.leave(frame)

    def later() -> None:
        inner = scope.enter(recorder, 2)
        scope.push(inner.outer)
        assert scope.link(inner) is done[-1]
        assert [*scope._outwards(done[-1])] == [done[-1], outer]
        scope.push(inner)
        scope.leave(inner)
        assert scope.owner(recorder) == done[-1].call

    context.run(later)
    scope.leave(outer)


def test_a_step_that_is_found_inside_itself_is_not_linked_in_a_circle(
    recorder: Recorder,
) -> None:
    """Another thread may have taken it to be running, with a call inside, when it slept already."""
    outer = scope.enter(recorder, 0)
    step, inside = (Frame(recorder, outer, number, Phase.NONE) for number in (7, 8))
    inside.outer = step
    scope.adopted[threading.get_ident()] = (step, inside)
    assert scope.link() is inside
    assert scope.link(step) is outer
    for frame in (inside, step, outer):
        scope.pull(frame)


def test_even_a_circle_ends(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "_LONGEST", 10)
    other = Recorder(MemorySink(), ManualClock())
    one, two = (scope.enter(other, 0) for _ in range(2))
    one.outer = two
    assert scope.current(recorder) is None
    assert None in (one.outer, two.outer)  # cut, so it is walked once
    assert not scope.within(two, Frame(other, None, 0, Phase.NONE))
    scope.push(None)


def test_left_on_another_thread_its_cpu_time_is_unknown(recorder: Recorder) -> None:
    frame = scope.enter(recorder, 0)
    in_thread(scope.leave, frame)
    scope.pull(frame)
    assert rows(recorder)[frame.call][11] == -1


@pytest.mark.parametrize("method", ["here", "cpu", "end"])
def test_unlinked_also_when_the_recorder_fails(
    method: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError

    frame = scope.enter(recorder, 0)
    if recorder_class() is not Recorder:
        # Its methods are not looked up by name; what it comes back to Python for is.
        method = {"here": "_known_here", "cpu": "_counted_cpu", "end": "_wake_writer"}[method]
        recorder.plain_cpu = method != "_counted_cpu"
        for _ in range(8191):
            recorder.put((recorder.next_id(), *[0] * 11))
        if method == "_known_here":
            Recorder(MemorySink()).here()  # else it remembers the thread's buffer
    monkeypatch.setattr(recorder, method, fail)
    with pytest.raises(OSError):  # noqa: PT011
        scope.leave(frame)


def test_a_wait_is_of_one_thread(recorder: Recorder) -> None:
    frame = scope.enter(recorder, 0)
    start_ns = scope.wait_begin(frame)
    seen: list[bool] = []
    in_thread(lambda: seen.append(frame.waiting))
    assert (frame.waiting, seen) == (True, [False])
    inner = scope.enter(recorder, 1)
    assert not inner.waiting
    scope.leave(inner)
    scope.wait_end(frame, 2, start_ns)
    assert not frame.waiting
    scope.leave(frame)


def test_adopted_calls_are_current_in_every_context_of_their_thread(recorder: Recorder) -> None:
    outer, inner = (Frame(recorder, None, 7, Phase.NONE) for _ in range(2))
    inner.outer = outer
    empty = contextvars.copy_context()
    scope.adopted[threading.get_ident()] = (outer, inner)
    assert empty.run(scope.current, recorder) is inner
    entered = empty.run(scope.enter, recorder, 0)
    assert entered.outer is inner
    assert scope.current(recorder) is inner
    assert empty.run(scope.current, recorder) is entered
    others: list[Frame | None] = []
    in_thread(lambda: others.append(scope.current(recorder)))
    assert others == [None]
    empty.run(scope.leave, entered)
    scope.pull(outer)  # the outer one first
    assert inner.outer is None
    assert scope.current(recorder) is inner
    scope.pull(inner)
    assert scope.current(recorder) is None
    assert empty.run(scope.current, recorder) is None


def test_standing_aside_belongs_to_nobody(recorder: Recorder) -> None:
    assert scope.stand_aside() is None
    outer = scope.enter(recorder, 0)
    aside = scope.stand_aside()
    assert aside is outer
    assert scope.stand_aside() is None
    assert scope.current(recorder) is None
    assert scope.owner(recorder) == 0
    inside = scope.enter(recorder, 1)
    assert scope.current(recorder) is inside
    deeper = scope.enter(recorder, 1)
    for frame in (deeper, inside):
        scope.leave(frame)
    assert scope.held() is outer
    elsewhere: list[Frame | None] = []
    context = contextvars.copy_context()
    in_thread(lambda: elsewhere.append(context.run(scope.current, recorder)))
    assert elsewhere == [outer]
    scope.step_back(aside)
    assert scope.current(recorder) is outer
    scope.leave(outer)
    found = rows(recorder)
    assert [found[frame.call][1] for frame in (outer, inside, deeper)] == [0, 0, inside.call]


def test_finalizers_that_enter_calls_wherever_garbage_is_collected(recorder: Recorder) -> None:
    """Before CPython 3.12 that may be in the middle of setting a context variable."""

    class Knot:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            scope.leave(scope.enter(recorder, 0))

    before = gc.get_threshold()
    gc.set_threshold(2, 2, 2)
    try:
        for _ in range(3000):
            Knot()
            scope.leave(scope.enter(recorder, 0))
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(rows(recorder)) == 6000
    assert gc.isenabled()


def test_what_was_not_recorded_is_not_linked(recorder: Recorder) -> None:
    """A span that began once recording had ended has the id 0."""
    for source, target in ((0, 1), (2, 0), (2, 1)):
        recorder.link(LinkKind.BACKWARD, source, target)
    assert list(recorder.links) == [(LinkKind.BACKWARD, 2, 1)]
