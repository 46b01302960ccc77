"""What must hold of every session, and a scene: a recording whose time the test moves by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

from opscope import analyse, profiler
from opscope.analyse import CallRow
from opscope.analyse.rows import PART_KEYS
from opscope.attribution import attribute
from opscope.model import Kind, Rows, Session
from opscope.profiler import profile
from opscope.record import scope
from opscope.testing import ManualClock, assert_restored

PARTS = [key.removesuffix("_ns") for key in PART_KEYS]


def check(session: Session) -> None:
    """Sum rule, signs, times, ids, owners, paths."""
    spans = session.spans
    ids = spans["id"].tolist()
    assert len(set(ids)) == len(ids)
    assert all(number > 0 for number in ids)
    assert (spans["start_ns"] <= spans["end_ns"]).all()
    calls = set(spans["id"][spans["kind"] == Kind.CALL].tolist())
    assert set(spans["owner"].tolist()) <= calls | {0}
    assert not (spans["owner"] == spans["id"]).any()
    assert not spans["owner"][spans["kind"] == Kind.RUNTIME].any()
    for column, table in (
        ("name", session.names),
        ("lane", session.lanes),
        ("submitted_lane", session.lanes),
    ):
        assert ((spans[column] >= 0) & (spans[column] < len(table))).all()
    assert {*session.links["source"].tolist(), *session.links["target"].tolist()} <= set(ids)

    parts = attribute(session).parts
    for part in PARTS:
        least = 0 if part in ("wall", "sub", "dispatch", "runtime", "untracked") else -1
        assert (getattr(parts, part) >= least).all(), part
    total = sum(np.maximum(getattr(parts, part), 0) for part in PARTS[1:])
    assert np.array_equal(parts.wall, total)

    rows = {row.call: row for row in analyse.calls(session)}
    assert rows.keys() == calls
    for row in rows.values():
        assert row.wall_ns == sum(getattr(row, key) or 0 for key in PART_KEYS[1:])
        above = () if row.parent is None else rows[row.parent].path
        assert row.path[:-1] == above
        assert row.op in row.path[-1]


def parts(row: CallRow) -> dict[str, int]:
    """The parts of a call's time that are neither nothing nor unknown, in ns."""
    return {part: ns for part in PARTS if (ns := getattr(row, f"{part}_ns"))}


class Scene:
    """`with scene:` records by a clock that only `tick` (work) and `idle` move.

    At the end nothing may be hooked or current any more, and `check` must hold.
    """

    def __init__(self, **more: Any) -> None:
        self.clock = ManualClock()
        self.tick = self.clock.tick
        self.idle = self.clock.idle
        self.profile = profile(clock=self.clock, **more)
        self._restored = assert_restored()

    @property
    def session(self) -> Session:
        return self.profile.session

    def __enter__(self) -> Scene:
        self._restored.__enter__()
        self.profile.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.profile.stop()
        if error is None:
            self._restored.__exit__(None, None, None)
            check(self.session)
            assert self.session.processes[0].broken == ()

    def calls(self, op: str | None = None) -> list[CallRow]:
        """The calls of that operator, by start."""
        return [row for row in analyse.calls(self.session) if op in (None, row.op)]

    def call(self, op: str) -> CallRow:
        """The only call of that operator."""
        (row,) = self.calls(op)
        return row

    def owners(self, op: str = "note") -> list[tuple[str, ...]]:
        """The paths of the calls that the calls of that operator belong to, by start."""
        return [row.path[:-1] for row in self.calls(op)]

    def parts(self, op: str) -> dict[str, int]:
        """The parts of the only call of that operator."""
        return parts(self.call(op))

    def spans(self, kind: Kind) -> Rows:
        """The spans of that kind."""
        return self.session.spans[self.session.spans["kind"] == kind]

    def named(self, kind: Kind) -> list[tuple[str, str | None, int]]:
        """(name, operator of the owner, duration) of the spans of that kind, by start and id."""
        rows = np.sort(self.spans(kind), order=["start_ns", "id"])
        ops = {row.call: row.op for row in self.calls()}
        return [
            (self.session.names[row["name"]], ops.get(int(row["owner"])), duration)
            for row, duration in zip(
                rows, (rows["end_ns"] - rows["start_ns"]).tolist(), strict=True
            )
        ]


@contextmanager
def fresh() -> Iterator[Scene]:
    """A scene for one test; what a failing test leaves behind is taken away."""
    yield Scene()
    running = profiler._running
    if running is not None:
        running.stop()
    scope.push(None)
    for left in (scope.adopted, scope.late, scope._waiting):
        left.clear()  # type: ignore[attr-defined]


class Turns:
    """Lets threads do their things one after the other, in the order of numbers from 0."""

    def __init__(self) -> None:
        self._turn = 0
        self._changed = threading.Condition()

    @contextmanager
    def __call__(self, number: int) -> Iterator[None]:
        with self._changed:
            assert self._changed.wait_for(lambda: self._turn >= number, 30)
            assert self._turn == number
        try:
            yield
        finally:
            with self._changed:
                self._turn += 1
                self._changed.notify_all()


def in_thread(fn: Any, *args: Any) -> None:
    """Run `fn` on another thread, of which opscope knows nothing, and pass on what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            fn(*args)
        except BaseException as error:
            raised.append(error)
        finally:
            done.release()

    import _thread

    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(run, ())
    assert done.acquire(timeout=30)
    if raised:
        raise raised[0]
