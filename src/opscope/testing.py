"""For tests, ours and those of whoever extends opscope: a clock to move by hand, a host without a
framework, and a check that nothing stays hooked."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import Pool
from typing import Any

import numpy as np

from opscope.model import SPAN, Kind, Op, Phase, Sight
from opscope.record import Recorder, scope, watch
from opscope.record.patch import standing


class ManualClock:
    """Time that moves only when told to: `tick` is work, `idle` is waiting. All in ns.

    Give it to `profile(clock=...)` and every duration is exactly what the test says. CPU time is
    kept for each thread; time is one for all.
    """

    def __init__(self, start_ns: int = 1_000_000) -> None:
        self._now = start_ns
        self._cpu: dict[int, int] = {}
        self._lock = threading.Lock()

    def now(self) -> int:
        """See `Clock.now`."""
        return self._now

    def cpu(self) -> int:
        """See `Clock.cpu`."""
        return self._cpu.get(threading.get_ident(), 0)

    def cpu_of(self, thread: int) -> int:
        """See `Clock.cpu_of`."""
        return self._cpu.get(thread, 0)

    def wall(self) -> int:
        """See `Clock.wall`: the same as `now`."""
        return self._now

    def tick(self, ns: int) -> None:
        """The calling thread works for that long."""
        with self._lock:
            self._now += ns
            ident = threading.get_ident()
            self._cpu[ident] = self._cpu.get(ident, 0) + ns

    def idle(self, ns: int) -> None:
        """Time passes and nobody works."""
        with self._lock:
            self._now += ns


@dataclass(frozen=True, slots=True)
class FakeSpan:
    """A span for `FakeHost`. `owner` is the place of an earlier one in the list, None: no owner."""

    kind: Kind
    name: str
    start_ns: int
    end_ns: int
    owner: int | None = None
    lane: str = "main"
    phase: Phase = Phase.NONE
    flags: int = 0
    submitted_ns: int = 0
    submitted_lane: str = ""
    cpu_ns: int = -1


#: What a host that delivers spans of a kind says it sees.
_SEEN_AS = {
    Kind.CALL: "calls",
    Kind.OP: "sub-operators",
    Kind.TASK: "tasks",
    Kind.WAIT: "waits",
    Kind.DISPATCH: "dispatch",
    Kind.RUNTIME: "runtime",
    Kind.DEVICE: "device",
    Kind.RANGE: "ranges",
    Kind.STEP: "steps",
}


class FakeHost:
    """A host without a framework: delivers, late and all at once, the spans it was given.

    Without `sees` it claims to see the kinds of these spans.
    """

    module: str | None = None

    def __init__(
        self,
        spans: Sequence[FakeSpan] = (),
        *,
        name: str = "fake",
        sees: tuple[str, ...] | None = None,
    ) -> None:
        self.name = name
        self.spans = spans
        found = {_SEEN_AS[span.kind]: None for span in spans}
        self.sees = tuple(found) if sees is None else sees

    def probe(self) -> Sight:
        """See `Host.probe`."""
        return Sight(self.name, "1", self.sees, {"everything else": "there is no framework"})

    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        """See `Host.attach`."""
        try:
            yield
        finally:
            recorder.add(self._rows(recorder))

    def _rows(self, recorder: Recorder) -> np.ndarray[Any, np.dtype[Any]]:
        rows = np.zeros(len(self.spans), SPAN)
        for row, span in zip(rows, self.spans, strict=True):
            lane = recorder.lane((self.name, span.lane), span.lane)
            submitted = span.submitted_lane or span.lane
            row["id"] = recorder.next_id()
            row["owner"] = 0 if span.owner is None else rows[span.owner]["id"]
            row["name"] = (
                recorder.op(Op(self.name, "fake", span.name))
                if span.kind == Kind.CALL
                else recorder.name(span.name)
            )
            row["kind"], row["phase"], row["flags"] = span.kind, span.phase, span.flags
            row["lane"] = lane
            row["submitted_lane"] = recorder.lane((self.name, submitted), submitted)
            row["start_ns"], row["end_ns"] = span.start_ns, span.end_ns
            row["submitted_ns"], row["cpu_ns"] = span.submitted_ns, span.cpu_ns
        return rows


@contextmanager
def assert_restored() -> Iterator[None]:
    """Fails (AssertionError) when the block leaves anything hooked, patched or current."""
    before, held, collecting = _surroundings(), scope.held(), gc.isenabled()
    yield
    after = _surroundings()
    changed = [place for place in before if before[place] is not after[place]]
    assert not changed, f"still patched: {', '.join(changed)}"
    assert not standing, f"still patched: {standing}"
    assert gc.isenabled() is collecting, "garbage collection was switched on or off"
    assert watch.recorder is None, "somebody is still recording"
    assert scope.held() is held, "a call is still current"
    assert not scope.adopted, "a call is still taken to run on a thread"
    assert not scope.late, "a call is still waiting for its end"
    finders = [finder for finder in sys.meta_path if type(finder).__module__.startswith("opscope")]
    assert not finders, f"import hooks stay behind: {finders}"
    engine = sys.modules.get("opscope.engine.hooks")
    assert engine is None or not engine.hooks, f"engine hooks stay behind: {dict(engine.hooks)}"


def _surroundings() -> dict[str, Any]:
    """Everything of the standard library that opscope ever replaces."""
    return {
        "Thread.start": vars(threading.Thread)["start"],
        "Thread.join": vars(threading.Thread)["join"],
        "Condition.wait": vars(threading.Condition)["wait"],
        "ThreadPoolExecutor.submit": vars(ThreadPoolExecutor)["submit"],
        "time.sleep": time.sleep,
        "os._exit": os._exit,
        **{
            f"Pool.{name}": vars(Pool).get(name)
            for name in ("apply_async", "_map_async", "imap", "imap_unordered")
        },
    }
