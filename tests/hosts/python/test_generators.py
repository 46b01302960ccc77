"""Marked generators: current only while they run; suspended is `wait`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from tests.hosts.checks import Scene, parts

from opscope import custom_op
from opscope.model import Flag, Kind


@pytest.mark.parametrize("how", ["close", "drop"])
def test_closed_early(how: str, scene: Scene, consumed: Callable[[], None]) -> None:
    @custom_op("early")
    def early() -> Iterator[int]:
        try:
            yield 1
        finally:
            scene.tick(5)
            with custom_op("tidying"):
                scene.tick(1)

    with scene:
        it = early()
        next(it)
        consumed()
        if how == "close":
            it.close()
        del it
        gc.collect()
        consumed()
    assert scene.parts("early") == {"wall": 106, "python": 5, "sub": 1, "wait": 100}
    assert scene.call("early").flags == ()
    assert scene.call("tidying").path == ("early", "tidying")
    assert {row.path for row in scene.calls("consumer")} == {("consumer",)}


def test_suspension_is_wait_and_the_consumer_stays_outside(
    scene: Scene, consumed: Callable[[], None]
) -> None:
    @custom_op("items")
    def items() -> Iterator[int]:
        for number in range(3):
            scene.tick(10)
            with custom_op("part"):
                scene.tick(number)
            yield number
        scene.idle(4)

    with scene:
        for _ in items():
            consumed()
    assert scene.parts("items") == {"wall": 337, "python": 30, "sub": 3, "wait": 304}
    assert {row.path for row in scene.calls("consumer")} == {("consumer",)}
    assert {row.path for row in scene.calls("part")} == {("items", "part")}
    assert scene.named(Kind.WAIT) == [("suspended", "items", 100)] * 3
    assert (scene.spans(Kind.WAIT)["flags"] == Flag.SUSPENDED).all()


def test_three_interleaved_inside_a_call(scene: Scene) -> None:
    @custom_op("items")
    def items(ns: int) -> Iterator[int]:
        for _ in range(3):
            with custom_op(f"step {ns}"):
                scene.tick(ns)
            yield ns

    @custom_op("merge")
    def merge() -> None:
        for _ in zip(items(1), items(10), items(100), strict=True):
            with custom_op("between"):
                scene.tick(1000)

    with scene:
        merge()
    assert scene.parts("merge") == {"wall": 3333, "sub": 3333}
    assert {row.path for row in scene.calls("between")} == {("merge", "between")}
    for row, (wall, sub) in zip(
        scene.calls("items"), ((3333, 3), (3332, 30), (3322, 300)), strict=True
    ):
        assert parts(row) == {"wall": wall, "sub": sub, "wait": wall - sub}
    for ns in (1, 10, 100):
        assert {row.path for row in scene.calls(f"step {ns}")} == {("merge", "items", f"step {ns}")}


def test_yield_from_a_marked_generator(scene: Scene, consumed: Callable[[], None]) -> None:
    @custom_op("inner")
    def inner() -> Generator[str, str, str]:
        scene.tick(1)
        answer = yield "question"
        scene.tick(2)
        return answer

    @custom_op("outer")
    def outer() -> Generator[str, str, str]:
        scene.tick(10)
        answer = yield from inner()
        scene.tick(20)
        return answer

    with scene:
        it = outer()
        assert next(it) == "question"
        consumed()
        with pytest.raises(StopIteration, match="answer"):
            it.send("answer")
    assert scene.call("inner").path == ("outer", "inner")
    assert scene.parts("inner") == {"wall": 103, "python": 3, "wait": 100}
    outer_row = scene.call("outer")
    assert (outer_row.wall_ns, outer_row.python_ns) == (133, 30)
    assert scene.call("consumer").parent is None


def test_resumed_on_another_thread(scene: Scene, consumed: Callable[[], None]) -> None:
    @custom_op("moving")
    def moving() -> Iterator[int]:
        scene.tick(1)
        yield 1
        scene.tick(20)
        with custom_op("away"):
            scene.tick(3)
        yield 2
        scene.tick(4)

    def step() -> None:
        assert next(it) == 2
        consumed()

    with scene:
        it = moving()
        next(it)
        thread = Thread(target=step)
        thread.start()
        thread.join()
        assert list(it) == []
    row = scene.call("moving")
    assert parts(row) == {"wall": 128, "python": 5, "wait": 123}
    assert (row.elsewhere_ns, row.elsewhere_python_ns) == (23, 20)
    assert scene.call("away").path == ("moving", "away")
    assert scene.call("consumer").parent is None
    assert ("moving", "moving", 23) in scene.named(Kind.TASK)


def test_resumed_in_a_call_on_another_thread(scene: Scene) -> None:
    @custom_op("moving")
    def moving() -> Iterator[int]:
        scene.tick(1)
        yield 1
        scene.tick(20)
        yield 2

    @custom_op("there")
    def there(it: Iterator[int]) -> None:
        scene.tick(100)
        next(it)
        scene.tick(200)

    @custom_op("here")
    def here() -> None:
        it = moving()
        next(it)
        scene.tick(1000)
        thread = Thread(target=there, args=(it,))
        thread.start()
        thread.join()
        scene.tick(2000)

    with scene:
        here()
    assert scene.parts("here") == {"wall": 3321, "python": 3000, "sub": 1, "wait": 320}
    assert scene.parts("there") == {"wall": 320, "python": 300, "sub": 20}
    assert scene.parts("moving") == {"wall": 3321, "python": 1, "wait": 3320}


def test_begun_here_and_ended_elsewhere(scene: Scene) -> None:
    @custom_op("moving")
    def moving() -> Iterator[int]:
        scene.tick(1)
        yield 1
        scene.tick(20)

    with scene:
        it = moving()
        next(it)
        thread = Thread(target=list, args=(it,))
        thread.start()
        thread.join()
    assert scene.parts("moving") == {"wall": 21, "python": 1, "wait": 20}
    assert ("suspended", "moving", 20) in scene.named(Kind.WAIT)
    assert scene.call("moving").elsewhere_python_ns == 20


def test_as_a_context_manager(scene: Scene, consumed: Callable[[], None]) -> None:
    @contextmanager
    @custom_op("managed")
    def managed() -> Iterator[str]:
        scene.tick(1)
        try:
            yield "given"
        except KeyError:
            scene.tick(2)

    with scene:
        with managed() as given:
            assert given == "given"
            consumed()
        with managed():
            raise KeyError
        with pytest.raises(OSError, match="x"), managed():
            raise OSError("x")
        with managed(), pytest.raises(StopIteration):
            raise StopIteration
    assert [row.python_ns for row in scene.calls("managed")] == [1, 3, 1, 1]
    assert [row.flags for row in scene.calls("managed")] == [(), (), ("failed",), ()]
    assert scene.call("consumer").parent is None
