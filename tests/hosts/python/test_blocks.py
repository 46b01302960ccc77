"""`with custom_op("x")`: one operator for a name, wherever and however often it is entered."""

from __future__ import annotations

import asyncio
from linecache import getline
from threading import Thread

import pytest
from tests.hosts.checks import Scene, Turns, parts

from opscope import custom_op
from opscope.hosts.python import block as blocks


def test_two_places_are_one_operator(scene: Scene) -> None:
    with scene:
        with custom_op("place"):
            scene.tick(1)
        with custom_op("place"):
            scene.tick(2)
    first, second = scene.calls("place")
    assert first.key == second.key == "python:place#1"
    assert (parts(first), parts(second)) == ({"wall": 1, "python": 1}, {"wall": 2, "python": 2})
    (op,) = scene.session.ops
    assert op.file == __file__
    assert getline(op.file, op.line).strip() == 'with custom_op("place"):'


def test_one_object_entered_again_inside_itself(scene: Scene) -> None:
    block = custom_op("again")
    with scene, block:
        scene.tick(1)
        with block, block:
            scene.tick(2)
        scene.tick(4)
    assert [row.wall_ns for row in scene.calls("again")] == [7, 2, 2]
    assert [len(row.path) for row in scene.calls("again")] == [1, 2, 3]


def test_one_object_on_several_threads(scene: Scene) -> None:
    block, turn = custom_op("shared block"), Turns()

    def work(number: int) -> None:
        with turn(number):
            block.__enter__()
            scene.tick(10)
        with turn(3 + number):  # left in the order of entering, unlike nested ones
            scene.tick(number)
            block.__exit__(None, None, None)

    with scene:
        threads = [Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [row.python_ns for row in scene.calls("shared block")] == [10, 11, 12]
    assert not blocks._entered


def test_one_object_entered_and_left_by_helpers(scene: Scene) -> None:
    block, turn = custom_op("by helpers"), Turns()

    def enter() -> None:
        block.__enter__()
        scene.tick(1)

    def leave(ns: int) -> None:
        scene.tick(ns)
        block.__exit__(None, None, None)

    def work(number: int) -> None:
        with turn(number):
            enter()
            enter()
        with turn(2 + number):
            leave(10)
            leave(100)

    with scene:
        threads = [Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = scene.calls("by helpers")
    assert [row.python_ns for row in rows] == [101, 11, 101, 11]
    assert [len(row.path) for row in rows] == [1, 2, 1, 2]


def test_one_object_in_interleaved_coroutines_of_one_thread(scene: Scene) -> None:
    block = custom_op("turns")

    async def work(ns: int) -> None:
        with block:
            scene.tick(ns)
            await asyncio.sleep(0)
            with custom_op("inside"):
                scene.tick(ns)

    async def both() -> None:
        await asyncio.gather(work(1), work(10))

    with scene:
        asyncio.run(both())
    assert [row.wall_ns for row in scene.calls("turns")] == [12, 21]
    assert {row.flags for row in scene.calls("turns")} == {("crossed",)}
    assert [row.parent for row in scene.calls("inside")] == [
        row.call for row in scene.calls("turns")
    ]


def test_an_exception_flags_the_block(scene: Scene) -> None:
    with scene, pytest.raises(ZeroDivisionError), custom_op("bad"):
        1 / 0  # noqa: B018
    assert scene.call("bad").flags == ("failed",)


def test_as_a_decorator(scene: Scene) -> None:
    @custom_op("decorated")
    def fn() -> None:
        scene.tick(2)

    with scene:
        fn()
    assert scene.parts("decorated") == {"wall": 2, "python": 2}
