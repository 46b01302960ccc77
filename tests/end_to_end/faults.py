"""For the tests of MXNet's faults: run a scene again and again, on an engine of a kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import free, owned, rows
from tests.hosts.engine.ops import ENGINES, engine_of
from tests.present.trace import check as check_trace

import opscope
from opscope import engine as nd
from opscope.analyse import CallRow
from opscope.model import Session
from opscope.testing import ManualClock

#: How often each scene must show the same.
TIMES = 20

every_kind = pytest.mark.parametrize("kind", list(ENGINES))
asynchronous = pytest.mark.parametrize("kind", ["pool", "workers"])


def record(
    scene: Callable[[], object], clock: ManualClock | None = None, *, wait: bool = True
) -> Session:
    """The scene, recorded; everything that must hold of any session and its trace holds."""
    with opscope.profile(clock=clock) as profile:
        scene()
        if wait:
            nd.waitall()
    session = profile.session
    check(session)
    check_trace(session)
    return session


def always(kind: str, expected: Any, look: Callable[[], Any], times: int = TIMES) -> None:
    """`look` finds what is expected, every time, on the engine of that kind."""
    with engine_of(kind):
        for time in range(times):
            assert look() == expected, f"time {time + 1} of {times}"


def subs(session: Session, op: str, phase: str | None = None) -> list[dict[str, int]]:
    """What each call of an operator owns, without the copy that `assign` makes of the result."""
    return [without_copy(owned(session, call)) for call in rows(session, op, phase)]


def without_copy(count: Counter[str]) -> dict[str, int]:
    return {name: number for name, number in count.items() if name != "_copyto"}


def regular(session: Session) -> dict[str, int]:
    """The operators of nobody, arrays made by the scene left out."""
    return {name: number for name, number in free(session).items() if name != "_ones"}


def only(session: Session, op: str) -> CallRow:
    """The one call of an operator."""
    (call,) = rows(session, op)
    return call


__all__ = [
    "ManualClock", "always", "asynchronous", "every_kind", "only", "record", "regular", "rows",
    "subs",
]  # fmt: skip
