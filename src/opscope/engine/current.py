"""The engine that arrays use, what becomes of it in a forked child, and at exit."""

from __future__ import annotations

import atexit
import os
import threading

from . import calls
from .engine import Engine
from .errors import EngineError
from .hooks import hooks
from .naive import NaiveEngine
from .threaded import ThreadedEngine, live

_lock = threading.Lock()
_engine: Engine | None = None
_forking: list[ThreadedEngine] = []


def get() -> Engine:
    """The engine in use; a threaded one is made at the first call. Any thread."""
    return _engine if _engine is not None else _first()


def _first() -> Engine:
    global _engine
    with _lock:
        if _engine is None:
            _engine = ThreadedEngine()
        return _engine


def use(
    kind: str = "threaded",
    workers: int | None = None,
    custom_on: str = "pool",
    idle_s: float = 5.0,
) -> Engine:
    """Finish the work of the engine in use and go on with a new one, which is returned.

    Blocks. Arrays and unreported failures move along. ValueError for an unknown kind, EngineError
    inside a task or the body of a custom operator.
    """
    global _engine
    if kind not in ("threaded", "naive"):
        raise ValueError(f"kind must be 'threaded' or 'naive', not {kind!r}")
    if calls.here.call is not None:
        raise EngineError("an engine cannot be replaced by what it runs")
    new = NaiveEngine() if kind == "naive" else ThreadedEngine(workers, custom_on, idle_s)
    old = _engine
    if old is not None:
        # Without the lock: a body that forks needs it, and this waits for bodies.
        old.stop()
        new.dropped = old.dropped  # the arrays that live know this deque
        new.failures = old.failures
    with _lock:
        _engine = new
    return new


def _before_fork() -> None:
    _lock.acquire()
    _forking[:] = live
    for engine in _forking:
        engine.before_fork()


def _after_fork_in_parent() -> None:
    for engine in _forking:
        engine.after_fork_in_parent()
    _forking.clear()
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    hooks.renew_lock()
    calls.forget_other_threads()
    for engine in _forking:
        engine.after_fork_in_child()
    _forking.clear()


def _finish() -> None:
    for engine in list(live):
        engine.finish()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
atexit.register(_finish)
