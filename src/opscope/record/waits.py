"""Waits of the standard library that a call can be seen in: sleep, join, conditions.

`Future.result`, `Event.wait`, `Queue.get`, semaphores and barriers all wait on a condition. A bare
lock cannot be watched; its waiting shows as thread CPU time that was not used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from opscope.record import scope, watch
from opscope.record.patch import patched
from opscope.record.recorder import Recorder
from opscope.record.scope import Frame


@contextmanager
def seen() -> Iterator[None]:
    """Inside the block the waits of calls are recorded as spans."""
    with ExitStack() as stack:
        for owner, name, shown in (
            (time, "sleep", "sleep"),
            (threading.Thread, "join", "join"),
            (threading.Condition, "wait", "wait"),
        ):
            stack.enter_context(patched(owner, name, partial(_waiting, shown)))
        yield


def _waiting(shown: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*args: Any, **kwargs: Any) -> Any:
        began = _begin(shown)
        if began is None:
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            _end(*began)

    return wait


def _begin(shown: str) -> tuple[Recorder, Frame, int, int] | None:
    """The call that begins to wait, what to call it, and when; None: it is not to be recorded."""
    recorder = watch.recorder
    if recorder is None or "waits" in recorder.off:
        return None
    try:
        frame = scope.current(recorder)
        if frame is None or not frame.call or frame.waiting:
            return None
        name = recorder.name(shown)
        return recorder, frame, name, scope.wait_begin(frame)
    except Exception as error:
        recorder.fault("waits", error)
        return None


def _end(recorder: Recorder, frame: Frame, name: int, start_ns: int) -> None:
    try:
        if frame.recorder is recorder and not recorder.closed:
            scope.wait_end(frame, name, start_ns)
        else:
            scope.wait_over(frame)
    except Exception as error:
        recorder.fault("waits", error)
