"""A second look at the main thread while its alarm is late.

Python runs the handler of an alarm only at a call or at the end of a loop. After a long `a @ b`
that may be lines further on. A thread of ours looks where the main thread is while it works outside
of the GIL; it sleeps, by a timer that every handler sets anew, as long as no alarm is late.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from opscope.record import tasks
from opscope.record.places import Stack, stack_of
from opscope.record.stacks import current_frames

#: An alarm is late from here on; then we look this often, and so often at most.
LATE_NS, _AGAIN_NS, _MOST = 100_000, 2_000_000, 1_000
_CLOCK_MONOTONIC, _CLOEXEC = 1, 0o2000000


class Lookout(threading.Thread):
    """Where `timer` is None, which means that the system has no such timers, it does nothing."""

    def __init__(self) -> None:
        super().__init__(name="opscope-lookout", daemon=True)
        self._watched = threading.get_ident()
        self._timer = _timer()
        self._pid = os.getpid()
        self._late_ns = 0  # from when on the alarm that is awaited is late
        self._seen: list[Stack] = []
        self._over = False

    def begin(self) -> None:
        """Begin to watch the calling thread."""
        if self._timer is not None:
            tasks.machinery.add(Lookout)
            self.start()

    def expect(self, delay_ns: int) -> None:
        """The watched thread: the next alarm is due after `delay_ns`."""
        self._seen = []
        self._late_ns = time.perf_counter_ns() + delay_ns + LATE_NS
        if self._timer is not None:
            self._timer.set(delay_ns + LATE_NS, _AGAIN_NS)

    def seen(self) -> list[Stack]:
        """The watched thread: where it was, again and again, while this alarm was late."""
        return self._seen

    def end(self) -> None:
        """Look no more. Any thread; also in a forked child, which shares the timer."""
        timer, self._timer = self._timer, None
        self._over = True
        if timer is None:
            return
        if os.getpid() == self._pid:
            timer.set(1, 0)
            if self.is_alive() and threading.current_thread() is not self:
                self.join()
        timer.close()

    def run(self) -> None:
        """Sleep until an alarm is late, and look."""
        with suppress(Exception):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            timer = self._timer
            while timer is not None and not self._over:
                timer.wait()
                # Else the handler has run since the timer went off: all is well.
                if time.perf_counter_ns() >= self._late_ns and len(self._seen) < _MOST:
                    frame = current_frames().get(self._watched)
                    self._seen.append(stack_of(frame))
                    del frame


class _TimerFile:
    """A timer that a thread can wait for, and another set meanwhile."""

    def __init__(self, library: Any, spec: Callable[..., Any]) -> None:
        self._set = library.timerfd_settime
        self._spec = spec
        self._file = library.timerfd_create(_CLOCK_MONOTONIC, _CLOEXEC)
        if self._file < 0:
            raise OSError("no timer can be had")

    def set(self, delay_ns: int, again_ns: int) -> None:
        """Go off after `delay_ns`, and then every `again_ns` (0: once)."""
        self._set(
            self._file, 0, self._spec(*divmod(again_ns, 10**9), *divmod(delay_ns, 10**9)), None
        )

    def wait(self) -> None:
        """Sleep until it goes off."""
        os.read(self._file, 8)

    def close(self) -> None:
        os.close(self._file)


def _timer() -> _TimerFile | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        import ctypes

        spec = ctypes.c_long * 4  # struct itimerspec: interval and value, each in s and ns
        # PyDLL keeps the GIL: setting a timer is quicker than giving it up and waiting for it.
        return _TimerFile(ctypes.PyDLL(None), spec)
    except (ImportError, OSError, AttributeError):
        return None
