"""py-spy, where it is installed and may: it reads the stacks of other threads from outside."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from opscope.model import Op, Phase
from opscope.record.places import Place, Stack, is_library, is_ours

#: Samples a second, and how long it may take to start and to write what it saw, in seconds.
RATE = 200
_START_S, _END_S = 20, 20

_THREAD = re.compile(r"thread \((0x[0-9a-fA-F]+|\d+)\)")
_FRAME = re.compile(r"(?P<name>.*) \((?P<file>.*):(?P<line>\d+)\)")

#: Not a child of the program: one that waits for its children must not meet it.
_IN_BACKGROUND = '"$0" "$@" </dev/null >/dev/null 2>"$OPSCOPE_SAID" & echo $!'


class Outside:
    """Watches from `start` to `stop`. Neither raises."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._watcher = 0
        self._folder = ""

    def start(self) -> str:
        """Begin. Returns why that cannot be, "" where it may have begun."""
        beside = os.path.dirname(sys.executable)
        found = shutil.which("py-spy") or shutil.which("py-spy", path=beside)
        if found is None:
            return "py-spy is not installed"
        try:
            self._folder = tempfile.mkdtemp(prefix="opscope-")
            words = [
                *(found, "record", "--pid", str(self._pid), "--rate", str(RATE), "--nonblocking"),
                *("--format", "raw", "--threads", "--full-filenames", "--output", self._file),
            ]
            done = subprocess.run(
                ["/bin/sh", "-c", _IN_BACKGROUND, *words],
                env={**os.environ, "OPSCOPE_SAID": self._said},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=_START_S,
                check=True,
            )
            self._watcher = int(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._clean()
            return f"py-spy could not be started: {error}"
        return ""

    def stop(self, ops: Sequence[tuple[int, Op]]) -> tuple[list[Sample], str]:
        """End, and tell what was seen of these operators on other threads, or why nothing was."""
        if not self._watcher or os.getpid() != self._pid:  # in a forked child it is not ours
            return [], ""
        try:
            _end(self._watcher)
            text = Path(self._file).read_text("utf-8", "replace")
        except OSError:
            return [], f"py-spy could not watch this process{self._complaint()}"
        finally:
            self._watcher = 0
            self._clean()
        main = threading.main_thread().native_id
        ours = {t.native_id for t in threading.enumerate() if t.name.startswith("opscope-")}
        return list(samples(text, ops, {main, *ours})), ""

    @property
    def _file(self) -> str:
        return os.path.join(self._folder, "raw.txt")

    @property
    def _said(self) -> str:
        return os.path.join(self._folder, "said.txt")

    def _complaint(self) -> str:
        with suppress(OSError):
            lines = Path(self._said).read_text("utf-8", "replace").split("\n")
            told = [line.strip() for line in lines if line.strip()]
            return f": {told[-1][:200]}" if told else ""
        return ""

    def _clean(self) -> None:
        folder, self._folder = self._folder, ""
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


#: (entry of the names, operator, phase, stack from the inside out to its function, how often).
Sample = tuple[int, Op, Phase, Stack, int]


def samples(text: str, ops: Sequence[tuple[int, Op]], without: set[int | None]) -> Iterator[Sample]:
    """What collapsed stacks, one a line, say of the operators. `without`: threads left out."""
    known: dict[str, list[tuple[int, Op]]] = {}
    for name, op in ops:
        if op.file and op.kind != "block":
            known.setdefault(op.file, []).append((name, op))
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        found = _THREAD.match(thread)
        if found is None or not count.isdigit() or int(found[1], 0) in without:
            continue
        places: list[Place] = []
        for frame in reversed(frames):
            if (read := _FRAME.fullmatch(frame)) is None:
                continue
            file, function, number = read["file"], read["name"], int(read["line"])
            if is_ours(file):
                places = [place for place in places if not place.library]
                continue
            of = _op_of(function, known.get(file, ()))
            first = of[1].line if of is not None else 0
            places.append(Place(file, function, first, number, is_library(file)))
            if of is not None:
                yield *of, tuple(places), int(count)
                break


def _op_of(function: str, ops: Sequence[tuple[int, Op]]) -> tuple[int, Op, Phase] | None:
    """Whose function that is: the operator's own, or one of the two of its class."""
    for name, op in ops:
        whole = f".{op.qualified or op.name}"
        if whole.endswith(f".{function}"):
            return name, op, Phase.NONE if op.host == "python" else Phase.FORWARD
        for phase in (Phase.FORWARD, Phase.BACKWARD):
            if f"{whole}.{phase.name.lower()}".endswith(f".{function}") and "." in function:
                return name, op, phase
    return None


def _end(pid: int) -> None:
    """Ask it to end, as Ctrl-C does, and wait; end it where it does not."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
        end = time.monotonic() + _END_S
        while time.monotonic() < end:
            os.kill(pid, 0)
            if _is_over(pid):
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)


def _is_over(pid: int) -> bool:
    """Whether it has ended and only waits to be waited for.

    By us, where this process is the first of its container.
    """
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(") ")[2][0] == "Z"
    return False
