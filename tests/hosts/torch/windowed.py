"""Recordings in many short windows, and what may be missing of their calls."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.hosts.checks import check
from tests.hosts.torch.ops import nothing_hooked, owned, rows

import opscope
from opscope.analyse import CallRow
from opscope.model import Session
from opscope.testing import assert_restored


def recorded(program: Callable[[opscope.profile], object]) -> Session:
    with assert_restored(), nothing_hooked(), opscope.profile(host=("torch", "python")) as run:
        program(run)
    assert run.session.processes[0].broken == ()
    check(run.session)
    return run.session


def due(run: opscope.profile) -> None:
    """Lets the present window be over at the next chance, as the writer's ticks do."""
    assert run._recorder is not None
    time.sleep(0.001)
    run._recorder.tell("tick")


def lossy(row: CallRow) -> bool:
    return bool({"lossy", "incomplete"} & set(row.flags))


def emptied(session: Session) -> str:
    """What the notes say of it."""
    found = [note for note in session.processes[0].notes if "emptied" in note]
    return found[0] if found else ""


def whole(session: Session, op: Any, wanted: Counter[str], phase: str = "forward") -> list[CallRow]:
    """The calls of an operator, each with all it ran or flagged as lossy."""
    found = rows(session, op, phase)
    for row in found:
        inside = owned(session, row)
        assert not inside - wanted, "more than there was"
        assert inside == wanted or lossy(row), (row, inside)
    return found


def all_ids_are_told_once(session: Session) -> None:
    ids = session.spans["id"].tolist()
    assert len(ids) == len(set(ids))
