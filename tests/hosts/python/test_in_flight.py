"""Calls that run when recording begins, pauses, goes on or ends: each has its row and says so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from tests.hosts.checks import Scene, Turns, check, parts

from opscope import custom_op
from opscope.analyse import calls
from opscope.model import Kind
from opscope.profiler import profile
from opscope.record import scope
from opscope.testing import assert_restored

#: Runs `body` on this thread, on another one, three calls deep, in a step of a generator ...
Way = Callable[[Scene, Callable[[], None]], None]


def plainly(scene: Scene, body: Callable[[], None]) -> None:
    custom_op("it")(body)()


def in_a_block(scene: Scene, body: Callable[[], None]) -> None:
    with custom_op("it"):
        body()


def in_a_generator(scene: Scene, body: Callable[[], None]) -> None:
    @custom_op("it")
    def it() -> Iterator[None]:
        yield
        body()
        yield

    steps = it()
    next(steps)
    scene.idle(1000)
    next(steps)
    scene.idle(1000)
    steps.close()


def in_a_coroutine(scene: Scene, body: Callable[[], None]) -> None:
    @custom_op("it")
    async def it() -> None:
        await asyncio.sleep(0)
        body()
        await asyncio.sleep(0)

    asyncio.run(it())


def in_an_async_generator(scene: Scene, body: Callable[[], None]) -> None:
    @custom_op("it")
    async def it() -> AsyncIterator[None]:
        yield
        await asyncio.sleep(0)
        body()
        yield

    async def consume() -> None:
        async for _ in it():
            pass

    asyncio.run(consume())


WAYS: dict[str, Way] = {
    "function": plainly,
    "block": in_a_block,
    "generator": in_a_generator,
    "coroutine": in_a_coroutine,
    "async generator": in_an_async_generator,
}

way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture(params=["here", "elsewhere"])
def act(request: pytest.FixtureRequest) -> Callable[[Callable[[], object]], None]:
    """Does something (starts, stops ...) on the calling thread, or on another one meanwhile."""

    def elsewhere(fn: Callable[[], object]) -> None:
        thread = threading.Thread(target=fn)
        thread.start()
        thread.join()

    return (lambda fn: fn()) if request.param == "here" else elsewhere  # type: ignore[return-value]


@pytest.fixture
def sub(scene: Scene) -> Callable[[int], None]:
    @custom_op("sub")
    def sub(ns: int) -> None:
        scene.tick(ns)

    return sub


def finish(scene: Scene) -> None:
    scene.profile.stop()
    check(scene.session)
    assert scope.held() is None
    assert scene.session.processes[0].broken == ()


Act = Callable[[Callable[[], object]], None]
Sub = Callable[[int], None]


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
    sub_ns = row.wall_ns + 5
    assert scene.parts("around") == {"wall": sub_ns + 1, "python": 1, "sub": sub_ns}


@way
def test_a_second_recording_of_the_same_call(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    second = profile(clock=scene.clock)

    def body() -> None:
        scene.tick(1)
        act(scene.profile.stop)
        scene.tick(100)
        act(second.start)
        scene.tick(3)
        sub(4)

    with assert_restored():
        scene.profile.start()
        way(scene, body)
        sub(7)
        second.stop()
    check(second.session)
    (row,) = [row for row in calls(second.session) if row.op == "it"]
    waited = {"wait": 1000} if way is in_a_generator else {}
    assert parts(row) == {"wall": 7 + sum(waited.values()), "python": 3, "sub": 4} | waited
    assert row.flags == ("clamped",)
    assert [r.path for r in calls(second.session) if r.op == "sub"] == [("it", "sub"), ("sub",)]
    assert len(scene.calls("it")) == 1


@way
def test_it_starts_and_stops_inside(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    def body() -> None:
        scene.tick(1)
        act(scene.profile.start)
        scene.tick(3)
        sub(4)
        act(scene.profile.stop)
        scene.tick(100)

    with assert_restored():
        way(scene, body)
        finish(scene)
    (row,) = scene.calls("it")
    assert set(row.flags) == {"clamped", "incomplete"}
    assert parts(row) == {"wall": 7, "python": 3, "sub": 4}


@way
def test_three_recordings_inside_one_call(way: Way, act: Act, scene: Scene, sub: Sub) -> None:
    runs = [profile(clock=scene.clock) for _ in range(3)]

    def body() -> None:
        for number, run in enumerate(runs):
            scene.tick(100)
            act(run.start)
            scene.tick(number)
            sub(3)
            if number < 2:
                act(run.stop)

    with assert_restored():
        way(scene, body)
        runs[2].stop()
    for number, run in enumerate(runs):
        check(run.session)
        row, below = calls(run.session)
        assert below.path == ("it", "sub")
        assert (row.python_ns or 0, row.sub_ns) == (number, 3)
        assert ("incomplete" in row.flags) == (number < 2)


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
        with turn(2):
            pass
        with turn(4):
            sub(1)

    @custom_op("outer")
    def outer() -> None:
        with turn(0):
            pass
        inner()
        sub(2)

    thread = threading.Thread(target=outer)
    with assert_restored():
        thread.start()
        with turn(1):
            scene.profile.start()
            scene.profile.pause()
        with turn(3):
            scene.profile.resume()
        thread.join()
        finish(scene)
    assert [row.path for row in scene.calls("sub")] == [("outer", "inner", "sub"), ("outer", "sub")]


def test_a_known_wait_across_two_recordings(scene: Scene, sub: Sub) -> None:
    second = profile(clock=scene.clock)
    turn, gate = Turns(), threading.Event()

    @custom_op("waits")
    def waits() -> None:
        with turn(0):
            scene.tick(1)
        assert gate.wait(30)
        sub(2)

    thread = threading.Thread(target=waits)
    with assert_restored():
        scene.profile.start()
        thread.start()
        with turn(1):
            while not gate._cond._waiters:  # type: ignore[attr-defined]
                pass
            scene.idle(5)
        scene.profile.stop()
        scene.idle(100)
        second.start()
        scene.idle(7)
        gate.set()
        thread.join()
        second.stop()
    check(scene.session)
    check(second.session)
    assert scene.parts("waits") == {"wall": 6, "python": 1, "wait": 5}
    row, _ = calls(second.session)
    assert not (second.session.spans["kind"] == Kind.WAIT).any()
    assert parts(row) == {"wall": 9, "sub": 2, "wait": 7}


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
