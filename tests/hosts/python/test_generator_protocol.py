"""Marked generators do for their consumer exactly what the bare ones do."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from tests.hosts.checks import Scene

from opscope import custom_op


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
