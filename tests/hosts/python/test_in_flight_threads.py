"""Calls found running on other threads, and what begins inside them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.hosts.checks import Scene, Turns
from tests.hosts.python.ways import Sub, finish

from opscope import custom_op
from opscope.model import Kind
from opscope.record import scope
from opscope.testing import assert_restored


def test_calls_of_many_threads_at_once(scene: Scene) -> None:
    """Each thread is in a call within a call when recording begins, and starts another."""
    turn = Turns()
    inside = threading.Barrier(9)
    begun = threading.Event()

    @custom_op("inner")
    def inner(number: int) -> None:
        inside.wait(30)
        assert begun.wait(30)
        with turn(number), custom_op("new"):
            scene.tick(number)

    @custom_op("outer")
    def outer(number: int) -> None:
        inner(number)

    threads = [threading.Thread(target=outer, args=(number,)) for number in range(8)]
    with assert_restored():
        for thread in threads:
            thread.start()
        inside.wait(30)
        scene.profile.start()
        begun.set()
        for thread in threads:
            thread.join()
        finish(scene)
    assert [row.wall_ns for row in scene.calls("new")] == list(range(8))
    assert {row.path for row in scene.calls("new")} == {("outer", "inner", "new")}
    assert len({row.lane for row in scene.calls("outer")}) == 8


def test_what_begins_in_a_pause_inside_a_task_belongs_to_its_owner(scene: Scene, sub: Sub) -> None:
    turn = Turns()

    def work() -> None:
        block = custom_op("inside")
        with turn(1):
            block.__enter__()
        with turn(3):
            sub(3)
            block.__exit__(None, None, None)

    @custom_op("starts")
    def starts() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        with turn(0):
            scene.profile.pause()
        with turn(2):
            scene.profile.resume()
        thread.join()

    with assert_restored():
        scene.profile.start()
        starts()
        finish(scene)
    assert scene.call("sub").path == ("starts", "inside", "sub")
    assert scene.named(Kind.TASK)[0][1] == "starts"


def test_what_a_found_call_starts_belongs_to_it(scene: Scene, sub: Sub) -> None:
    async def child() -> None:
        sub(1)

    @custom_op("work")
    async def work() -> None:
        scene.profile.start()
        await asyncio.gather(asyncio.create_task(child()), asyncio.to_thread(sub, 2))

    with assert_restored():
        asyncio.run(work())
        finish(scene)
    assert [row.path for row in scene.calls("sub")] == [("work", "sub")] * 2


def test_found_at_the_start_and_found_after_a_pause(scene: Scene, sub: Sub) -> None:
    turn = Turns()

    @custom_op("inner")
    def inner() -> None:
        with turn(3):
            pass
        with turn(5):
            scene.tick(1)

    @custom_op("outer")
    def outer() -> None:
        for number in (0, 2):
            with turn(number):
                pass
        inner()
        sub(2)

    thread = threading.Thread(target=outer)
    with assert_restored():
        thread.start()
        with turn(1):
            scene.profile.start()
            scene.profile.pause()
        with turn(4):
            scene.profile.resume()
        thread.join()
        finish(scene)
    assert scene.parts("inner") == {"wall": 1, "python": 1}
    assert scene.call("inner").path == ("outer", "inner")
    assert scene.call("sub").path == ("outer", "sub")


def test_a_known_generator_stepped_by_a_call_that_was_found(scene: Scene, sub: Sub) -> None:
    @custom_op("items")
    def items() -> Iterator[None]:
        for ns in (1, 2):
            sub(ns)
            yield

    @custom_op("found")
    def found(it: Iterator[None]) -> None:
        resume = threading.Thread(target=scene.profile.resume)
        resume.start()
        resume.join()
        next(it)
        sub(3)

    with assert_restored():
        scene.profile.start()
        it = items()
        next(it)
        scene.profile.pause()
        found(it)
        assert list(it) == []
        finish(scene)
    assert [row.path for row in scene.calls("sub")] == [
        ("items", "sub"),
        ("items", "sub"),
        ("found", "sub"),
    ]


def test_recording_ends_in_a_pause_while_another_thread_is_inside(scene: Scene) -> None:
    """How much of the CPU time until then is of the pause cannot be told."""
    turn = Turns()

    @custom_op("it")
    def it() -> None:
        with turn(0):
            scene.tick(5)
        with turn(2):
            pass

    thread = threading.Thread(target=it)
    with assert_restored():
        scene.profile.start()
        thread.start()
        with turn(1):
            scene.profile.pause()
            scene.tick(100)
            finish(scene)
        thread.join()
    assert scene.parts("it") == {"wall": 5, "untracked": 5}


def test_found_when_its_function_has_returned_already(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(dict):  # type: ignore[type-arg]
        """Lets recording begin at the worst moment: when a call has looked, and not yet ended."""

        def __bool__(self) -> bool:
            if not scene.profile._recorder:
                thread = threading.Thread(target=scene.profile.start)
                thread.start()
                thread.join()
            return False

    monkeypatch.setattr(scope, "late", Late())
    with assert_restored():
        assert custom_op("over")(lambda: 3)() == 3
        assert dict(scope.late) == {}
        finish(scene)
    assert scene.calls() == []
