"""A recording from here to the end of the process, whatever ends it, around somebody's program."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from opscope.profiler import profile
from opscope.record import watch
from opscope.record.patch import patched

_PACKAGE = Path(__file__).parents[1]
#: Folders of ours whose frames stand between those of a program: wrappers, waits, the command.
_BETWEEN = tuple(f"{_PACKAGE / folder}{os.sep}" for folder in ("cli", "hosts", "record"))


def begin(recording: profile) -> None:
    """Record until the interpreter ends, so that threads that outlive the program and what it does
    at exit are in it. Raises as `profile.start` does, and nothing is left behind then."""
    ending = _Ending(recording)
    atexit.register(ending.stop)  # before the program registers anything, so it is called last
    try:
        recording.start()
    except BaseException:
        atexit.unregister(ending.stop)
        raise
    if watch.recorder is None:
        atexit.unregister(ending.stop)
        _say("nothing is recorded while OPSCOPE_DISABLE is set")
        return
    # `os._exit` skips everything that happens at exit.
    ending.hooks.enter_context(patched(os, "_exit", ending.before))


def bare(run: Callable[[], None]) -> None:
    """Run the program. Its exceptions pass; what is printed of them shows none of our frames."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException:
        shown_by = sys.excepthook

        def show(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            _strip(error)
            shown_by(kind, error, error.__traceback__)

        sys.excepthook = show
        raise


class _Ending:
    """The end of the recording: once, in the process that began it and in no child of it."""

    def __init__(self, recording: profile) -> None:
        self.recording = recording
        self.hooks = ExitStack()
        self._pid = os.getpid()
        self._over = False

    def stop(self) -> None:
        """Finish the file and say where it is, on standard error. Never raises."""
        if self._over or os.getpid() != self._pid:
            return
        self._over = True
        output = self.recording.output
        try:
            self.hooks.close()
            self.recording.stop()
        except Exception as error:
            _say(f"the recording could not be finished: {error}")
        else:
            cut = f", but not to its end: {self.recording.error}" if self.recording.error else ""
            _say(f"recorded to {output}{cut} (opscope report {output})")

    def before(self, leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
        """An `os._exit` that finishes the recording first."""

        def _exit(status: int) -> NoReturn:
            self.stop()
            leave(status)

        return _exit


def _say(text: str) -> None:
    """One line for whoever started the program, which may have closed standard error."""
    with contextlib.suppress(Exception):
        if sys.stderr is not None:
            print(f"opscope: {text}", file=sys.stderr, flush=True)


def _strip(error: BaseException | None) -> None:
    """Take our frames out of the traceback, and of those of its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _theirs(error.__traceback__)
        _strip_group(error)
        error = error.__cause__ or error.__context__


def _strip_group(error: BaseException) -> None:
    inner: Any = getattr(error, "exceptions", ())
    if isinstance(inner, tuple):
        for one in inner:
            if isinstance(one, BaseException):
                _strip(one)


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    frames: list[TracebackType] = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    files = [frame.tb_frame.f_code.co_filename for frame in frames]
    # Up to where `program` hands over: the start of the command, and loading the program.
    below = [n for n, file in enumerate(files) if file.startswith(_BETWEEN[0])]
    first = below[-1] + 1 if below else 0
    while below and first < len(files) and files[first].startswith("<frozen "):
        first += 1
    kept: TracebackType | None = None
    for frame, file in reversed(list(zip(frames[first:], files[first:], strict=True))):
        if not file.startswith(_BETWEEN):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept
