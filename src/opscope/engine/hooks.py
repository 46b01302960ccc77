"""Moments a watcher may listen to; all of them are None while nobody watches."""

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

    Each moment is also an attribute: None, or what to call when it comes. An unwatched program pays
    for nothing but looking there: `told = hooks.pushed`, then `if told is not None: told(task)`.
    Functions are called on the thread where the moment happens, without the engine's lock; they
    must not push or wait.
    """

    __slots__ = ("_direct", "_lock", "broken", *MOMENTS)

    pushed: Hook | None
    started: Hook | None
    finished: Hook | None
    skipped: Hook | None
    call_began: Hook | None
    body_began: Hook | None
    body_ended: Hook | None
    call_ended: Hook | None
    wait_began: Hook | None
    wait_ended: Hook | None

    def __init__(self) -> None:
        super().__init__()
        self.broken: list[tuple[str, Hook, Exception]] = []
        self._direct: list[Hook] = []
        self._lock = threading.Lock()
        for moment in MOMENTS:
            setattr(self, moment, None)

    def add(self, moment: str, fn: Hook, *, direct: bool = False) -> None:
        """Call `fn` at every such moment from now on. Any thread. ValueError for an unknown one.

        `direct`: it lets no Exception out (see `failed`), so nothing has to stand around it.
        """
        if moment not in MOMENTS:
            raise ValueError(f"no such moment: {moment!r} (known: {', '.join(MOMENTS)})")
        with self._lock:
            if direct:
                self._direct.append(fn)
            self._set(moment, (*self.get(moment, ()), fn))

    def remove(self, moment: str, fn: Hook) -> None:
        """Stop calling `fn`; nothing happens if it was not there. Any thread."""
        with self._lock:
            kept = list(self.get(moment, ()))
            if fn in kept:
                kept.remove(fn)
                if fn in self._direct:
                    self._direct.remove(fn)
            # A new tuple, so that a telling under way on another thread keeps its own.
            self._set(moment, tuple(kept))

    def _set(self, moment: str, listeners: tuple[Hook, ...]) -> None:
        told: Hook | None = None
        if not listeners:
            self.pop(moment, None)
        else:
            self[moment] = listeners
            alone = len(listeners) == 1 and listeners[0] in self._direct
            told = listeners[0] if alone else self._teller(moment, listeners)
        setattr(self, moment, told)

    def _teller(self, moment: str, listeners: tuple[Hook, ...]) -> Hook:
        def tell(*facts: object) -> None:
            for fn in listeners:
                try:
                    fn(*facts)
                except Exception as error:
                    self.failed(moment, fn, error)

        return tell

    def tell(self, moment: str, *facts: object) -> None:
        """Call the listeners in the order they were added. One that raises Exception is removed."""
        told = getattr(self, moment)
        if told is not None:
            told(*facts)

    def failed(self, moment: str, fn: Hook, error: Exception) -> None:
        """A hook raised: it is removed, and the failure kept and logged once."""
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
