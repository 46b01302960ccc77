"""A sign of life on standard error while something takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

#: Work shorter than this shows nothing.
AFTER_S = 1.0


@contextmanager
def waiting(what: str, after_s: float = AFTER_S) -> Iterator[None]:
    """Show a moving bar with `what` beside it if the block runs longer than `after_s` seconds.

    On a terminal only, and gone when the block ends. The block runs on the caller's thread.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    bar.add_task(Text(what).plain, total=None)
    lock = threading.Lock()
    over = False

    def begin() -> None:
        with lock:
            if not over:
                bar.start()

    timer = threading.Timer(after_s, begin)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            bar.stop()
        sys.stderr.flush()
