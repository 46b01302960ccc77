"""Runs made by hand or by a seed, for tests of the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tests.builders import Line, session, span

from opscope.model import Kind, Op, Process, Session

#: A moment in 1970, and what two runs are apart.
_EPOCH_NS, _APART_NS = 10**18, 10**9
#: How often a run of `Machine` calls each operator.
CALLS = 16


@dataclass(frozen=True)
class Did:
    """What the calls of an operator took in one run: a value a call, in nanoseconds."""

    name: str | Op
    python: Sequence[int]
    wait: Sequence[int] = ()
    inner: tuple[Did, ...] = ()  # calls inside each of its calls, one of each


def made(*did: Did, at: int | None = 0, **more: Any) -> Session:
    """A run of these; `at` is its place in time, None for a run that does not know it."""
    lines: list[Line] = []
    now = 1000

    def call(one: Did, number: int, owner: int) -> None:
        nonlocal now
        me, start = len(lines) + 1, now
        lines.append(span(me, one.name, Kind.CALL, start, start, owner=owner))
        now += one.python[number]
        if one.wait:
            lines.append(
                span(len(lines) + 1, "w", Kind.WAIT, now, now + one.wait[number], owner=me)
            )
            now += one.wait[number]
        for inner in one.inner:
            call(inner, number, me)
        lines[me - 1] = replace(lines[me - 1], end_ns=now)

    for one in did:
        for number in range(len(one.python)):
            call(one, number, 0)
            now += 50
    process = Process(
        pid=41,
        complete=True,
        machine="m",
        start_ns=1000,
        anchors=() if at is None else ((1000, _EPOCH_NS + at * _APART_NS),),
    )
    return session(lines, processes=[replace(process, **more)])


class Machine:
    """Runs of a program with four operators, one inside another, on a machine that is never the
    same: a factor a run, drifting, one more for each operator, and calls that are interrupted."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.runs = 0

    def run(self, **slower: float) -> Session:
        """One more run; `slower` gives a factor for the Python part of an operator."""
        self.runs += 1
        speed = (1 + 0.01 * self.runs) * np.exp(self.random.normal(0, 0.04))

        def did(name: str, usual: float, wait: float = 0.0, inner: tuple[Did, ...] = ()) -> Did:
            mine = speed * slower.get(name, 1.0) * np.exp(self.random.normal(0, 0.03))
            calls = usual * mine * np.exp(self.random.normal(0, 0.2, CALLS))
            calls[0] *= 20  # it loads something
            waits = self.random.exponential(max(wait, 1.0), CALLS) * (
                self.random.random(CALLS) < 0.3
            )
            return Did(name, calls.astype(int).tolist(), waits.astype(int).tolist(), inner)

        inner = did("inner", 30_000, 5_000)
        return made(
            did("alone", 150_000, 40_000),
            did("outer", 20_000, 2_000, (inner,)),
            did("tiny", 2_000, 100),
            at=self.runs,
        )
