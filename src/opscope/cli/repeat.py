"""`opscope run --repeat N`: the same program, recorded N times, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

from opscope.errors import UsageError

#: Bytes handed on at once, and how often a program that reads nothing is looked after.
_BLOCK, _LOOK_S = 1 << 16, 0.05
#: How long the input of a run that has ended is waited for.
_LEAVE_S = 1.0
#: What a shell adds to the number of the signal that ended a program.
_BY_SIGNAL = 128


def numbered(output: str, count: int) -> list[str]:
    """The file of each run: the name with a number before its ending, all of one width."""
    path = Path(output)
    width = len(str(count))
    return [
        str(path.with_name(f"{path.stem}.{number:0{width}}{path.suffix}"))
        for number in range(1, count + 1)
    ]


def repeated(outputs: Sequence[str], arguments: Sequence[str], *, force: bool) -> int:
    """Run `opscope run -o OUTPUT ARGUMENTS...` for each of the files, one after the other.

    All are run, whatever their exit codes; Ctrl-C ends the run it meets and starts no other. Each
    run reads the same standard input. Returns the first exit code that is not 0. Raises UsageError,
    and runs nothing, where a file is there and not `force`.
    """
    for output in outputs:
        if os.path.lexists(output) and not force:
            raise UsageError(
                f"{output} exists: choose another name with -o, or overwrite it with --force"
            )
    flags: Callable[[], list[str]] = getattr(subprocess, "_args_from_interpreter_flags", list)
    command = [sys.executable, *flags(), "-m", "opscope", "run"]
    forced = ["--force"] if force else []
    first = 0
    with _Input() as given:
        for output in outputs:
            code, interrupted = _one([*command, *forced, "-o", output, *arguments], given)
            first = first or code
            if interrupted:
                break
    return first


def _one(command: Sequence[str], given: _Input) -> tuple[int, bool]:
    """The exit code of one run, and whether somebody wants no more of them."""
    process = subprocess.Popen(command, stdin=given.source())
    with _passed_on(process) as ended, given.fed(process):
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:  # the program got it as well, and saves what it has
                ended.append(signal.SIGINT)
    return (_BY_SIGNAL - code if code < 0 else code), bool(ended)


@contextlib.contextmanager
def _passed_on(process: subprocess.Popen[Any]) -> Iterator[list[int]]:
    """What asks this process to end asks the program, and is noted."""
    ended: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        ended.append(number)
        with contextlib.suppress(OSError):
            process.send_signal(number)

    before: list[tuple[int, Any]] = []
    if threading.current_thread() is threading.main_thread():
        wanted = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
        for number in wanted:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before.append((number, signal.signal(number, pass_on)))
    try:
        yield ended
    finally:
        for changed, handler in before:
            signal.signal(changed, handler)


class _Input:
    """Standard input for every run from its beginning.

    A file is wound back. A terminal is left to the runs. What can be read only once (a pipe) is
    kept in a temporary file as far as it has come, and handed on from there; nobody waits for its
    end, which may never come.
    """

    def __init__(self) -> None:
        self._descriptor = _standard_input()
        self._start = 0
        self._kept: IO[bytes] | None = None
        self._changed = threading.Condition()
        self._ready, self._ended = 0, False

    def __enter__(self) -> _Input:
        if self._descriptor is None or os.isatty(self._descriptor):
            return self
        kind = os.fstat(self._descriptor).st_mode
        if stat.S_ISREG(kind):
            self._start = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        elif not stat.S_ISCHR(kind):  # /dev/null and its like read the same every time
            self._kept = tempfile.TemporaryFile()
            # Blocked in a read when all is over: it must not keep the interpreter.
            threading.Thread(target=self._keep, name="opscope stdin", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            kept, self._kept = self._kept, None
            if kept is not None:
                kept.close()

    def source(self) -> int | None:
        """What the next run gets as its standard input, for `subprocess.Popen`."""
        if self._kept is not None:
            return subprocess.PIPE
        if self._descriptor is not None and stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.lseek(self._descriptor, self._start, os.SEEK_SET)
        return None

    @contextlib.contextmanager
    def fed(self, process: subprocess.Popen[Any]) -> Iterator[None]:
        """While the block runs, hand what is kept and what still comes to the process."""
        if process.stdin is None:
            yield
            return
        feeder = threading.Thread(target=self._feed, args=(process,), daemon=True)
        feeder.start()
        try:
            yield
        finally:
            feeder.join(_LEAVE_S)  # a child of the program's may still hold the other end

    def _keep(self) -> None:
        assert self._descriptor is not None
        while True:
            try:
                block = os.read(self._descriptor, _BLOCK)
            except OSError:
                block = b""
            with self._changed:
                if self._kept is not None and block:
                    self._kept.seek(0, os.SEEK_END)
                    self._kept.write(block)
                    self._ready += len(block)
                self._ended = not block
                self._changed.notify_all()
                if self._ended or self._kept is None:
                    return

    def _feed(self, process: subprocess.Popen[Any]) -> None:
        pipe = process.stdin
        assert pipe is not None
        done = 0
        # A program that does not read, or has ended, is no fault of ours.
        with contextlib.suppress(OSError, ValueError):
            while (block := self._next(done, process)) is not None:
                done += len(block)
                pipe.write(block)
                pipe.flush()
        with contextlib.suppress(OSError, ValueError):
            pipe.close()

    def _next(self, done: int, process: subprocess.Popen[Any]) -> bytes | None:
        """The next bytes for a run that has had `done`; None at the end of the input, or its."""
        with self._changed:
            while done >= self._ready and not self._ended:
                if process.returncode is not None:
                    return None
                self._changed.wait(_LOOK_S)
            if done >= self._ready or self._kept is None:
                return None
            self._kept.seek(done)
            return self._kept.read(_BLOCK)


def _standard_input() -> int | None:
    """Its descriptor; None where there is none."""
    try:
        descriptor = 0 if sys.stdin is None else sys.stdin.fileno()
        os.fstat(descriptor)
    except (OSError, ValueError):
        return None
    return descriptor
