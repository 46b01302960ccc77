"""Whose turns of an event loop are: an asyncio task that a call made works for that call, though
the call itself is suspended meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from opscope.hosts.torch.operators import HOST
from opscope.model import SPAN, Kind, Rows
from opscope.record import Recorder, scope, watch
from opscope.record.patch import patched

#: Turns kept until the next delivery; more are forgotten, oldest first.
_MOST = 1_000_000


class Turns:
    """Notes each turn that a loop gives to something that was made inside a call: like a task, but
    for the one who joins events and never shown."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._taken: deque[tuple[int, ...]] = deque(maxlen=_MOST)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Inside the block turns are noted."""
        with patched(asyncio.Handle, "_run", self._run):
            yield

    def rows(self) -> Rows:
        """The turns since the last time, as tasks with negative ids."""
        count = len(self._taken)
        return np.array([self._taken.popleft() for _ in range(count)], SPAN)

    def _run(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        recorder, taken = self.recorder, self._taken

        def run(handle: Any) -> Any:
            if watch.recorder is not recorder or HOST in recorder.off:
                return original(handle)
            try:
                frame = scope.held_in(handle._context)
                start_ns = recorder.now()
            except Exception as error:
                recorder.fault(HOST, error)
                return original(handle)
            try:
                return original(handle)
            finally:
                if frame is not None and frame.recorder is recorder and frame.call:
                    lane, end_ns = recorder.here().lane, recorder.now()
                    number = -1 - len(taken)
                    taken.append(
                        (number, frame.call, 0, Kind.TASK, frame.phase, 0, lane, lane,
                         start_ns, end_ns, 0, -1)
                    )  # fmt: skip

        return run
