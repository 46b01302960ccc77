"""Forward calls that run again during the backward pass (activation checkpoints)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from opscope.model import Phase
from opscope.record.patch import patched
from opscope.record.scope import Frame

#: The mark of a backward call that began without gradients.
_WITHOUT = (-1, -1)


class Recompute:
    """Which phase a forward call is in, by where it runs."""

    def __init__(self) -> None:
        self._here = threading.local()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block forward calls of this thread are recomputation."""
        self._here.depth = getattr(self._here, "depth", 0) + 1
        try:
            yield
        finally:
            self._here.depth -= 1

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

    def entered(self, frame: Frame, torch: Any) -> None:
        """A backward call began. A forward inside that has gradients on, where it itself began
        without, is run for their sake."""
        if not torch.is_grad_enabled():
            frame.mark = _WITHOUT

    def phase(self, frame: Frame | None, torch: Any) -> Phase:
        """The phase of a forward call that begins inside that frame."""
        if getattr(self._here, "depth", 0):
            return Phase.RECOMPUTE
        if frame is not None and frame.phase != Phase.NONE and frame.phase != Phase.FORWARD:
            if frame.phase == Phase.RECOMPUTE:
                return Phase.RECOMPUTE
            if frame.mark is _WITHOUT and torch.is_grad_enabled():
                return Phase.RECOMPUTE
        return Phase.FORWARD
