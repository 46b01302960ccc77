"""One call that several recordings see, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from tests.hosts.checks import Scene, Turns, check, parts
from tests.hosts.python.ways import Act, Sub, Way, finish, in_a_generator, way

from opscope import custom_op
from opscope.analyse import calls
from opscope.model import Kind
from opscope.profiler import profile
from opscope.testing import assert_restored


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


def test_a_generator_from_recording_to_recording(scene: Scene) -> None:
    runs = [profile(clock=scene.clock) for _ in range(3)]

    @custom_op("items")
    def items() -> Iterator[None]:
        for _ in runs:
            scene.tick(1)
            yield
            scene.tick(20)

    it = items()
    with assert_restored():
        for run in runs:
            with run:
                next(it)
                scene.idle(300)
        assert list(it) == []
    for run in runs:
        check(run.session)
    rows = [row for run in runs for row in calls(run.session)]
    assert [parts(row) for row in rows] == [
        {"wall": 301, "python": 1, "wait": 300},
        {"wall": 321, "python": 21, "wait": 300},
        {"wall": 321, "python": 21, "wait": 300},
    ]
    assert [row.flags for row in rows] == [("incomplete",)] + [("incomplete", "clamped")] * 2


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
