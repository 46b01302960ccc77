"""The host itself: nothing to hook, but running calls to find."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from types import FrameType

from opscope.hosts.python.block import entries
from opscope.hosts.python.operators import HOST
from opscope.hosts.python.steps import stepwise, suspended
from opscope.hosts.python.wrappers import FUNCTION_CODE, GENERATOR_CODE
from opscope.model import Phase, Sight
from opscope.record import InFlight, Recorder, scope
from opscope.record.adopt import everywhere
from opscope.record.scope import Frame

_CODES = frozenset((FUNCTION_CODE, GENERATOR_CODE, stepwise.__code__))


class PythonHost:
    """Functions, generators, coroutines and blocks marked with `opscope.custom_op`."""

    name = HOST
    module: str | None = None

    def probe(self) -> Sight:
        """See `Host.probe`."""
        return Sight(
            HOST,
            platform.python_version(),
            ("calls", "tasks", "waits", "cpu"),
            {
                "locks": "a bare lock cannot be watched; waiting for it is told from CPU time",
                "own queues": "work that reaches a thread by a queue of the program's own belongs "
                "to nobody, unless it was wrapped with opscope.carry",
                "suspended at start": "a marked generator or coroutine that was suspended when "
                "recording began is seen from its next step on",
            },
        )

    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        """See `Host.attach`."""
        recorder.in_flight.append(lambda: _running(recorder))
        yield


def _running(recorder: Recorder) -> Iterator[InFlight]:
    """Marked functions, driven generators and open blocks that are on some thread's stack now."""
    if HOST in recorder.off:
        return
    for steps in suspended(recorder):
        used = steps.used_so_far
        asleep_ns = steps.asleep_ns
        yield InFlight(0, 0, -1, Phase.NONE, steps.frame, steps.take, used, asleep_ns)
    blocks = entries()
    for thread, depth, frame in everywhere():
        for entry in blocks.pop(frame, ()):
            name = entry.marked().name_in(recorder)
            yield InFlight(thread, depth, name, Phase.NONE, entry.frame, entry.take)
        if frame.f_code is FUNCTION_CODE:
            found = _function(recorder, thread, depth, frame)
        elif frame.f_code in _CODES:
            found = _step(recorder, thread, depth, frame)
        else:
            continue
        if found is not None:
            yield found
    for entry in chain.from_iterable(blocks.values()):
        # In a generator that stands still, or entered and left by hand.
        yield InFlight(0, 0, -1, Phase.NONE, entry.frame, entry.take, _unknown)


def _unknown() -> int:
    return -1


def _function(recorder: Recorder, thread: int, depth: int, wrapper: FrameType) -> InFlight | None:
    found = wrapper.f_locals
    if "over" in found:
        return None
    known = scope.late.get(wrapper) or found.get("frame")
    if known is None and found.get("recorder", recorder) is recorder:
        return None  # it is about to begin its call itself
    name = found["marked"].name_in(recorder)
    return InFlight(thread, depth, name, Phase.NONE, known, partial(_end_later, wrapper))


def _step(recorder: Recorder, thread: int, depth: int, wrapper: FrameType) -> InFlight | None:
    steps = wrapper.f_locals.get("steps")
    if steps is None or not steps.inside:
        return None
    name = steps.marked.name_in(recorder)
    return InFlight(thread, depth, name, Phase.NONE, steps.frame, steps.take)


def _end_later(wrapper: FrameType, frame: Frame) -> None:
    """What the wrapper shall end when its function returns."""
    scope.late[wrapper] = frame
