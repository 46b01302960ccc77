"""Forward calls that run again during the backward pass (activation checkpoints)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from opscope.attribution.late import Events, Role
from opscope.importers.torch_names import RECOMPUTE
from opscope.model import Phase
from opscope.record import Recorder, watch
from opscope.record.patch import patched
from opscope.record.scope import Frame

#: The mark of a backward call that began without gradients.
_WITHOUT = (-1, -1)


#: Stretches kept until they are asked for; more are forgotten, oldest first.
_MOST = 100_000


class Recompute:
    """Which phase a forward call is in, by where it runs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        #: How many threads, about, are at it; 0 saves everybody else a closer look.
        self.anywhere = 0
        self._here = threading.local()
        self._stretches: deque[tuple[int, int, int]] = deque(maxlen=_MOST)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block forward calls of this thread are recomputation."""
        recorder = self.recorder
        self.anywhere += 1
        self._here.depth = getattr(self._here, "depth", 0) + 1
        start_ns = recorder.now()
        try:
            yield
        finally:
            self.anywhere -= 1
            self._here.depth -= 1
            if watch.recorder is recorder:
                self._stretches.append((recorder.here().lane, start_ns, recorder.now()))

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Inside the block checkpoints say when they compute again."""
        checkpoint = import_module("torch.utils.checkpoint")
        frame = getattr(checkpoint, "_CheckpointFrame", None)
        if frame is None:
            yield
            return
        with patched(frame, "__init__", self._frame_init):
            yield

    def _frame_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(frame: Any, recompute_fn: Any, *args: Any, **kwargs: Any) -> None:
            def recompute(*args: Any, **kwargs: Any) -> Any:
                with self.running():
                    return recompute_fn(*args, **kwargs)

            original(frame, recompute, *args, **kwargs)

        return init

    def entered(self, frame: Frame, gradients: bool) -> None:
        """A backward call began. A forward inside that has gradients on, where it itself began
        without, is run for their sake."""
        if not gradients:
            frame.mark = _WITHOUT

    def phase(self, frame: Frame | None, gradients: bool) -> Phase:
        """The phase of a forward call that begins inside that frame."""
        if getattr(self._here, "depth", 0):
            return Phase.RECOMPUTE
        if frame is not None and frame.phase == Phase.RECOMPUTE:
            return Phase.RECOMPUTE
        if frame is not None and frame.mark == _WITHOUT and gradients:
            return Phase.RECOMPUTE
        return Phase.FORWARD

    def events(self, recorder: Recorder, from_ns: int, to_ns: int) -> Events:
        """The stretches of that time as annotations, for calls that no hook sees. They are shown:
        that a checkpoint computes again is worth knowing."""
        count = len(self._stretches)
        found = [self._stretches.popleft() for _ in range(count)]
        kept = [each for each in found if from_ns <= each[1] <= to_ns]
        name = recorder.name(RECOMPUTE) if kept else 0
        column = np.array([(name, *each) for each in kept], np.int64).reshape(-1, 4).T
        size = len(kept)
        zero, none = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        role = np.full(size, int(Role.RANGE), np.int64)
        name_, lane, start, end = column
        return Events(name_, lane, start, end, role, zero, zero, none, zero, zero)
