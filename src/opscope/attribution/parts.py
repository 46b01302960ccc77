"""What the time of a call (or a task) was, on its own lane.

wall = python + native + sub + wait + dispatch + runtime + untracked, exactly, in whole nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.belonging import Belonging, among
from opscope.attribution.cover import Axis, layers
from opscope.attribution.cpu import child_cpu
from opscope.attribution.ranges import losses, pauses
from opscope.model import Flag, Kind, Session

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Stands for "not measured" in the columns below.
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Columns in nanoseconds, one entry for each of `rows` (calls and tasks, as rows of the spans).

    `python`, `native` and `wait` are -1 where they were not measured; the sum rule takes that as 0.
    `suspended` is what of `wait` was suspension, and `sub_suspended` what of `sub` was time in
    which the call and all it had caused were suspended.
    """

    rows: Ints
    wall: Ints
    python: Ints
    native: Ints
    sub: Ints
    wait: Ints
    dispatch: Ints
    runtime: Ints
    untracked: Ints
    suspended: Ints
    sub_suspended: Ints
    estimated: Bools
    paused: Bools
    lossy: Bools


def split(session: Session, belonging: Belonging) -> Parts:
    """The parts of every call and task of the session."""
    spans, rows = belonging.spans, belonging.rows
    axis = Axis(spans["start_ns"][rows], spans["end_ns"][rows])
    waits = among(spans, (Kind.WAIT,))
    waits[belonging.running.asleep] = False
    stopped = pauses(session, rows)
    paused, sub, alone, runtime, dispatch, known = layers(
        axis,
        stopped,
        belonging.subs(),
        belonging.suspensions(),
        belonging.own(among(spans, (Kind.RUNTIME,))),
        belonging.own(among(spans, (Kind.DISPATCH,))),
        belonging.own(waits),
    )
    # While nothing of its own runs a call is suspended; if what it caused is too, that is `sub`.
    suspended = alone
    if belonging.running.any:
        suspended = layers(axis, stopped, belonging.present(), belonging.suspensions())[2]
    sub = sub + alone - suspended
    gap = axis.length_ns - paused - sub - suspended - runtime - dispatch
    python, wait, untracked, estimated = _share_gap(session, belonging, gap, known)

    # Where spans are missing, nobody can say whose time the gap was.
    lossy = losses(session, rows)
    native = _of_ops(session, rows, [op.native for op in session.ops]) & ~lossy
    python = np.where(lossy, UNKNOWN, np.where(native, 0, python))
    wait = np.where(lossy, UNKNOWN, np.where(native, 0, wait))
    untracked = np.where(lossy, gap, np.where(native, 0, untracked))
    return Parts(
        rows=rows,
        wall=axis.length_ns - paused,
        python=python,
        native=np.where(native, gap, UNKNOWN),
        sub=sub,
        wait=np.where(suspended > 0, np.maximum(wait, 0) + suspended, wait),
        dispatch=dispatch,
        runtime=runtime,
        untracked=untracked,
        suspended=suspended,
        sub_suspended=alone - suspended,
        estimated=estimated & ~lossy & ~native,
        paused=paused > 0,
        lossy=lossy,
    )


def _share_gap(
    session: Session, belonging: Belonging, gap: Ints, known: Ints
) -> tuple[Ints, Ints, Ints, Bools]:
    """Own time into (python, wait, untracked, estimated), from known waits and thread CPU time."""
    spans, rows = belonging.spans, belonging.rows
    cpu, flags = spans["cpu_ns"][rows], spans["flags"][rows]
    of_children, guessed = child_cpu(belonging)
    # CPU used outside every child; during a known wait the thread is taken to use none.
    busy = np.maximum(cpu - of_children, 0)
    free = gap - known
    hidden = np.clip(free - busy, 0, free)

    timed = cpu >= 0
    told = {sight.host for sight in session.sight if "all waits" in sight.sees}
    told_of = _of_ops(session, rows, [op.host in told for op in session.ops])
    measured = timed | (told_of & ((flags & int(Flag.INCOMPLETE)) == 0))
    wait = np.where(timed, known + hidden, known)
    wait = np.where(measured | (known > 0), wait, UNKNOWN)
    python = np.where(measured, gap - np.maximum(wait, 0), UNKNOWN)
    return python, wait, np.where(measured, 0, free), timed & guessed


def _of_ops(session: Session, rows: Ints, chosen: list[bool]) -> Bools:
    """Which of the rows are calls of one of the chosen operators."""
    names = [name for name, yes in zip(session.op_names, chosen, strict=True) if yes]
    if not names:
        return np.zeros(len(rows), bool)
    name, kind = session.spans["name"][rows], session.spans["kind"][rows]
    chosen_rows: Bools = np.isin(name, names) & (kind == int(Kind.CALL))
    return chosen_rows
