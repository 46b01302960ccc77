"""`with custom_op("name")`: a stretch of code as a custom operator."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from opscope.hosts.python.crossing import generator_of, line_at, yields_between
from opscope.hosts.python.operators import HOST, Marked, end, known_block, operator
from opscope.model import Flag
from opscope.record import Recorder, watch
from opscope.record.scope import Frame

F = TypeVar("F", bound=Callable[..., Any])

_CONTEXTLIB = contextlib.ExitStack.enter_context.__code__.co_filename


class Entry:
    """One time that a block was entered: by whom, at which instruction, and its call."""

    __slots__ = ("__weakref__", "began_at", "block", "caller", "frame", "thread")

    def __init__(self, block: Block, caller: FrameType) -> None:
        self.block = block
        self.caller = caller
        self.began_at = caller.f_lasti
        self.thread = threading.get_ident()
        self.frame: Frame | None = None

    def marked(self) -> Marked:
        """The operator: one for all blocks of the name."""
        name, code = self.block.name, self.caller.f_code
        return known_block(name) or operator(
            name, name, "block", file=code.co_filename, line=line_at(code, self.began_at)
        )

    def begin(self, recorder: Recorder) -> None:
        """Begin the call. Never raises."""
        try:
            self.take(self.marked().begin(recorder))
        except Exception as error:
            recorder.fault(HOST, error)

    def take(self, frame: Frame | None) -> None:
        """This is the block's call from now on."""
        if frame is not None:
            frame.yielding = generator_of(self.caller)
        self.frame = frame


#: Every block that is open anywhere, in the order of entering; by the entry's own id. Weakly, for
#: an entry leads to all that a generator holds which nobody may ever resume.
_entered: dict[int, weakref.ref[Entry]] = {}


def entries() -> dict[FrameType, list[Entry]]:
    """The blocks that are open now, by the code that entered them, in that order."""
    found: dict[FrameType, list[Entry]] = {}
    for entry in [seen() for seen in list(_entered.values())]:
        if entry is not None:
            found.setdefault(entry.caller, []).append(entry)
    return found


class Block:
    """What `custom_op("name")` gives: a decorator, and a context manager that may be used again.

    One object may be entered many times at once, nested and on several threads.
    """

    def __init__(self, name: str, mark: Callable[[Any, str], Any]) -> None:
        self.name = name
        self._mark = mark
        self._open: list[Entry] = []

    def __call__(self, target: F) -> F:
        marked: F = self._mark(target, self.name)
        return marked

    def __enter__(self) -> None:
        entry = Entry(self, _caller())
        recorder = watch.recorder
        if recorder is not None and HOST not in recorder.off:
            entry.begin(recorder)
        _entered[id(entry)] = weakref.ref(entry)
        self._open.append(entry)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        entry = self._close(_caller())
        frame = entry.frame
        if frame is None:
            return
        # Closing a generator early is an ordinary way to end it.
        flags = Flag(0) if kind is None or kind is GeneratorExit else Flag.FAILED
        if frame.yielding is not None and yields_between(entry.caller, entry.began_at, trace):
            flags |= Flag.CROSSED
        end(frame, flags)
        frame.closed = True

    def _close(self, caller: FrameType) -> Entry:
        """The entry that this code made last; else this thread; else anybody."""
        entry = self._open[-1]
        if entry.caller is not caller:
            here = threading.get_ident()
            latest_first = list(self._open)[::-1]
            entry = max(latest_first, key=lambda e: (e.caller is caller, e.thread == here))
        self._open.remove(entry)
        _entered.pop(id(entry), None)
        return entry


def _caller() -> FrameType:
    """The code that enters or leaves the block, be it by way of an ExitStack."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == _CONTEXTLIB and frame.f_back is not None:
        frame = frame.f_back
    return frame
