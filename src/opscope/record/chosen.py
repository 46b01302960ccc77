"""Which recorder records: the one in Python, which is the reference, or its hot half in C."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opscope.errors import UsageError
from opscope.record import extension, watch
from opscope.record.buffer import BOUND, wake_at
from opscope.record.clock import SystemClock
from opscope.record.recorder import Recorder

if TYPE_CHECKING:
    from opscope.record._native import Buffer, Core
elif extension.native is not None:
    Buffer, Core = extension.native.Buffer, extension.native.Core

NativeRecorder: type[Recorder] | None = None

if TYPE_CHECKING or extension.native is not None:

    class _NativeRecorder(Core, Recorder):
        """The same face; `begin`, `end`, `put`, `here`, `cpu` and `next_id` are C."""

        # A row takes 64 bytes here, and several times that in Python.
        default_bound = 2 * BOUND

        # What the C half calls when there is more to do.
        _known_here = Recorder.here
        _counted_cpu = Recorder.cpu

        def _set_up(self) -> None:
            self._by_text = self.tables._by_text
            if type(self.clock) is not SystemClock:
                self.ask_clock(self.clock.now, self.clock.cpu)

        def _new_buffer(self, lane: int) -> Any:
            ident, thread = threading.get_ident(), weakref.ref(threading.current_thread())
            return Buffer(lane, self._bound, wake_at(self._bound), ident, thread)

        def _wake_writer(self) -> None:
            self.wake.set()

        def _does_not_fit(self, row: Any) -> None:
            self.unfit.append(tuple(row))

    NativeRecorder = _NativeRecorder


def recorder_class() -> type[Recorder]:
    """The class of the next recorder. Raises UsageError for one that cannot be had."""
    wanted = extension.wanted()
    if wanted not in ("", "python", "native"):
        raise UsageError(
            f"{extension.VARIABLE}={wanted}: there is no such recorder; choose python or native"
        )
    if wanted == "native" and NativeRecorder is None:
        raise UsageError(
            f"{extension.VARIABLE}=native: there is no native recorder here: {extension.missing}"
        )
    return Recorder if wanted == "python" or NativeRecorder is None else NativeRecorder


def operators_in_c(
    recorder: Recorder, task: type, chore: int, hidden: int, broken: Callable[..., None]
) -> Any:
    """`pushed`, `started` and `finished` of an engine's operators in C; None without that.

    `task` is the class of what they are told of, with the slots `kind`, `name`, `note` and `error`;
    `broken(moment, hook, error)` is called when one fails.
    """
    if NativeRecorder is None or not isinstance(recorder, NativeRecorder):
        return None
    assert extension.native is not None
    return extension.native.Operators(recorder, vars(watch), task, chore, hidden, broken)


def in_use() -> tuple[str, str]:
    """("native" or "python", why), for people. Never raises."""
    wanted = extension.wanted()
    try:
        native = recorder_class() is NativeRecorder
    except UsageError as error:
        return "none", str(error)
    if wanted:
        return ("native" if native else "python"), f"{extension.VARIABLE}={wanted}"
    return ("native", "the C extension is there") if native else ("python", extension.missing)


Recorder.chosen = recorder_class
