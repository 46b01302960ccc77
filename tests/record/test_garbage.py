"""Garbage collection: a chore on the lane where it ran, and nobody's."""

from __future__ import annotations

import _thread
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.hosts.checks import Scene

from opscope import custom_op, profile
from opscope.analyse import calls
from opscope.model import Kind
from opscope.testing import ManualClock, assert_restored

COLLECTIONS = True


class Knot:
    """Garbage that only the collector finds; `last` is what its finalizer does."""

    def __init__(self, last: Callable[[], None]) -> None:
        self.me = self
        self.last = last

    def __del__(self) -> None:
        self.last()


@pytest.fixture(autouse=True, scope="module")
def _only_what_lasts_stays_frozen() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _by_hand() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # or each collection goes through all that the suite and its libraries hold
    gc.disable()
    yield
    gc.enable()


@custom_op("collects")
def collects(before: Callable[[], None], generation: int = 2) -> None:
    before()
    gc.collect(generation)
    before()


def names(scene: Scene) -> list[tuple[str, int, int]]:
    """(name, owner, duration) of the pauses."""
    return [
        (scene.session.names[row["name"]], int(row["owner"]), int(row["end_ns"] - row["start_ns"]))
        for row in scene.spans(Kind.RUNTIME)
    ]


@pytest.mark.parametrize("generation", [0, 1, 2])
def test_a_pause_in_a_call_is_runtime_and_not_its_python(scene: Scene, generation: int) -> None:
    with scene:
        Knot(lambda: scene.tick(1000))
        collects(lambda: scene.tick(5), generation)
    assert scene.parts("collects") == {"wall": 1010, "python": 10, "runtime": 1000}
    assert names(scene) == [(f"gc generation {generation}", 0, 1000)]
    assert scene.call("collects").flags == ()


def test_waiting_in_an_old_pause_is_no_python_either(scene: Scene) -> None:
    with scene:
        Knot(lambda: scene.idle(1000))
        collects(lambda: scene.tick(5))
    assert scene.parts("collects") == {"wall": 1010, "python": 10, "runtime": 1000}


def test_outside_a_call_it_is_recorded_too(scene: Scene) -> None:
    with scene:
        Knot(lambda: scene.tick(7))
        gc.collect(1)
    assert names(scene) == [("gc generation 1", 0, 7)]
    (row,) = scene.spans(Kind.RUNTIME)
    assert scene.session.lanes[row["lane"]].name == "MainThread"


def test_it_stands_on_the_lane_of_its_thread(scene: Scene) -> None:
    with scene:
        Knot(lambda: scene.tick(7))
        thread = threading.Thread(target=collects, args=(lambda: None,), name="other")
        thread.start()
        thread.join()
    (row,) = scene.spans(Kind.RUNTIME)
    assert scene.session.lanes[row["lane"]].name == "other"
    assert scene.call("collects").runtime_ns == 7


def test_a_thread_that_is_over_leaves_no_lane_to_the_next(scene: Scene) -> None:
    """A thread that recorded nothing, and then one that may have its ident."""
    over = threading.Event()
    idents: list[int] = []

    def first() -> None:
        idents.append(threading.get_ident())
        Knot(lambda: scene.tick(7))
        gc.collect()
        over.set()

    def second() -> None:
        idents.append(threading.get_ident())
        collects(lambda: None)

    with scene:
        _thread.start_new_thread(first, ())
        assert over.wait(60)
        recorder = scene.profile._recorder
        assert recorder is not None
        recorder.tell("tick")
        for _ in range(20):
            thread = threading.Thread(target=second, name="second")
            thread.start()
            thread.join()
            if idents[-1] == idents[0]:
                break
    (pause,) = scene.spans(Kind.RUNTIME)
    assert scene.session.lanes[pause["lane"]].name == "garbage collection"
    for call in scene.spans(Kind.CALL):
        lane = scene.session.lanes[call["lane"]]
        assert (lane.name, lane.thread > 0) == ("second", True)


def test_what_finalizers_do_belongs_to_nobody(scene: Scene, work: Callable[[int], int]) -> None:
    with scene:
        Knot(lambda: work(100) and None)
        collects(lambda: work(5) and None)
    # work ticks twice: once itself, and once in the operator `note`
    assert scene.owners("note") == [("collects",), (), ("collects",)]
    assert scene.parts("collects") == {"wall": 220, "python": 10, "sub": 10, "runtime": 200}


def test_a_generator_that_the_collector_closes_is_ended(scene: Scene) -> None:
    @custom_op("items")
    def items() -> Iterator[int]:
        try:
            yield 1
        finally:
            scene.tick(30)

    with scene, custom_op("around"):
        knot: list[Any] = [items()]
        next(knot[0])
        knot.append(knot)
        del knot
        gc.collect()
        collects(lambda: scene.tick(5))
    assert scene.owners("collects") == [("around",)]
    assert scene.call("items").flags == ()
    assert scene.parts("around") == {"wall": 40, "sub": 40}


def test_a_finalizer_that_collects_makes_no_second_pause(scene: Scene) -> None:
    def again() -> None:
        scene.tick(3)
        gc.collect()

    with scene:
        Knot(again)
        collects(lambda: None)
    assert names(scene) == [("gc generation 2", 0, 3)]


def test_frozen_objects_change_nothing(scene: Scene) -> None:
    with scene:
        gc.freeze()
        Knot(lambda: scene.tick(3))
        collects(lambda: None)
        gc.unfreeze()
    assert names(scene) == [("gc generation 2", 0, 3)]


def test_a_pause_in_a_pause_of_the_recording_is_not_seen(scene: Scene) -> None:
    with scene:
        scene.profile.pause()
        Knot(lambda: scene.tick(3))
        gc.collect()
        scene.profile.resume()
    assert names(scene) == []


def test_callbacks_of_the_program_stay_and_ours_goes(scene: Scene) -> None:
    class Awkward:
        def __call__(self, phase: str, info: dict[str, Any]) -> None:
            scene.tick(2)

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    before, mine = list(gc.callbacks), Awkward()
    with scene:
        gc.callbacks.insert(0, mine)
        gc.callbacks.append(mine)
        collects(lambda: None)
    assert [found is mine for found in gc.callbacks] == [True, *(False for _ in before), True]
    del gc.callbacks[0], gc.callbacks[-1]
    assert [id(found) for found in gc.callbacks] == [id(found) for found in before]
    # It begins after the first was told of the start, and ends before the last is told of the end.
    assert names(scene) == [("gc generation 2", 0, 4)]


def test_a_program_that_takes_our_callback_away_is_told(scene: Scene) -> None:
    before = list(gc.callbacks)
    with scene:
        del gc.callbacks[len(before) :]
        Knot(lambda: scene.tick(3))
        collects(lambda: None)
    assert names(scene) == []
    assert scene.parts("collects") == {"wall": 3, "python": 3}
    (note,) = scene.session.processes[0].notes
    assert "took opscope's callback out of gc.callbacks" in note


def test_a_callback_that_fails_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("no room")

    clock = ManualClock()
    with assert_restored(), profile(clock=clock) as run:
        recorder = run._recorder
        assert recorder is not None
        with custom_op("around"):
            with monkeypatch.context() as patch:
                patch.setattr(recorder, "here", fails)
                Knot(lambda: clock.tick(3))
                gc.collect()
            gc.collect()
            collects(lambda: clock.tick(1))
    session = run.session
    assert session.processes[0].broken == ("garbage collection: OSError: no room",)
    assert [row.path for row in calls(session)] == [("around",), ("around", "collects")]
    assert not (session.spans["kind"] == Kind.RUNTIME).any()
