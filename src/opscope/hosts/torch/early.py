"""Calls that were running when the hooks were put in, and so have none around them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from opscope.hosts.torch.calls import is_run
from opscope.hosts.torch.operators import HOST, Operators, Watched
from opscope.model import Flag, Phase
from opscope.record import InFlight, Recorder, everywhere, on_stacks, scope, tasks
from opscope.record.scope import Frame

#: How often, in seconds, to look whether such a call is over. Only while there is one.
_LOOK_S = 0.002


class Early:
    """Finds them by the code of their functions, once, and ends each when it has left its thread's
    stack. That is a moment after it ended, so they are flagged as incomplete."""

    def __init__(self, recorder: Recorder, operators: Operators) -> None:
        self.recorder = recorder
        self.codes = _codes(operators)
        self.running: list[tuple[int, FrameType, Frame]] = []
        self._over = threading.Event()
        self._looked = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Inside the block such calls have a row."""
        self.recorder.in_flight.append(self._find)
        try:
            yield
        finally:
            self._over.set()
            self.running.clear()

    def _find(self) -> Iterator[InFlight]:
        known = {id(found): frame for _, found, frame in self.running}
        for thread, depth, found in on_stacks(frozenset(self.codes)):
            op, phase = self.codes[found.f_code]
            frame = known.get(id(found))
            if frame is not None or not (self._looked or _hooked(found)):
                name = op.entry(self.recorder)
                taker = _Taker(self, thread, found)
                yield InFlight(thread, depth, name, phase, frame, taker)
        self._looked = True

    def look(self) -> None:
        """End what is over, until all is. On a thread of its own."""
        try:
            while self.running and not self._over.wait(_LOOK_S):
                on = {id(found) for _, _, found in everywhere()}
                for entry in [entry for entry in self.running if id(entry[1]) not in on]:
                    scope.leave(entry[2], Flag.INCOMPLETE, -1)
                    self.running.remove(entry)
        except Exception as error:
            self.recorder.fault(HOST, error)


class _Looker(threading.Thread):
    """Machinery: it belongs to no call."""


class _Taker:
    """Keeps the frame that was made for a call that was found."""

    def __init__(self, early: Early, thread: int, found: FrameType) -> None:
        self._early, self._thread, self._found = early, thread, found

    def __call__(self, frame: Frame) -> None:
        self._early.running.append((self._thread, self._found, frame))
        if len(self._early.running) == 1:
            tasks.machinery.add(_Looker)
            _Looker(target=self._early.look, name="opscope-early", daemon=True).start()


def _codes(operators: Operators) -> dict[CodeType, tuple[Watched, Phase]]:
    """Code that runs in calls of one operator only."""
    codes: dict[CodeType, tuple[Watched, Phase]] = {}
    shared: set[CodeType] = set()
    for function, op, phase in operators.code_owners():
        code = getattr(function, "__code__", None)
        if code is None:
            code = getattr(type(function).__call__, "__code__", None)
        if code is not None and codes.setdefault(code, (op, phase)) != (op, phase):
            shared.add(code)
    return {code: found for code, found in codes.items() if code not in shared}


def _hooked(found: FrameType) -> bool:
    """Whether the call has a hook around it: it began after the hooks were put in."""
    frame: FrameType | None = found
    for _ in range(8):
        frame = frame.f_back if frame is not None else None
        if frame is not None and is_run(frame):
            return True
    return False
