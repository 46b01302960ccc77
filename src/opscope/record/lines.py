"""Hot lines: which lines of an operator's own Python run how long, from samples of the main thread.

A sample stands for the stretch of time around it, so shares need no tracing of lines.
"""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any

import numpy as np

from opscope.model import SPAN, Kind, Op, Phase
from opscope.record import scope, watch
from opscope.record.alarm import Alarm
from opscope.record.lookout import LATE_NS, Lookout
from opscope.record.outside import RATE, Outside, Sample
from opscope.record.places import Place, Stack, before, of_op, stack_of
from opscope.record.recorder import Recorder

#: How far samples are apart, on average, in CPU time of the thread.
PERIOD_NS = 5_000_000
#: An alarm that came too early, as the thread did not run, is set again for this at least; where it
#: ran for less than one part of this many of the time, for a whole period.
_LEAST_NS, _IDLE = 400_000, 20
#: Every how many flushes what was sampled is written, but for the first ones: a run may end early.
_EVERY = 8
#: Samples that wait to be told apart, calls they may be of, and lines, at most.
_WAITING, _CALLS, _LINES = 65_536, 4_096, 20_000

#: (entry of the names, phase, line, line of the body) to [samples, ns].
Table = dict[tuple[int, int, Place, Place], list[int]]


@contextmanager
def hot_lines(recorder: Recorder, period_ns: int = PERIOD_NS) -> Iterator[None]:
    """Inside the block the main thread is sampled, unless the program uses alarms itself."""
    sampler = Sampler(recorder, period_ns)

    def gave_way(name: str) -> None:
        recorder.notes.append(
            f"hot lines end where the program called signal.{name}: it needs the alarm itself"
        )

    def tick(moment: str) -> None:
        if moment == "tick":
            alarm.revive()

    lookout = Lookout()

    def ring(frame: FrameType | None) -> int:
        delay_ns = sampler.sample(frame, lookout.seen())
        lookout.expect(delay_ns)
        return delay_ns

    alarm = Alarm(ring, gave_way)
    recorder.taps.append(sampler.ended)
    recorder.sources.append(sampler.news)
    first_ns = sampler.first_ns
    why = alarm.start(first_ns)
    if why:
        recorder.notes.append(f"no hot lines: {why}")
        lookout.end()
        yield
        return
    outside = Outside()
    try:
        lookout.expect(first_ns)
        lookout.begin()
        why = outside.start()
        recorder.listeners.append(tick)
        yield
    finally:
        if tick in recorder.listeners:
            recorder.listeners.remove(tick)
        alarm.stop()
        lookout.end()
        seen, failed = outside.stop(recorder.tables.ops)
        sampler.add_outside(seen)
        told = f"other threads are not sampled ({why or failed})"
        recorder.notes.append(
            f"hot lines are those of the main thread: {told}"
            if why or failed
            else "hot lines: py-spy sampled threads other than the main one"
        )


class Strata:
    """Time in pieces of one length, with one sample in each, at a place left to chance.

    So nothing that repeats can keep step with the samples, and each stands for exactly a piece.
    """

    def __init__(self, period_ns: int, chance: Callable[[], float], now_ns: int) -> None:
        self._period_ns = period_ns
        self._chance = chance
        self._start_ns = now_ns
        self.due_ns = self._draw()

    def taken(self, now_ns: int) -> int:
        """What a sample taken now stands for, in ns: nothing before `due_ns`.

        One taken late, after a long call into C, stands for that call too: all that went by
        meanwhile was the same line.
        """
        if now_ns < self.due_ns:
            return 0
        end_ns = self._start_ns + self._period_ns
        late_ns = max(now_ns - end_ns, 0)
        self._start_ns = end_ns + late_ns
        self.due_ns = self._draw()
        return self._period_ns + late_ns

    def again(self, now_ns: int) -> None:
        """Nobody saw where it was when it was due: one more moment of the same weight."""
        self.due_ns = now_ns + int(self._period_ns * self._chance())

    def _draw(self) -> int:
        return self._start_ns + int(self._period_ns * self._chance())


class Sampler:
    """Takes samples on the main thread; the writer tells them apart and writes them."""

    def __init__(
        self,
        recorder: Recorder,
        period_ns: int = PERIOD_NS,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self._recorder = recorder
        # Of the thread's CPU time: waiting (for a lock, the GIL, the processor) is no Python.
        self._strata = Strata(period_ns, chance or Random().random, recorder.cpu())
        self._period_ns = period_ns
        self._last = recorder.now(), recorder.cpu()
        self._delay_ns = self.first_ns
        self._last_idle = False
        #: (call, stack, ns, whether it is a sample of its own, not a part of the one before):
        #: appended by the main thread, taken by the writer's.
        self._waiting: deque[tuple[int, Stack, int, bool]] = deque(maxlen=_WAITING)
        self._outside: deque[Sample] = deque()
        self._of_call: dict[int, dict[Stack, list[int]]] = {}
        self._table: Table = {}
        self._files: set[str] = set()
        self._folder = os.getcwd()
        self._flushes = 0

    @property
    def first_ns(self) -> int:
        """How long to wait for the first sample."""
        return max(self._strata.due_ns - self._last[1], _LEAST_NS)

    def sample(self, frame: FrameType | None, seen: Sequence[Stack] = ()) -> int:
        """Take a sample of the thread that runs `frame`, the caller's; returns the next delay.

        `seen` tells where it was meanwhile if this comes late.
        """
        recorder = self._recorder
        now, cpu = recorder.now(), recorder.cpu()
        before_ns, used = self._last
        call = scope.current(recorder)
        waits = call is not None and call.waiting
        if cpu >= self._strata.due_ns and (
            waits or (self._last_idle and 4 * (cpu - used) < 3 * (now - before_ns))
        ):
            # It waits, or did meanwhile, and was due some time before that: where is not known.
            self._strata.again(cpu)
        stands_for = self._strata.taken(cpu)
        late = cpu - used > self._delay_ns + LATE_NS
        if stands_for and "hot lines" not in recorder.off:
            try:
                self._take(frame, seen, stands_for, late)
            except Exception as error:
                recorder.fault("hot lines", error)
        self._last = now, cpu
        idle = (cpu - used) * _IDLE < now - before_ns
        self._delay_ns = max(self._strata.due_ns - cpu, self._period_ns if idle else _LEAST_NS)
        self._last_idle = self._delay_ns > self._strata.due_ns - cpu
        return self._delay_ns

    def _take(self, frame: FrameType | None, seen: Sequence[Stack], ns: int, late: bool) -> None:
        recorder = self._recorder
        if watch.recorder is not recorder:
            return
        call = scope.current(recorder)
        if call is None or not call.call or call.waiting:
            return
        stacks = seen or (stack_of(*before(frame) if late else (frame,)),)
        for number, stack in enumerate(stacks):
            if stack:
                self._waiting.append((call.call, stack, ns // len(stacks), number == 0))

    # --- on the thread that writes ----------------------------------------------------------------

    def ended(self, rows: bytes) -> None:
        """A tap of the recorder: calls that ended say whose samples there are."""
        self._sort_out()
        if not self._of_call:
            return
        spans = np.frombuffer(rows, SPAN)
        found = spans[np.isin(spans["id"], list(self._of_call)) & (spans["kind"] == Kind.CALL)]
        self._add(found[["id", "name", "phase"]].tolist())

    def news(self, last: bool) -> list[tuple[str, Any]]:
        """A source of the recorder: what is to be written. `last`: there will be no more."""
        self._sort_out()
        now_open = self._recorder.opened
        rows = [(call, row) for call in self._of_call if (row := now_open.get(call)) is not None]
        self._add([(call, row[2], row[4]) for call, row in rows])
        if len(self._of_call) > _CALLS:  # their rows were dropped
            self._of_call.clear()
        self._count_outside()
        self._flushes += 1
        due = last or self._flushes < _EVERY or self._flushes % _EVERY == 0
        if not self._table or not due:
            return []
        table, self._table = self._table, {}
        ops = dict(self._recorder.tables.ops)
        lines = [self._row(ops[key[0]], key, cell) for key, cell in table.items()]
        files = {line["file"] for line in lines} | {line["body_file"] for line in lines}
        sources = [found for file in sorted(files - self._files) if (found := _source(file))]
        self._files |= files
        return [("samples", [*sources, *lines])]

    def _sort_out(self) -> None:
        for _ in range(len(self._waiting)):
            call, stack, ns, whole = self._waiting.popleft()
            cell = self._of_call.setdefault(call, {}).setdefault(stack, [0, 0])
            cell[0] += whole
            cell[1] += ns

    def _add(self, calls: Sequence[tuple[int, int, int]]) -> None:
        """Count the samples of these calls, each with its entry of the names and its phase."""
        ops = dict(self._recorder.tables.ops) if calls else {}
        for call, name, phase in calls:
            op = ops.get(name)
            for stack, (samples, ns) in self._of_call.pop(call, {}).items():
                places = of_op(stack, op) if op is not None else None
                key = (name, phase, *places) if places is not None else None
                if key is not None and (key in self._table or len(self._table) < _LINES):
                    cell = self._table.setdefault(key, [0, 0])
                    cell[0] += samples
                    cell[1] += ns

    def add_outside(self, seen: Sequence[Sample]) -> None:
        """What was seen from outside, on other threads."""
        self._outside.extend(seen)

    def _count_outside(self) -> None:
        for _ in range(len(self._outside)):
            name, op, phase, stack, count = self._outside.popleft()
            places = of_op(stack, op)
            if places is not None:
                cell = self._table.setdefault((name, int(phase), *places), [0, 0])
                cell[0] += count
                cell[1] += count * (10**9 // RATE)

    def _row(self, op: Op, key: tuple[int, int, Place, Place], cell: list[int]) -> dict[str, Any]:
        _, phase, line, body = key
        return {
            "op": op.key,
            "phase": Phase(phase).name.lower(),
            "file": self._path(line.file),
            "line": line.line,
            "function": line.function,
            "body_file": self._path(body.file),
            "body_line": body.line,
            "samples": cell[0],
            "ns": cell[1],
        }

    def _path(self, file: str) -> str:
        """Absolute where it is a file, seen from where the program was started."""
        return file if file.startswith("<") else os.path.join(self._folder, file)


def _source(file: str) -> dict[str, Any] | None:
    """What tells later whether a file is still the same."""
    try:
        with open(file, "rb") as opened:
            data = opened.read()
    except (OSError, ValueError):
        return None
    return {"source": file, "size": len(data), "crc32": zlib.crc32(data)}
