"""The profile object: what may follow what, and what it says when something may not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.hosts.checks import Scene, check

from opscope import UsageError, custom_op, load, profile
from opscope.model import Kind
from opscope.testing import ManualClock, assert_restored


@custom_op
def work() -> int:
    return 3


def test_stopped_twice_and_before_it_began() -> None:
    with assert_restored():
        run = profile()
        run.stop()
        run.start()
        work()
        run.stop()
        run.stop()
    assert [row["calls"] for row in run.summary()] == [1]
    check(run.session)


@pytest.mark.parametrize("act", ["pause", "resume", "step"])
def test_nothing_to_act_upon(act: str) -> None:
    run = profile()
    for _ in range(2):
        with assert_restored(), pytest.raises(UsageError, match="nothing is being recorded"):
            getattr(run, act)()
        with run:
            getattr(run, act)()


def test_nothing_to_show() -> None:
    run = profile()
    for show in (lambda: run.session, run.summary, lambda: str(run)):
        with pytest.raises(UsageError, match="nothing has been recorded"):
            show()


def test_two_at_once_are_refused_and_the_first_goes_on() -> None:
    with assert_restored(), profile() as first:
        for second in (profile(), first):
            with pytest.raises(UsageError, match="already running"):
                second.start()
        work()
    assert [row["calls"] for row in first.summary()] == [1]


def test_one_after_the_other_and_the_same_again() -> None:
    with assert_restored():
        first = profile()
        with first:
            work()
        with profile() as second:
            work()
            work()
        assert [row["calls"] for run in (first, second) for row in run.summary()] == [1, 2]
        with first:
            work()
            work()
            work()
    assert [row["calls"] for row in first.summary()] == [3]


def test_paused_and_resumed_again_and_again(scene: Scene) -> None:
    with scene:
        scene.profile.resume()
        for _ in range(2):
            scene.profile.pause()
        scene.idle(5)
        work()
        for _ in range(2):
            scene.profile.resume()
        work()
        scene.profile.pause()
    assert len(scene.calls("work")) == 1
    assert scene.session.pauses["start_ns"].tolist() == [1_000_000, 1_000_005]


def test_steps(scene: Scene) -> None:
    with scene:
        for ns in (1, 20, 300):
            scene.profile.step()
            scene.tick(ns)
            work()
    assert [ns for _, _, ns in scene.named(Kind.STEP)] == [1, 20, 300]
    assert {row.parent for row in scene.calls("work")} == {None}


def test_as_a_decorator_of_a_function_that_calls_itself() -> None:
    run = profile(clock=ManualClock())

    @run
    def down(depth: int) -> int:
        """What it says."""
        return work() + (down(depth - 1) if depth else 0)

    with assert_restored():
        assert down(3) == 12
        assert [row["calls"] for row in run.summary()] == [4]
        assert down(0) == 3
    assert [row["calls"] for row in run.summary()] == [1]
    assert (down.__name__, down.__doc__) == ("down", "What it says.")


def test_an_exception_passes_and_everything_is_kept() -> None:
    run = profile()

    def fails() -> None:
        with run:
            work()
            raise KeyError

    with assert_restored(), pytest.raises(KeyError):
        fails()
    assert [row["calls"] for row in run.summary()] == [1]


def test_started_here_and_stopped_elsewhere() -> None:
    with assert_restored():
        run = profile().start()
        work()
        thread = threading.Thread(target=run.stop)
        thread.start()
        thread.join()
    assert [row["calls"] for row in run.summary()] == [1]


def test_looked_at_while_it_runs() -> None:
    with assert_restored(), profile() as run:
        for count in (1, 2):
            work()
            assert [row["calls"] for row in run.summary()] == [count]


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.opscope"
    file.write_text("mine", "utf-8")
    with assert_restored(), pytest.raises(UsageError, match="exists"):
        profile(output=file).start()
    assert file.read_text("utf-8") == "mine"
    with assert_restored(), profile(output=file, force=True):
        work()
    assert len(load(file).spans) == 1


@pytest.mark.parametrize("value", ["1", "yes", "TRUE"])
def test_disabled(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCOPE_DISABLE", value)
    file = tmp_path / "run.opscope"
    with assert_restored(), profile(output=file) as run:
        assert work() == 3
        run.pause()
        run.resume()
        run.step()
        with profile() as inner:
            work()
    assert run.summary() == inner.summary() == []
    assert str(run)
    assert not file.exists()


@pytest.mark.parametrize("value", ["", "0", "no", "off", "False"])
def test_not_disabled(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCOPE_DISABLE", value)
    with profile() as run:
        work()
    assert len(run.summary()) == 1
