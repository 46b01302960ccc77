"""Running something on the main thread soon, between two of its instructions."""

from __future__ import annotations

import _thread
import ctypes
import weakref
from collections.abc import Callable


class Mainly:
    """`ask` has `step` run once by the main thread. Never raises into it."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._asked = False
        # Kept for good, as the interpreter may call it at any time after it was asked; but not what
        # it is for.
        me = weakref.ref(self)

        def run(_: object) -> int:
            found = me()
            return found._run() if found is not None else 0

        self._callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(run)
        _kept.append(self._callback)

    def ask(self) -> None:
        """Any thread. One request at a time stands."""
        if not self._asked:
            self._asked = True
            if ctypes.pythonapi.Py_AddPendingCall(self._callback, None) != 0:
                self._asked = False

    def _run(self) -> int:
        self._asked = False
        try:
            self._step()
        except KeyboardInterrupt:
            _thread.interrupt_main()  # it was meant for the program
        except BaseException:
            return 0
        return 0


_kept: list[object] = []
