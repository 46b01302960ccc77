"""Moments a watcher may listen to; a dict that is empty while nobody watches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

Hook = Callable[..., object]

MOMENTS = (
    "pushed",
    "started",
    "finished",
    "skipped",
    "call_began",
    "body_began",
    "body_ended",
    "call_ended",
    "wait_began",
    "wait_ended",
)

log = logging.getLogger("opscope.engine")


class Hooks(dict[str, tuple[Hook, ...]]):
    """Moment -> the functions told of it. A moment without listeners has no key.

    Guard each telling with `if "pushed" in hooks:`; that look-up is all that an unwatched program
    pays. Functions are called on the thread where the moment happens, without the engine's lock;
    they must not push or wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broken: list[tuple[str, Hook, Exception]] = []
        self._lock = threading.Lock()

    def add(self, moment: str, fn: Hook) -> None:
        """Call `fn` at every such moment from now on. Any thread. ValueError for an unknown one."""
        if moment not in MOMENTS:
            raise ValueError(f"no such moment: {moment!r} (known: {', '.join(MOMENTS)})")
        with self._lock:
            self[moment] = (*self.get(moment, ()), fn)

    def remove(self, moment: str, fn: Hook) -> None:
        """Stop calling `fn`; nothing happens if it was not there. Any thread."""
        with self._lock:
            kept = list(self.get(moment, ()))
            if fn in kept:
                kept.remove(fn)
            # A new tuple, so that a telling under way on another thread keeps its own.
            if kept:
                self[moment] = tuple(kept)
            else:
                self.pop(moment, None)

    def tell(self, moment: str, *facts: object) -> None:
        """Call the listeners in the order they were added. One that raises Exception is removed."""
        for fn in self.get(moment, ()):
            try:
                fn(*facts)
            except Exception as error:
                self._drop(moment, fn, error)

    def _drop(self, moment: str, fn: Hook, error: Exception) -> None:
        self.remove(moment, fn)
        with self._lock:
            # Several threads may be inside the same broken hook: it is reported once.
            if any(fn == other and moment == where for where, other, _ in self.broken):
                return
            self.broken.append((moment, fn, error))
        log.warning("hook %r at %r raised and was removed", fn, moment, exc_info=error)

    def renew_lock(self) -> None:
        """In a forked child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


hooks = Hooks()
