"""Whether any thread may be inside an operator of torch right now.

torch's profiler must not be emptied and started again while one is: the end of an operator that
began before writes to memory that is no longer its own, and the process crashes.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from opscope.hosts.torch.calls import is_run
from opscope.record import Clock
from opscope.record.patch import patched
from opscope.record.stacks import current_frames

_OURS = str(Path(__file__).parents[2]) + os.sep
_LIBRARY = str(Path(threading.__file__).parent) + os.sep
#: Files between a moment that is tried and the program.
_ON_THE_WAY = frozenset(
    str(Path(_OURS, name))
    for name in (
        *("hosts/torch/quiet.py", "hosts/torch/windows.py", "hosts/torch/mainly.py"),
        *("record/recorder.py", "record/stacks.py"),
    )
)
#: Files of ours that stand between two functions of a program.
_BETWEEN = ("cli/", "hosts/python/", "record/tasks.py", "record/waits.py", "profiler.py", "engine/")
#: Files of torch that call Python, and are called, without an operator in between.
_PLAIN = ("nn/modules/", "nn/functional.py", "utils/_contextlib.py")
#: Functions of the standard library in which a thread waits; "" is any function of the file.
_WAITS = {
    "threading.py": ("wait", "join", "_wait_for_tstate_lock"),
    "queue.py": ("get", "put"),
    "selectors.py": ("select",),
    "concurrent/futures/thread.py": ("_worker",),
    "multiprocessing/connection.py": ("wait", "_recv", "poll"),
    "socket.py": ("accept", "readinto"),
}
#: How long, in seconds, a thread must have used no CPU time to count as blocked.
_STILL_S = 0.002
#: In what the system tells of a thread: that it is blocked, and how often it was switched.
_STATE = re.compile(rb"^State:\s+[SD]", re.M)
_SWITCHES = re.compile(rb"ctxt_switches:\s+(\d+)")


class Quiet:
    """Looks at the stacks of all Python threads, and knows the annotations that are open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._torch = str(Path(sys.modules["torch"].__file__ or "").parent) + os.sep
        self._open: dict[int, int] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Inside the block open `record_function` blocks are known: they are in flight as well."""
        block = sys.modules["torch.autograd.profiler"].record_function

        def enter(original: Any) -> Any:
            def __enter__(self: Any) -> Any:
                opened[id(self)] = opened.get(id(self), 0) + 1
                return original(self)

            return __enter__

        def leave(original: Any) -> Any:
            def __exit__(self: Any, *args: Any) -> Any:
                try:
                    return original(self, *args)
                finally:
                    opened.pop(id(self), None)

            return __exit__

        opened = self._open
        with patched(block, "__enter__", enter), patched(block, "__exit__", leave):
            yield

    def now(self, *, interrupting: bool = False) -> bool:
        """True if no operator of torch can be running, on this thread or another.

        `interrupting`: this thread was interrupted wherever it stood, and must not have been in the
        middle of something of ours, for which it may hold a lock.
        """
        if self._open:
            return False
        here = current_frames().get(threading.get_ident())
        while here is not None and here.f_code.co_filename in _ON_THE_WAY:
            here = here.f_back
        if here is None or not self._passes(here):
            return False
        if interrupting and any(map(_busy, _stack(here))):
            return False
        return self.others()

    def others(self) -> bool:
        """The same of all threads but this one."""
        frames = current_frames()
        frames.pop(threading.get_ident(), None)
        unsure: list[int] = []
        for ident, top in frames.items():
            if not self._passes(top):
                return False
            if not _waits(top):
                unsure.append(ident)
        if not unsure:
            return True
        before = _blocked(unsure)
        used = [self._clock.cpu_of(ident) for ident in unsure]
        time.sleep(_STILL_S)
        return (
            before is not None
            and before == _blocked(unsure)
            and used == [self._clock.cpu_of(ident) for ident in unsure]
        )

    def _passes(self, top: FrameType) -> bool:
        """Whether nothing on a stack tells of an operator that is running."""
        for frame in _stack(top):
            code = frame.f_code
            if is_run(frame) or code.co_name == "__torch_dispatch__":
                return False
            file = code.co_filename
            if file.startswith(self._torch):
                inner = file[len(self._torch) :].replace(os.sep, "/")
                if not inner.startswith(_PLAIN):
                    return False
        return True


def _stack(top: FrameType) -> Iterator[FrameType]:
    frame: FrameType | None = top
    while frame is not None:
        yield frame
        frame = frame.f_back


def _blocked(idents: Iterable[int]) -> dict[int, list[bytes]] | None:
    """How often each of these threads was switched, by the system's number; None if one of them is
    not blocked, but running or merely without a core.

    Which thread of the system one is that `threading` did not start is not known: then all that are
    not known are looked at.
    """
    known = {thread.ident: thread.native_id for thread in threading.enumerate()}
    chosen = {known[ident] for ident in idents if ident in known}
    try:
        if not known.keys() >= set(idents):
            chosen |= set(map(int, os.listdir("/proc/self/task"))) - set(known.values())
        told = {
            task: Path(f"/proc/self/task/{task}/status").read_bytes() for task in chosen if task
        }
    except OSError:
        return None
    if not all(_STATE.search(text) for text in told.values()):
        return None
    return {task: _SWITCHES.findall(text) for task, text in told.items()}


def _ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


def _busy(frame: FrameType) -> bool:
    """Whether a frame is of ours and not one of those that merely stand between two of a
    program's: what it does, it may hold a lock for."""
    inner = frame.f_code.co_filename[len(_OURS) :].replace(os.sep, "/")
    return _ours(frame) and not inner.startswith(_BETWEEN)


def _waits(top: FrameType) -> bool:
    """Whether a thread stands in a wait of the standard library, or is one of ours."""
    code = top.f_code
    file = code.co_filename
    if _ours(top):
        return True
    if not file.startswith(_LIBRARY):
        return False
    inner = file[len(_LIBRARY) :].replace(os.sep, "/")
    if inner == "multiprocessing/pool.py":
        return code.co_name != "worker" or top.f_locals.get("func") is None
    return code.co_name in _WAITS.get(inner, ())
