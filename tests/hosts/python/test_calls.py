"""What the time of a call was and whose call it was: nested, recursive, failing, on threads."""

from __future__ import annotations

import threading

import pytest
from tests.hosts.checks import Scene, Turns, parts

from opscope import custom_op


def test_nested_calls_share_their_time_exactly(scene: Scene) -> None:
    inner = custom_op("inner")(lambda: (scene.tick(20), scene.idle(3)))

    @custom_op("outer")
    def outer() -> None:
        scene.tick(10)
        inner()
        scene.idle(5)
        scene.tick(1)

    with scene:
        outer()
        inner()
    assert scene.parts("outer") == {"wall": 39, "python": 11, "sub": 23, "wait": 5}
    first, second = scene.calls("inner")
    assert parts(first) == parts(second) == {"wall": 23, "python": 20, "wait": 3}
    assert (first.path, second.path) == (("outer", "inner"), ("inner",))


def test_recursion_three_deep(scene: Scene) -> None:
    @custom_op("down")
    def down(depth: int) -> None:
        scene.tick(depth)
        if depth > 1:
            down(depth - 1)

    with scene:
        down(3)
    assert [parts(row) for row in scene.calls("down")] == [
        {"wall": 6, "python": 3, "sub": 3},
        {"wall": 3, "python": 2, "sub": 1},
        {"wall": 1, "python": 1},
    ]
    assert [len(row.path) for row in scene.calls("down")] == [1, 2, 3]


def test_an_exception_passes_unchanged_and_is_flagged(scene: Scene) -> None:
    error = KeyError("mine")

    @custom_op("bad")
    def bad() -> None:
        scene.tick(1)
        raise error

    @custom_op("careful")
    def careful() -> None:
        with pytest.raises(KeyError) as caught:
            bad()
        assert caught.value is error
        after()

    after = custom_op("after")(lambda: scene.tick(2))
    with scene:
        careful()
        with pytest.raises(KeyError) as caught:
            bad()
        assert caught.value is error
        assert error.__context__ is None
        after()
    assert [row.flags for row in scene.calls("bad")] == [("failed",)] * 2
    assert scene.call("careful").flags == ()
    assert [row.path for row in scene.calls("after")] == [("careful", "after"), ("after",)]


def test_two_threads_call_the_same_operator(scene: Scene) -> None:
    turn = Turns()

    @custom_op("shared")
    def shared(first: int) -> None:
        with turn(first):
            scene.tick(10)
        with turn(first + 2):
            scene.tick(5)

    with scene:
        threads = [threading.Thread(target=shared, args=(n,)) for n in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = scene.calls("shared")
    assert [row.python_ns for row in rows] == [15, 15]
    assert len({row.lane for row in rows}) == 2
    assert {row.path for row in rows} == {("shared",)}


def test_two_hundred_calls_in_flight(scene: Scene) -> None:
    gate = threading.Barrier(200)

    @custom_op("many")
    def many() -> None:
        gate.wait(60)
        scene.tick(1)

    with scene:
        threads = [threading.Thread(target=many) for _ in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = scene.calls("many")
    assert [row.python_ns for row in rows] == [1] * 200
    assert len({row.lane for row in rows}) == 200
