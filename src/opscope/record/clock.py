"""Where time comes from: monotonic nanoseconds, CPU nanoseconds of a thread, and the wall clock."""

from __future__ import annotations

import sys
import threading
import time
from typing import Protocol


class Clock(Protocol):
    """What the recorder asks. All in integer nanoseconds; -1 where a CPU time cannot be had."""

    def now(self) -> int:
        """Monotonic time; the zero is arbitrary but the same for all processes of a machine."""

    def cpu(self) -> int:
        """CPU time of the calling thread."""

    def cpu_of(self, thread: int) -> int:
        """CPU time of another thread, by its ident; -1 when it is gone."""

    def wall(self) -> int:
        """Time since 1970."""


class SystemClock:
    """The clocks of the system; `now` and `cpu` are bare functions, with nothing before them."""

    now = staticmethod(time.perf_counter_ns)
    cpu = staticmethod(time.thread_time_ns)
    wall = staticmethod(time.time_ns)

    def cpu_of(self, thread: int) -> int:
        """CPU time of the thread with that ident, -1 where the system does not tell."""
        try:
            return time.clock_gettime_ns(_clock_of(thread))
        except (AttributeError, LookupError, OSError, OverflowError):
            return -1


def _clock_of(thread: int) -> int:
    """The system's clock of that thread's CPU time. Raises where there is none."""
    if sys.platform == "linux":
        # By the kernel's number of the thread: pthread_getcpuclockid reads the memory of a thread
        # that may be gone by now. 6 is CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of the kernel.
        native = {found.ident: found.native_id for found in threading.enumerate()}[thread]
        if native is not None:
            return (~native << 3) | 6
    return time.pthread_getcpuclockid(thread)
