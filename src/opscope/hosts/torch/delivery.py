"""torch's events of a stretch of time, joined with what the hooks recorded, into the recording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late import Context, Events, Forward, join
from opscope.hosts.torch.columns import Tables, read
from opscope.hosts.torch.functions import Functions
from opscope.hosts.torch.knowledge import customs
from opscope.hosts.torch.known import Dispatcher
from opscope.hosts.torch.operators import HOST, Operators
from opscope.hosts.torch.times import Anchor, to_mono
from opscope.hosts.torch.turns import Turns
from opscope.model import SPAN, Flag, Kind, LinkKind, Rows
from opscope.record import Recorder

#: (start, end, lane) of a stretch in which nothing was collected, and the thread that caused it.
Gap = tuple[int, int, int]


class Delivery:
    """One for a recording; one thread at a time delivers."""

    def __init__(self, recorder: Recorder, operators: Operators, functions: Functions) -> None:
        self.recorder = recorder
        self.operators = operators
        self.functions = functions
        self.missed = 0  #: calls on other threads that ran through a gap
        self._turns = Turns(recorder)
        self._recompute = functions.recompute
        self._dispatcher = Dispatcher()
        self._rows: list[bytes] = []
        self._gaps: list[Gap] = []
        self._forward = Forward()
        self._orphans = 0
        self._merged = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Inside the block what is recorded is kept until it is joined."""
        self.recorder.taps.append(self._rows.append)
        try:
            with self._turns.noted():
                yield
        finally:
            self.recorder.taps.remove(self._rows.append)

    def gap(self, start_ns: int, end_ns: int) -> None:
        """This thread has just kept torch from collecting for that long."""
        self._gaps.append((start_ns, end_ns, self.recorder.here().lane))

    def deliver(
        self, events: list[Any], since: Anchor, until: Anchor, *, python: bool = False
    ) -> None:
        """The events that torch collected between the two moments, as spans; `python` where those
        of Python functions may be among them."""
        recorder = self.recorder
        recorder.flush()
        recorded, still_open = self._recorded(until.mono_ns)
        self._judge_gaps(recorded)
        columns = read(events, self._tables(since, until), python=python)
        from_ns = max(since.mono_ns, recorder.since_ns)
        columns = _between(columns, from_ns, until.mono_ns, recorder.pauses)
        names = recorder.tables.names
        seen = [names[entry] for entry in np.unique(columns.name).tolist()]
        self._merged += sum(text.startswith("CompiledFunctionBackward") for text in seen)
        again = self._recompute.events(recorder, from_ns, until.mono_ns)
        seen += [names[entry] for entry in np.unique(again.name).tolist()]
        known = customs(
            self.operators.all(),
            seen,
            self._dispatcher,
            recorder.name,
            recorder.op,
            hooked=HOST not in recorder.off,
        )
        linked, self.functions.linked = self.functions.linked, set()
        context = Context(
            known, self._ids, recorder.name("dispatch"), frozenset(linked), self._forward
        )
        joined = join(columns.and_also(again), recorded, context)
        self._forward = joined.forward
        self._orphans += joined.unattributed
        # Whoever ends what is open will tell it in the end; turns are never shown.
        hidden = (joined.rows["id"] < 0) | np.isin(joined.rows["id"], still_open)
        recorder.add(joined.rows[~hidden])
        for kind, source, target in joined.links:
            recorder.link(LinkKind(kind), source, target)

    def notes(self) -> Iterator[str]:
        """What a reader should know about it."""
        if self._orphans:
            yield (
                f"{self._orphans:,} device spans belong to nobody: no call of the runtime and no "
                "operator has their number (work of a captured graph, or launched unseen)"
            )
        if self._merged:
            yield (
                "torch.compile merged backward formulas into CompiledFunctionBackward: what part "
                "of it each custom operator was cannot be told"
            )

    def _recorded(self, now_ns: int) -> tuple[Rows, list[int]]:
        """The rows recorded since the last delivery, with open calls and tasks as they stand, and
        the ids of those."""
        batch = list(self._rows)
        del self._rows[: len(batch)]
        still = [
            (*row[:5], row[5] | Flag.INCOMPLETE, *row[6:9], now_ns, row[10], -1)
            for row in list(self.recorder.opened.values())
            if row[3] in (Kind.CALL, Kind.TASK) and row[8]
        ]
        parts = [np.frombuffer(rows, SPAN) for rows in batch]
        done = np.concatenate((self._turns.rows(), *parts))
        # One may have ended since.
        ended = set(done["id"].tolist()) if still else set()
        still = [row for row in still if row[0] not in ended]
        rows = np.concatenate((done, np.array(still, SPAN)))
        return rows, [row[0] for row in still]

    def _judge_gaps(self, recorded: Rows) -> None:
        """Calls of other threads that ran through a gap lack sub-operators: they are lossy."""
        calls = recorded[recorded["kind"] == Kind.CALL]
        for start_ns, end_ns, lane in self._gaps:
            through = (calls["start_ns"] < end_ns) & (calls["end_ns"] > start_ns)
            elsewhere = int((through & (calls["lane"] != lane)).sum())
            if elsewhere:
                self.missed += elsewhere
                self.recorder.lost(start_ns, end_ns)
            elif through.any():
                # Only calls around this place were on, and nothing of theirs ran meanwhile.
                self.recorder.pauses.append((start_ns, end_ns))
        self._gaps.clear()

    def _tables(self, since: Anchor, until: Anchor) -> Tables:
        recorder = self.recorder
        threads = {
            lane.thread: number
            for number, lane in enumerate(recorder.tables.lanes)
            if lane.kind == "thread" and lane.thread
        }

        def lane(thread: int, device: int, is_device: bool) -> int:
            if is_device:
                key = ("torch stream", device, thread)
                return recorder.lane(key, f"device {device} stream {thread}", "stream")
            known = threads.get(thread)
            if known is not None:
                return known
            return recorder.lane(("torch thread", thread), f"thread {thread}", thread=thread)

        def time(wall_ns: NDArray[np.int64]) -> NDArray[np.int64]:
            return to_mono(since, until, wall_ns)

        return Tables(recorder.name, lane, time)

    def _ids(self, count: int) -> NDArray[np.int64]:
        return np.fromiter(islice(iter(self.recorder.next_id, None), count), np.int64, count)


def _between(events: Events, from_ns: int, to_ns: int, pauses: list[tuple[int, int]]) -> Events:
    """Without what began outside, or in a pause."""
    inside = (events.start_ns >= from_ns) & (events.start_ns <= to_ns)
    for begin, end in pauses:
        if end > from_ns:
            inside &= (events.start_ns < begin) | (events.start_ns >= end)
    return events if inside.all() else events.take(inside)
