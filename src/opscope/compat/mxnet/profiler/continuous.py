"""Writing the file again and again while the profiler runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from opscope.record import tasks

log = logging.getLogger("opscope")

#: Writing may take at most one part in this of the time: a document holds everything so far.
_SHARE = 10


class Continuous(threading.Thread):
    """Calls `write` every `period_s`, less often where that takes long, until `stop`."""

    def __init__(self, write: Callable[[], None], period_s: float) -> None:
        super().__init__(name="opscope-mxnet-dump", daemon=True)
        self._write = write
        self.period_s = period_s
        self._over = threading.Event()

    def run(self) -> None:
        pause_s = self.period_s
        while not self._over.wait(pause_s):
            before = time.monotonic()
            try:
                self._write()
            except Exception as error:
                log.error("opscope: mx.profiler stops writing its file: %s", error)
                return
            pause_s = max(self.period_s, (_SHARE - 1) * (time.monotonic() - before))

    def stop(self) -> None:
        """No more writing begins. Does not block."""
        self._over.set()


tasks.machinery.add(Continuous)
