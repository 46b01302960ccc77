"""Calls that run when recording begins, pauses, goes on or ends: each has its row and says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.hosts.checks import Scene, parts
from tests.hosts.python.ways import Act, Sub, Way, finish, in_a_generator, way

from opscope import custom_op
from opscope.model import Kind
from opscope.testing import assert_restored


@way
def test_it_starts(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    def body() -> None:
        sub(1)
        scene.tick(10)
        act(scene.profile.start)
        scene.tick(3)
        scene.idle(2)
        sub(4)

    with assert_restored():
        way(scene, body)
        sub(7)
        finish(scene)
    (row,) = scene.calls("it")
    assert "clamped" in row.flags
    assert "incomplete" not in row.flags
    waited = 1002 if way is in_a_generator else 2
    assert parts(row) == {"wall": 7 + waited, "python": 3, "wait": waited, "sub": 4}
    assert [row.path for row in scene.calls("sub")] == [("it", "sub"), ("sub",)]


@way
def test_it_stops(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    def body() -> None:
        scene.tick(3)
        sub(4)
        scene.idle(2)
        act(scene.profile.stop)
        sub(7)
        scene.tick(9)

    with assert_restored():
        scene.profile.start()
        way(scene, body)
        finish(scene)
    (row,) = scene.calls("it")
    assert "incomplete" in row.flags
    waited = 1002 if way is in_a_generator else 2
    assert parts(row) == {"wall": 7 + waited, "python": 3, "wait": waited, "sub": 4}
    assert [row.path for row in scene.calls("sub")] == [("it", "sub")]


@way
def test_it_pauses_and_goes_on(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    def body() -> None:
        scene.tick(1)
        sub(2)
        act(scene.profile.pause)
        scene.tick(100)
        scene.idle(200)
        sub(400)
        act(scene.profile.resume)
        scene.idle(4)
        sub(8)
        scene.tick(16)

    with assert_restored():
        scene.profile.start()
        way(scene, body)
        finish(scene)
    (row,) = scene.calls("it")
    assert "paused" in row.flags
    waited = 2004 if way is in_a_generator else 4
    assert parts(row) == {"wall": 27 + waited, "python": 17, "wait": waited, "sub": 10}
    assert [(row.wall_ns, row.path) for row in scene.calls("sub")] == [
        (2, ("it", "sub")),
        (8, ("it", "sub")),
    ]


@way
def test_it_begins_in_a_pause(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    def body() -> None:
        scene.tick(100)
        act(scene.profile.resume)
        scene.tick(3)
        sub(4)

    with assert_restored():
        scene.profile.start()
        with custom_op("around"):
            scene.tick(1)
            scene.profile.pause()
            way(scene, body)
            sub(5)
        finish(scene)
    (row,) = scene.calls("it")
    assert row.path == ("around", "it")
    assert "clamped" in row.flags
    waited = {"wait": 1000} if way is in_a_generator else {}
    assert parts(row) == {"wall": 7 + sum(waited.values()), "python": 3, "sub": 4} | waited
    assert [row.path for row in scene.calls("sub")] == [("around", "it", "sub"), ("around", "sub")]
    # While a generator slept the call around it was what only waited.
    assert scene.parts("around") == {"wall": row.wall_ns + 6, "python": 1, "sub": 12} | waited


def test_it_is_suspended_when_recording_stops(scene: Scene, act: Act) -> None:
    @custom_op("items")
    def items() -> Iterator[int]:
        scene.tick(10)
        yield 1

    @custom_op("around")
    def around(it: Iterator[int]) -> None:
        next(it)
        scene.tick(100)
        scene.idle(20)
        act(scene.profile.stop)

    with assert_restored():
        scene.profile.start()
        around(items())
        finish(scene)
    assert scene.parts("items") == {"wall": 130, "python": 10, "wait": 120}
    assert scene.parts("around") == {"wall": 130, "python": 100, "sub": 10, "wait": 20}
    # On another thread the recording may also see that the call began to wait for that one.
    waits = [wait for wait in scene.named(Kind.WAIT) if wait != ("wait", "around", 0)]
    assert waits == [("suspended", "items", 120)]


def test_nested_calls(scene: Scene, act: Act, sub: Sub) -> None:
    @custom_op("deep")
    def deep(depth: int) -> None:
        scene.tick(10)
        if depth:
            with custom_op("block"):
                deep(depth - 1)
        else:
            act(scene.profile.start)
            sub(1)
        scene.tick(depth + 1)

    with assert_restored():
        deep(2)
        finish(scene)
    assert [len(row.path) for row in scene.calls("deep")] == [1, 3, 5]
    assert [row.python_ns for row in scene.calls("deep")] == [3, 2, 1]
    assert [row.wall_ns for row in scene.calls("block")] == [4, 2]
    assert len(scene.call("sub").path) == 6
    assert {row.flags for row in scene.calls()} == {("clamped",), ()}


def test_suspended_when_it_starts_and_when_it_stops(scene: Scene) -> None:
    @custom_op("items")
    def items() -> Iterator[None]:
        for _ in range(3):
            scene.tick(5)
            yield

    with assert_restored():
        early, late = items(), items()
        next(early)
        scene.profile.start()
        next(late)
        scene.idle(100)
        next(early)
        finish(scene)
        assert [list(early), list(late)] == [[None], [None, None]]
    second, first = scene.calls("items")
    assert parts(first) == {"wall": 5, "python": 5}
    assert first.flags == ("incomplete", "clamped")
    assert parts(second) == {"wall": 110, "python": 5, "wait": 105}
    assert second.flags == ("incomplete",)


def test_an_exception_leaves_a_call_that_was_found_running(scene: Scene) -> None:
    @custom_op("raises")
    def raises() -> None:
        scene.profile.start()
        scene.tick(1)
        raise KeyError

    with assert_restored():
        with pytest.raises(KeyError):
            raises()
        finish(scene)
    assert scene.call("raises").flags == ("failed", "clamped")
