"""Marked functions of every sort: what a call's time was, whose it was, and what stays the same."""

from __future__ import annotations

import inspect
import pickle
import threading
from functools import partial

import pytest
from tests.hosts.checks import Scene, Turns, parts

from opscope import UsageError, custom_op


@custom_op
def at_top(a: int, /, b: int = 2, *rest: int, key: str = "k") -> str:
    """What it says."""
    return f"{a}{b}{rest}{key}"


class Things:
    @custom_op
    def method(self, scene: Scene) -> Things:
        scene.tick(7)
        return self

    @custom_op
    @staticmethod
    def static(scene: Scene) -> str:
        scene.tick(7)
        return "static"

    @staticmethod
    @custom_op
    def static_outside(scene: Scene) -> str:
        scene.tick(7)
        return "static"

    @custom_op
    @classmethod
    def of_class(cls, scene: Scene) -> type:
        scene.tick(7)
        return cls

    @classmethod
    @custom_op
    def of_class_outside(cls, scene: Scene) -> type:
        scene.tick(7)
        return cls

    def __call__(self, scene: Scene) -> str:
        scene.tick(7)
        return "called"

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


THINGS = Things()
CASES = {
    "method": (lambda scene: THINGS.method(scene), THINGS, "Things.method"),
    "static": (lambda scene: Things.static(scene), "static", "Things.static"),
    "static outside": (
        lambda scene: THINGS.static_outside(scene),
        "static",
        "Things.static_outside",
    ),
    "class": (lambda scene: Things.of_class(scene), Things, "Things.of_class"),
    "class outside": (lambda scene: THINGS.of_class_outside(scene), Things, None),
    "partial": (custom_op(partial(lambda scene, n: scene.tick(n), n=7)), None, "<lambda>"),
    "bound": (custom_op(partial(Things.__call__, THINGS)), "called", "Things.__call__"),
    "object": (custom_op(THINGS), "called", "Things"),
    "lambda": (custom_op(lambda scene: scene.tick(7)), None, "<lambda>"),
    "builtin": (lambda scene: custom_op(sum)(scene.tick(n) or n for n in (7,)), 7, "sum"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_sort_of_function(case: str, scene: Scene) -> None:
    fn, answer, name = CASES[case]
    with scene:
        assert fn(scene) == answer
    (row,) = scene.calls()
    assert parts(row) == {"wall": 7, "python": 7}
    assert row.flags == ()
    assert name in (None, row.op)


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


def test_a_marked_function_looks_like_the_function() -> None:
    assert str(inspect.signature(at_top)).endswith(
        "b: 'int' = 2, *rest: 'int', key: 'str' = 'k') -> 'str'"
    )
    assert (at_top.__name__, at_top.__doc__) == ("at_top", "What it says.")
    assert pickle.loads(pickle.dumps(at_top)) is at_top
    assert at_top(1, 3, 4, key="x") == "13(4,)x"
    with pytest.raises(TypeError):
        at_top(b=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("thing", [Things, 3, None, b"bytes", property(lambda self: 1)])
def test_what_cannot_be_marked(thing: object) -> None:
    with pytest.raises(UsageError):
        custom_op(thing)  # type: ignore[call-overload]
    with pytest.raises(UsageError):
        custom_op("name")(thing)  # type: ignore[type-var]
