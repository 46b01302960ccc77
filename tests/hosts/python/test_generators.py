"""Marked generators: current only while they run, suspended is `wait`, nothing looks different."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from tests.hosts.checks import Scene, parts

from opscope import custom_op
from opscope.model import Flag, Kind


@pytest.fixture
def consumed(scene: Scene) -> Callable[[], None]:
    """What a consumer does between two steps: an operator that must belong to nobody."""

    @custom_op("consumer")
    def consumer() -> None:
        scene.tick(100)

    return consumer


@custom_op
def talkative(log: list[Any]) -> Generator[int, Any, str]:
    number = 0
    while True:
        number += 1
        try:
            log.append((yield number))
        except KeyError as error:
            log.append(error)
        except GeneratorExit:
            log.append("closed")
            raise
        if number == 4:
            return "done"


def test_send_throw_and_return(scene: Scene) -> None:
    log: list[Any] = []
    error = KeyError("sent in")
    with scene:
        it = talkative(log)
        assert [next(it), it.send("a"), it.throw(error), it.send("b")] == [1, 2, 3, 4]
        with pytest.raises(StopIteration) as stop:
            it.send("c")
        assert stop.value.value == "done"
        assert list(it) == []
    assert log == ["a", error, "b", "c"]
    assert scene.call("talkative").flags == ()


def test_an_exception_inside_passes_unchanged(scene: Scene) -> None:
    error = OSError("inside")

    @custom_op("bad")
    def bad() -> Iterator[int]:
        yield 1
        scene.tick(2)
        raise error

    with scene:
        it = bad()
        next(it)
        with pytest.raises(OSError, match="inside") as caught:
            next(it)
    assert caught.value is error
    assert error.__context__ is None
    assert scene.call("bad").flags == ("failed",)
    assert scene.parts("bad") == {"wall": 2, "python": 2}


def test_an_exception_thrown_in_passes_unchanged(scene: Scene) -> None:
    with scene:
        it = talkative([])
        next(it)
        error = OSError("thrown in")
        with pytest.raises(OSError, match="thrown in") as caught:
            it.throw(error)
    assert caught.value is error
    assert scene.call("talkative").flags == ("failed",)


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


def test_never_begun_is_no_call(scene: Scene) -> None:
    with scene:
        talkative([]).close()
        talkative([])
    assert scene.calls() == []


def swallowing() -> Generator[int, None, str]:
    try:
        yield 1
    except GeneratorExit:
        return "closed"
    return "over"


def stubborn() -> Generator[int, None, None]:
    try:
        yield 1
    except GeneratorExit:
        yield 2


def outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except BaseException as error:
        return type(error), str(error)


@pytest.mark.parametrize("fn", [swallowing, stubborn])
@pytest.mark.parametrize("how", ["close", "throw"])
def test_what_a_generator_makes_of_its_end_is_up_to_it(
    fn: Callable[[], Generator[int, None, Any]], how: str, scene: Scene
) -> None:
    def end(it: Generator[int, None, Any]) -> object:
        next(it)
        return outcome(it.close if how == "close" else lambda: it.throw(GeneratorExit("x")))

    bare, marked = fn(), custom_op("marked")(fn)()
    with scene:
        assert end(marked) == end(bare)


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


def test_a_generator_looks_like_one_and_holds_nothing_longer(scene: Scene) -> None:
    class Big: ...

    @custom_op
    def items(first: Any) -> Iterator[Any]:
        """What it says."""
        del first
        yield Big()
        yield None

    assert inspect.isgeneratorfunction(items)
    assert (items.__name__, items.__doc__) == ("items", "What it says.")
    with scene:
        given = Big()
        seen = [weakref.ref(given)]
        it = items(given)
        seen.append(weakref.ref(next(it)))
        del given
        assert [ref() for ref in seen] == [None, None]
        sent = Big()
        seen.append(weakref.ref(sent))
        it.send(sent)
        del sent
        assert seen[2]() is None
        error = KeyError()
        error.mine = Big()  # type: ignore[attr-defined]
        seen.append(weakref.ref(error.mine))  # type: ignore[attr-defined]
        with pytest.raises(KeyError):
            it.throw(error)
        del error
    gc.collect()
    assert seen[3]() is None
