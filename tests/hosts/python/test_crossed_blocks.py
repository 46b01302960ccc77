"""`with custom_op("x")` in generators: a `yield` that crosses it leaks nothing and is told."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread

import pytest
from tests.hosts.checks import Scene

from opscope import custom_op
from opscope.hosts.python import block as blocks


def consumed(scene: Scene) -> None:
    """What a consumer does between two steps: an operator that belongs to nobody."""
    with custom_op("consumer"):
        scene.tick(100)


def test_a_yield_inside_leaks_nothing_and_is_flagged(scene: Scene) -> None:
    def items() -> Iterator[int]:
        with custom_op("crossed block"):
            scene.tick(1)
            yield 1
            with custom_op("inner"):
                scene.tick(2)
            yield 2

    with scene:
        for _ in items():
            consumed(scene)
    assert [row.path for row in scene.calls("consumer")] == [("consumer",)] * 2
    assert scene.call("inner").path == ("crossed block", "inner")
    assert scene.call("crossed block").flags == ("crossed",)
    assert scene.call("inner").flags == ()


def test_in_a_marked_generator(scene: Scene) -> None:
    @custom_op("items")
    def items() -> Iterator[int]:
        with custom_op("crossed block"):
            yield 1
            with custom_op("inner"):
                scene.tick(2)
            yield 2
        with custom_op("inner"):
            scene.tick(3)

    with scene:
        for _ in items():
            consumed(scene)
    assert {row.path for row in scene.calls("consumer")} == {("consumer",)}
    assert [row.path for row in scene.calls("inner")] == [
        ("items", "crossed block", "inner"),
        ("items", "inner"),
    ]
    assert scene.call("crossed block").flags == ("crossed",)
    assert scene.call("items").flags == ()


def test_inside_a_call_the_consumer_is_the_call(scene: Scene) -> None:
    def items() -> Iterator[int]:
        with custom_op("crossed block"):
            yield 1

    @custom_op("loop")
    def loop() -> None:
        for _ in items():
            consumed(scene)

    with scene:
        loop()
    assert scene.call("consumer").path == ("loop", "consumer")
    assert scene.call("crossed block").path == ("loop", "crossed block")


def test_three_interleaved(scene: Scene) -> None:
    def items(name: str) -> Iterator[None]:
        with custom_op(name):
            for number in range(3):
                with custom_op(f"in {name}"):
                    scene.tick(number)
                yield

    with scene:
        for _ in zip(items("a"), items("b"), items("c"), strict=True):
            consumed(scene)
    for name in "abc":
        assert {row.path for row in scene.calls(f"in {name}")} == {(name, f"in {name}")}
        assert len(scene.calls(f"in {name}")) == 3
    assert {row.path for row in scene.calls("consumer")} == {("consumer",)}


@pytest.mark.parametrize("how", ["close", "drop", "throw"])
def test_a_generator_that_ends_early(how: str, scene: Scene) -> None:
    def items() -> Generator[int]:
        with custom_op("early"):
            yield 1

    with scene:
        it = items()
        next(it)
        scene.idle(5)
        if how == "throw":
            with pytest.raises(KeyError):
                it.throw(KeyError())
        elif how == "close":
            it.close()
        del it
        gc.collect()
        consumed(scene)
    early = scene.call("early")
    assert early.wall_ns == 5
    assert early.flags == (("failed",) if how == "throw" else ()) + ("crossed",)
    assert scene.call("consumer").parent is None


def test_a_generator_that_stands_still_at_the_end(scene: Scene) -> None:
    def items() -> Iterator[int]:
        with custom_op("still open"):
            scene.tick(1)
            yield 1

    with scene:
        it = items()
        next(it)
        consumed(scene)
    assert list(it) == []
    assert scene.call("still open").flags == ("incomplete", "crossed")
    assert scene.call("consumer").parent is None


def test_a_yield_that_is_not_inside_does_not_cross(scene: Scene) -> None:
    def items() -> Iterator[int]:
        with custom_op("not crossed"):
            scene.tick(1)
        try:
            with custom_op("not crossed"):
                if scene:
                    raise KeyError
                yield 0  # never reached
        except KeyError:
            pass
        yield 1

    with scene:
        list(items())
    assert [row.flags for row in scene.calls("not crossed")] == [(), ("failed",)]


def test_entered_by_an_exit_stack(scene: Scene) -> None:
    def items() -> Iterator[int]:
        with ExitStack() as stack:
            stack.enter_context(custom_op("stacked"))
            yield 1
            consumed(scene)

    with scene:
        for _ in items():
            consumed(scene)
    assert [row.path for row in scene.calls("consumer")] == [
        ("consumer",),
        ("stacked", "consumer"),
    ]
    assert scene.call("stacked").flags == ("crossed",)


def test_in_a_context_manager_of_the_users_own(scene: Scene) -> None:
    @contextmanager
    def managed() -> Iterator[None]:
        with custom_op("managed"):
            scene.tick(1)
            yield

    with scene, managed():
        consumed(scene)
    assert scene.call("consumer").parent is None
    assert scene.call("managed").flags == ("crossed",)


def test_a_block_left_on_another_thread(scene: Scene) -> None:
    def items() -> Iterator[int]:
        with custom_op("moved"):
            yield 1
            with custom_op("late part"):
                scene.tick(2)

    with scene:
        it = items()
        next(it)
        thread = Thread(target=list, args=(it,))
        thread.start()
        thread.join()
        consumed(scene)
    assert scene.call("late part").parent is None  # the thread knows nothing of the block
    assert scene.call("consumer").parent is None
    assert scene.call("moved").untracked_ns == 2  # its CPU time cannot be told
    assert not blocks._entered


def test_a_call_found_running_gives_back_a_block_that_stood_still_before_it(scene: Scene) -> None:
    def items() -> Iterator[None]:
        with custom_op("crossed block"):
            yield
            with custom_op("inner"):
                scene.tick(2)

    @custom_op("found")
    def found() -> None:
        scene.profile.resume()

    with scene:
        it = items()
        next(it)
        scene.profile.pause()
        found()
        assert list(it) == []
    assert scene.call("inner").path == ("crossed block", "inner")
