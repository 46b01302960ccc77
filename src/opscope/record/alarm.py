"""The alarm clock of the process (SIGALRM), ours only as long as the program does not want it.

One alarm at a time is set, anew from the handler. It interrupts nothing: system calls go on, and
the handler runs between two instructions of the main thread.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType
from typing import Any

from opscope.record.patch import patched

#: No alarm is set for less than this; 0 would switch it off.
_LEAST_NS = 10_000
#: An alarm that is overdue by this much is set again: an exception may have cut its handler short.
_OVERDUE_NS = 1_000_000_000
#: An alarm of ours may still arrive this long after it was taken back.
_ON_ITS_WAY_NS = 50_000_000


class Alarm:
    """Calls `ring(frame)` when the alarm that was set goes off; its answer is the next delay in ns.

    `gave_way` is told, once, when the program wants alarms for itself: from then on there are none.
    """

    def __init__(
        self, ring: Callable[[FrameType | None], int], gave_way: Callable[[str], None]
    ) -> None:
        self._ring = ring
        self._gave_way = gave_way
        self._handler = self._rang
        self._patches = ExitStack()
        self._due_ns = self._ended_ns = self._pid = 0
        self._theirs = self._held = False
        self._changing = threading.RLock()
        self.on = False

    def start(self, delay_ns: int) -> str:
        """Set the first alarm. Returns why that cannot be, "" where it can. Main thread only."""
        why = _refusal()
        if why:
            return why
        self._pid = os.getpid()
        _signal(signal.SIGALRM, self._handler)
        signal.siginterrupt(signal.SIGALRM, False)
        self.on = True
        for name, wants in _WANTS.items():
            self._patches.enter_context(patched(signal, name, partial(self._yielding, wants)))
        for name in ("execv", "execve"):
            self._patches.enter_context(patched(os, name, self._silent))
        # It ends with any signal that has a handler: ours would end it too.
        self._patches.enter_context(patched(signal, "pause", self._silent))
        # An alarm that goes off without a handler ends the process.
        atexit.register(self.stop)
        self._set(delay_ns)
        return ""

    def stop(self) -> None:
        """No more alarms, and all is as it was. Any thread; also in a forked child."""
        atexit.unregister(self.stop)
        self._let_go()
        self._patches.close()

    def revive(self) -> None:
        """Set the alarm again where it is long overdue. Any thread."""
        if time.perf_counter_ns() - self._due_ns > _OVERDUE_NS:
            self._set(_LEAST_NS)

    def _set(self, delay_ns: int) -> None:
        delay_ns = max(delay_ns, _LEAST_NS)
        with self._changing:  # nobody sets one when the handler has just been taken away
            if self.on and not self._held and signal.getsignal(signal.SIGALRM) == self._handler:
                self._due_ns = time.perf_counter_ns() + delay_ns
                _setitimer(signal.ITIMER_REAL, delay_ns / 1e9)

    def _let_go(self, *, theirs: bool = False) -> None:
        """No more alarms of ours. `theirs`: the program is about to set one, on this thread."""
        if os.getpid() != self._pid:  # a thread that is not in this child may have held it
            self._changing = threading.RLock()
        with self._changing:
            if not self.on:
                return
            self.on = False
        self._ended_ns = time.perf_counter_ns()
        if os.getpid() == self._pid:  # a forked child has inherited no alarm, but the handler
            _setitimer(signal.ITIMER_REAL, 0)
        try:
            self._restore()
        except ValueError:  # only the main thread may: there the handler does it
            self._theirs = theirs
            if not theirs:
                _setitimer(signal.ITIMER_REAL, _LEAST_NS / 1e9)

    def _restore(self) -> None:
        if signal.getsignal(signal.SIGALRM) == self._handler:
            # To ignore it first takes back one that is on its way, which would end the process.
            _signal(signal.SIGALRM, signal.SIG_IGN)
            _signal(signal.SIGALRM, signal.SIG_DFL)

    def _rang(self, number: int, frame: FrameType | None) -> None:
        if not self.on:
            self._not_ours()
            return
        delay_ns = _LEAST_NS * 1000
        try:
            delay_ns = self._ring(frame)
        finally:
            self._set(delay_ns)

    def _not_ours(self) -> None:
        """It rang after the end: one that was on its way, or to make us go, or for the program."""
        theirs = self._theirs and time.perf_counter_ns() - self._ended_ns > _ON_ITS_WAY_NS
        if not self._theirs or theirs:
            self._restore()
        if theirs:
            signal.raise_signal(signal.SIGALRM)

    def _yielding(self, wants: Callable[..., bool], original: Callable[..., Any]) -> Any:
        """The same function, before which we let go of the alarm if it is about that."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.on and wants(*args, **kwargs):
                self._give_way(original.__name__)
            return original(*args, **kwargs)

        return call

    def _give_way(self, name: str) -> None:
        with suppress(Exception):
            self._let_go(theirs=True)
            self._gave_way(name)

    def _silent(self, original: Callable[..., Any]) -> Any:
        """An `os.exec*`: the alarm would live on in the next program, which has no handler."""

        def call(*args: Any, **kwargs: Any) -> Any:
            here = self.on and os.getpid() == self._pid
            if here:
                with self._changing:
                    self._held = True
                    _setitimer(signal.ITIMER_REAL, 0)
            try:
                return original(*args, **kwargs)
            finally:  # an exec that failed, or a pause that ended
                if here:
                    self._held = False
                    self._set(_LEAST_NS)

        return call


def _refusal() -> str:
    if _setitimer is None:
        return "this system has no timer signals"
    if threading.current_thread() is not threading.main_thread():
        return "recording was not started on the main thread, and only that one can take signals"
    if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        return "the program handles SIGALRM itself"
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        return "the program has set an alarm itself"
    return ""


def _signal_wants(number: Any = 0, *rest: Any, **more: Any) -> bool:
    return bool(number == signal.SIGALRM)


def _timer_wants(which: Any = -1, *rest: Any, **more: Any) -> bool:
    return bool(which == signal.ITIMER_REAL)


def _always(*args: Any, **kwargs: Any) -> bool:
    return True


_WANTS: dict[str, Callable[..., bool]] = {
    "signal": _signal_wants, "siginterrupt": _signal_wants, "setitimer": _timer_wants,
    "alarm": _always,
}  # fmt: skip

_signal = signal.signal
_setitimer: Any = getattr(signal, "setitimer", None)
