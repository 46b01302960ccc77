"""Which steps of a loop are recorded: those that torch.profiler's schedules tell, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope import profiler
from opscope.cli import main
from opscope.errors import UsageError
from opscope.model import Kind
from opscope.record.schedule import Action, action_of, schedule
from opscope.testing import ManualClock

PARAMETERS = [
    {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip}
    for wait in (0, 1, 3)
    for warmup in (0, 1, 2)
    for active in (1, 2, 4)
    for repeat in (0, 1, 2)
    for skip in (0, 1, 5)
]


def name(given: dict[str, int]) -> str:
    return "-".join(map(str, given.values()))


@pytest.mark.parametrize("given", PARAMETERS, ids=name)
@pytest.mark.filterwarnings("ignore:.*[Ww]armup:UserWarning")
def test_it_answers_as_torch_does(given: dict[str, int]) -> None:
    theirs = pytest.importorskip("torch.profiler")
    told, ours = theirs.schedule(**given), schedule(**given)
    for step in range(40):
        assert ours(step).name == told(step).name
        assert ours(step) == action_of(told(step))


def test_it_is_public() -> None:
    assert opscope.schedule is schedule


@pytest.mark.parametrize(
    "given",
    [
        {"wait": -1, "warmup": 0, "active": 1},
        {"wait": 0, "warmup": -1, "active": 1},
        {"wait": 0, "warmup": 0, "active": 0},
        {"wait": 0, "warmup": 0, "active": -1},
        {"wait": 0, "warmup": 0, "active": 1, "repeat": -1},
        {"wait": 0, "warmup": 0, "active": 1, "skip_first": -1},
    ],
)
def test_wrong_numbers(given: Any) -> None:
    with pytest.raises(UsageError, match="active >= 1"):
        schedule(**given)


@opscope.custom_op
def work(clock: ManualClock) -> None:
    clock.tick(100)


def run(told: Callable[[int], object], steps: int = 12) -> opscope.profile:
    """A loop of steps, each of which calls one operator and ends."""
    clock = ManualClock()
    with opscope.profile(host="python", clock=clock, schedule=told) as profile:
        for _ in range(steps):
            clock.tick(10)
            work(clock)
            clock.tick(1)
            profile.step()
    return profile


def steps_of(profile: opscope.profile) -> list[int]:
    """The numbers of the steps that were recorded."""
    spans = profile.session.spans
    found = spans[spans["kind"] == Kind.STEP]
    return [int(profile.session.names[n].removeprefix("step ")) for n in found["name"].tolist()]


@pytest.mark.parametrize("given", PARAMETERS, ids=name)
def test_exactly_the_active_steps_are_recorded(given: dict[str, int]) -> None:
    told = schedule(**given)
    profile = run(told)
    active = [step for step in range(13) if told(step) >= Action.RECORD]
    calls = sum(row["calls"] for row in profile.summary())
    assert calls == len([step for step in active if step < 12])
    assert [step for step in steps_of(profile) if step < 12] == [s for s in active if s < 12]
    for row in profile.summary():
        assert row["wall_ns"] == 100 * calls
        assert row["incomplete"] == 0


def test_a_step_is_as_long_as_the_programs() -> None:
    profile = run(schedule(wait=1, warmup=1, active=2), 8)
    spans = profile.session.spans
    steps = spans[(spans["kind"] == Kind.STEP) & (spans["end_ns"] > spans["start_ns"])]
    assert (steps["end_ns"] - steps["start_ns"]).tolist() == [111] * 4
    assert len(profile.session.pauses) >= 2


def test_without_a_schedule_every_step_is_recorded() -> None:
    clock = ManualClock()
    with opscope.profile(host="python", clock=clock) as profile:
        for _ in range(5):
            work(clock)
            profile.step()
    assert sum(row["calls"] for row in profile.summary()) == 5
    assert steps_of(profile)[:4] == [1, 2, 3, 4]


def test_a_schedule_of_torchs_own() -> None:
    theirs = pytest.importorskip("torch.profiler")
    profile = run(theirs.schedule(wait=2, warmup=1, active=3, repeat=1))
    assert steps_of(profile) == [3, 4, 5]
    assert sum(row["calls"] for row in profile.summary()) == 3


def test_a_schedule_that_is_any_function_of_the_step() -> None:
    profile = run(lambda step: 2 if step % 3 == 0 else 0, 9)
    assert [step for step in steps_of(profile) if step < 9] == [0, 3, 6]
    assert sum(row["calls"] for row in profile.summary()) == 3


@pytest.mark.parametrize("told", ["record", None, 17, object()])
def test_what_is_no_action(told: object) -> None:
    with pytest.raises(UsageError, match="a schedule told"):
        action_of(told)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """What a failing test leaves running is stopped."""
    yield
    if profiler._running is not None:
        profiler._running.stop()


@pytest.mark.parametrize("told", ["record", None, 17, object()])
def test_a_schedule_that_tells_something_else(told: object) -> None:
    with pytest.raises(UsageError, match="a schedule told"):
        run(lambda step: told)
    with opscope.profile(host="python"):  # and nothing is left of the recording
        pass


def test_a_schedule_that_goes_wrong_later() -> None:
    with pytest.raises(UsageError, match="a schedule told"):
        run(lambda step: 2 if step < 3 else "done")
    with opscope.profile(host="python"):
        pass


def test_a_schedule_that_raises_does_so_where_it_was_asked() -> None:
    def told(step: int) -> int:
        if step == 2:
            raise KeyError("mine")
        return 2

    with pytest.raises(KeyError, match="mine"):
        run(told)
    with opscope.profile(host="python"):
        pass


def test_rows_by_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, clock = tmp_path / "steps.opscope", ManualClock()
    told = schedule(wait=1, warmup=1, active=2, repeat=2)
    with opscope.profile(host="python", output=file, clock=clock, schedule=told) as profile:
        for _ in range(10):
            work(clock)
            profile.step()
    assert main(["report", "--by", "step", "--json", str(file)]) in (0, None)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["step"] for row in rows] == ["step 2", "step 3", "step 6", "step 7"]
    assert [row["calls"] for row in rows] == [1, 1, 1, 1]
