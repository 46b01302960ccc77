"""The frames of all threads, asked for in a way that cannot deadlock."""

from __future__ import annotations

import gc
import sys
from types import FrameType


def current_frames() -> dict[int, FrameType]:
    """The innermost frame of each live thread, by the thread's ident.

    In older CPythons `sys._current_frames` may collect garbage while it holds a lock that starting
    and ending threads need (CPython issue 106883): a finalizer that lets another thread run then
    stops the process for good. So the collector waits.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collecting:
            gc.enable()
