"""`mx.engine`: handing operators over in segments."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from opscope import engine
from opscope.compat.mxnet.absent import lacks

__all__ = ["bulk", "set_bulk_size"]

__getattr__ = lacks("mx.engine", lambda: __all__)


class _Here(threading.local):
    size = 0
    scope: AbstractContextManager[None] | None = None


_here = _Here()


def set_bulk_size(size: int) -> int:
    """From now on gather up to `size` operators of this thread; returns the size before.

    What was gathered is handed over at once. Other threads do not see operators until then, or
    until this thread waits.
    """
    before, scope = _here.size, _here.scope
    if scope is not None:
        _here.scope = None
        scope.__exit__(None, None, None)
    _here.size = int(size)
    if _here.size > 1:
        _here.scope = engine.bulk(_here.size)
        _here.scope.__enter__()
    return before


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """As `set_bulk_size` for a block."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)


@contextmanager
def body() -> Iterator[None]:
    """The body of a custom operator: what it gathers is handed over at its end at the latest."""
    outer = _here.size, _here.scope
    _here.size, _here.scope = 0, None
    try:
        yield
    finally:
        if _here.scope is not None:
            set_bulk_size(0)
        _here.size, _here.scope = outer
