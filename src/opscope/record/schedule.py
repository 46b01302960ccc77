"""Which steps of a program's loop to record, told as torch.profiler's schedules tell it."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from opscope.errors import UsageError


class Action(IntEnum):
    """What to do in a step. The numbers are those of `torch.profiler.ProfilerAction`."""

    NONE = 0
    WARMUP = 1  #: collect and throw away, so that what starting costs is not in the first step
    RECORD = 2
    RECORD_AND_SAVE = 3  #: the last recorded step of a cycle


#: From the number of a step, counted from 0, to an `Action` or torch's own.
Schedule = Callable[[int], object]


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], Action]:
    """Skip `skip_first` steps, then in a cycle: `wait` steps not recorded, `warmup` steps recorded
    and thrown away, `active` steps kept. `repeat` cycles; 0: to the end.

    Raises UsageError for negative numbers, or when no step is active.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise UsageError(
            "a schedule needs active >= 1 and wait, warmup, repeat and skip_first >= 0"
        )
    length = wait + warmup + active

    def action(step: int) -> Action:
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return Action.NONE
        if place < wait + warmup:
            return Action.WARMUP
        return Action.RECORD_AND_SAVE if place == length - 1 else Action.RECORD

    return action


def action_of(told: object) -> Action:
    """The action that a schedule of anybody's told. Raises UsageError for anything else."""
    try:
        return Action(int(getattr(told, "value", told)))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise UsageError(
            f"a schedule told {told!r}; it should give an Action, as opscope.schedule and "
            "torch.profiler.schedule do"
        ) from None
