"""When the file is written: when asked, again and again, and at the end of the process."""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress

from opscope import engine
from opscope.compat.mxnet.profiler import aggregate, document
from opscope.compat.mxnet.profiler.continuous import Continuous
from opscope.compat.mxnet.profiler.marks import timeline
from opscope.compat.mxnet.profiler.switch import log, recording


class Output:
    """What has been written and shown, and the thread that writes while the profiler runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen = aggregate.Seen()
        self.thread: Continuous | None = None
        self.due = False  # the end of the process writes what may be in no file yet

    def write(self) -> None:
        """Write everything recorded so far. Blocks; OSError where it cannot be written."""
        with self.lock:
            document.write(recording.config.filename, recording.session(), timeline)

    def follow(self, running: bool) -> None:
        """Write again and again, or not, as the configuration says."""
        thread, config = self.thread, recording.config
        wanted = running and config.continuous
        if thread is not None and not (wanted and thread.period_s == config.period_s):
            thread.stop()
            thread = None
        if wanted and (thread is None or not thread.is_alive()):
            thread = Continuous(self.write, config.period_s)
            thread.start()
        self.thread = thread


#: The one there is; a forked child clears it.
output = Output()


def _at_exit() -> None:
    if output.due:
        # Failures of operators nobody has waited for are nobody's now.
        with suppress(Exception):
            engine.waitall()
        try:
            output.write()
        except Exception as error:
            log.error("opscope: mx.profiler could not write its file: %s", error)
    recording.end()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=output.__init__)  # type: ignore[misc]
