"""`profile`: the one object a user meets. Puts recorder, hosts and sink together, and apart."""

from __future__ import annotations

import atexit
import os
import platform
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from opscope import hosts, present, store
from opscope._version import __version__
from opscope.errors import OpscopeError, UsageError
from opscope.hosts.python.price import price
from opscope.model import Kind, Session
from opscope.present.table import WIDTH
from opscope.record import Clock, Recorder, Writer, adopt, calibration, settle, tasks, waits, watch
from opscope.record.garbage import collections_seen
from opscope.record.schedule import Action, Schedule, action_of
from opscope.sessions import summary

F = TypeVar("F", bound=Callable[..., Any])

#: "light" records calls, tasks and waits, and leaves out what costs more (torch's profiler).
MODES = ("full", "light")

_starting = threading.Lock()
_running: profile | None = None


class profile:
    """Record what happens inside custom operators, in a block or between `start` and `stop`.

    `host`: "auto" (all there are), a name, or several. `output`: a file to write while recording
    goes on, with `force` to replace one that is there; None keeps everything in memory. `mode`:
    "full", or "light" for calls, tasks and waits only, which costs less. Also a decorator: every
    call of the function is then a recording (only sensible with `output=None`). `schedule`: which
    steps to record (`opscope.schedule` or `torch.profiler.schedule`); the program calls `step` at
    the end of each. `lines`: sample the main thread, to tell which lines of the operators' own
    Python cost what; needs SIGALRM, and gives way to a program that uses it. `clock`: nanoseconds
    from elsewhere, such as `opscope.testing.ManualClock`. Raises UsageError for an unknown mode.

    One recording at a time in a process; none at all while OPSCOPE_DISABLE is set in the
    environment. All methods may be called from any thread, also inside a
    custom operator. Calls that run when recording begins, pauses or ends keep their row.
    """

    def __init__(
        self,
        host: str | Sequence[str] = "auto",
        output: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
        mode: str = "full",
        schedule: Schedule | None = None,
        lines: bool = False,
        clock: Clock | None = None,
    ) -> None:
        if mode not in MODES:
            raise UsageError(f"no mode is called {mode!r}; there are: {', '.join(MODES)}")
        self.host = host
        self.output = output
        self.mode = mode
        self.lines = lines
        self._schedule = schedule
        self._force = force
        self._clock = clock
        self._recorder: Recorder | None = None
        self._writer: Writer | None = None
        self._sink: store.FileSink | store.MemorySink | None = None
        self._hooks = ExitStack()
        self._step = 0
        self._step_count = 0
        self._session: Session | None = None

    # --- recording --------------------------------------------------------------------------------

    def start(self) -> profile:
        """Begin to record, until `stop` or the interpreter's end.

        Raises UsageError when a recording runs already, or the file exists or cannot be written,
        and HostError for a host that is unknown or cannot be attached.
        """
        global _running
        if _set("OPSCOPE_DISABLE"):
            self._session = Session()
            return self
        with _starting:
            if _running is not None:
                raise UsageError(
                    "a recording is already running in this process (opscope run, OPSCOPE_ENABLE "
                    "or another profile): stop it first"
                )
            chosen = hosts.chosen(self.host)
            sink = self._sink = (
                store.MemorySink()
                if self.output is None
                else store.FileSink(self.output, force=self._force)
            )
            self._session = None
            costs = price() if self._clock is None else {}
            recorder = self._recorder = Recorder(sink, self._clock, mode=self.mode)
            writer = self._writer = Writer(recorder)
            tasks.machinery.add(Writer)
            writer.head(list(sys.orig_argv), _versions())
            calibration.tell(recorder, costs)
            _running = self
            self._hooks = ExitStack()
            try:
                self._hooks.enter_context(tasks.handed_over())
                self._hooks.enter_context(waits.seen())
                self._hooks.enter_context(collections_seen(recorder))
                self._hooks.enter_context(hosts.attached(chosen, recorder))
                if self.lines:
                    from opscope.record.lines import hot_lines

                    self._hooks.enter_context(hot_lines(recorder))
            except BaseException:
                self._take_apart(recorder, writer)
                raise
            writer.start()
            recorder.since_ns = recorder.now()
            watch.recorder = recorder
            _guarded(adopt, recorder)
            self._step_count = 0
            try:
                if self._schedule is not None:
                    self._follow(recorder)
            except BaseException:
                watch.recorder = None
                self._take_apart(recorder, writer)
                raise
        return self

    def stop(self) -> None:
        """End the recording; nothing happens when there is none. Blocks until all is written."""
        with _starting:
            recorder, writer = self._recorder, self._writer
            if recorder is None or writer is None or recorder.closed:
                return
            watch.recorder = None
            for edge in (self._end_step, settle):
                _guarded(edge, recorder)
            self._take_apart(recorder, writer)

    def _take_apart(self, recorder: Recorder, writer: Writer) -> None:
        global _running
        try:
            self._hooks.close()
        finally:
            recorder.closed = True
            _running = None
            writer.finish()

    def pause(self) -> None:
        """Stop recording for a while: what begins is not seen, the time does not count."""
        with _starting:
            recorder = self._recording()
            if recorder is not None:
                _pause(recorder)

    def resume(self) -> None:
        """Go on after `pause`."""
        with _starting:
            recorder = self._recording()
            if recorder is not None:
                _resume(recorder)

    def flush(self) -> None:
        """Write everything recorded so far now, not at the next quarter of a second. Blocks."""
        if self._writer is not None and self._recorder is not None and not self._recorder.closed:
            self._writer.flush()

    def step(self) -> None:
        """End a step of the program's loop and begin the next."""
        with _starting:
            recorder = self._recording()
            if recorder is None:
                return
            self._end_step(recorder)
            self._step_count += 1
            if self._schedule is not None:
                self._follow(recorder)
            else:
                self._begin_step(recorder)
            recorder.tell("step")

    def _follow(self, recorder: Recorder) -> None:
        """Do what the schedule tells for the step that begins now."""
        assert self._schedule is not None
        action = action_of(self._schedule(self._step_count))
        if action >= Action.RECORD:
            _resume(recorder)
            self._begin_step(recorder)
        else:
            _pause(recorder)
            if action == Action.WARMUP:
                recorder.tell("warm up")

    def _begin_step(self, recorder: Recorder) -> None:
        name = recorder.name(f"step {self._step_count}")
        self._step = recorder.begin(Kind.STEP, name, owner=0)

    def _end_step(self, recorder: Recorder) -> None:
        if self._step:
            recorder.end(self._step)
            self._step = 0

    def _recording(self) -> Recorder | None:
        if _set("OPSCOPE_DISABLE"):
            return None
        if self._recorder is None or self._recorder.closed:
            raise UsageError("nothing is being recorded: call start() or use a with block")
        return self._recorder

    @property
    def error(self) -> str:
        """Why the file could not be written to its end; empty where all is well."""
        writer = self._writer
        if writer is None or writer.error is None:
            return ""
        return f"{writer.error.strerror or writer.error}; {writer.lost:,} spans are lost"

    # --- results ----------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """What was recorded; while recording, what has been recorded so far."""
        if self._session is not None:
            return self._session
        recorder, writer, sink = self._recorder, self._writer, self._sink
        if recorder is None or writer is None or sink is None:
            raise UsageError("nothing has been recorded yet")
        if not recorder.closed:
            self.flush()
            return sink.session()
        self._session = sink.session()
        return self._session

    def summary(self) -> list[dict[str, Any]]:
        """One row an operator, path and phase, as `opscope report --json` prints them."""
        return summary(self.session)

    def __str__(self) -> str:
        """The table of `opscope report`, as wide as the terminal, else of 120 columns."""
        width = shutil.get_terminal_size((WIDTH, 0)).columns
        return present.render_summary(self.session, width=max(width, 20))

    # --- as a block and as a decorator ------------------------------------------------------------

    def __enter__(self) -> profile:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__(self, fn: F) -> F:
        @wraps(fn)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if _running is self:  # the function calls itself: one recording is enough
                return fn(*args, **kwargs)
            with self:
                return fn(*args, **kwargs)

        return recorded  # type: ignore[return-value]


def _pause(recorder: Recorder) -> None:
    if not recorder.paused_ns:
        watch.recorder = None
        recorder.pause()
        recorder.tell("pause")


def _resume(recorder: Recorder) -> None:
    if recorder.paused_ns:
        recorder.tell("resume")
        recorder.resume()
        watch.recorder = recorder
        _guarded(adopt, recorder)


def _guarded(edge: Callable[[Recorder], None], recorder: Recorder) -> None:
    """What begins or ends a recording must not end the program when it fails."""
    try:
        edge(recorder)
    except Exception as error:
        recorder.fault("calls at the edge of the recording", error)


def default_output(script: str) -> str:
    """Where a recording of `script` goes: OPSCOPE_OUTPUT, or else `SCRIPT.PID.opscope`.

    `{pid}` in OPSCOPE_OUTPUT stands for the process id. The name never begins as an option does:
    a program from `-c` or standard input is called `python`.
    """
    named = os.environ.get("OPSCOPE_OUTPUT")
    if named:
        return named.replace("{pid}", str(os.getpid()))
    stem = "" if script == "-c" else Path(script).stem.lstrip("-")
    return f"{stem or 'python'}.{os.getpid()}.opscope"


def record_process() -> None:
    """Record this process from now to its end: what OPSCOPE_ENABLE=1 asks for. Never raises.

    The commands of opscope itself are left out: they record what they are told to.
    """
    command = sys.orig_argv[1:3]
    ours = command[:2] == ["-m", "opscope"] or Path(*command[:1]).stem == "opscope"
    if _running is not None or ours or _set("OPSCOPE_DISABLE"):
        return
    whole = profile(output=default_output(sys.argv[0] if sys.argv else ""))
    try:
        whole.start()
    except OpscopeError as error:
        print(f"opscope: this process is not recorded: {error}", file=sys.stderr)


def _at_exit() -> None:
    """End the recording that nobody stopped. What was registered after us is still in it."""
    if (running := _running) is not None:
        try:
            running.stop()
        except Exception as error:
            print(f"opscope: the recording could not be finished: {error}", file=sys.stderr)


def _set(variable: str) -> bool:
    """Whether an environment variable is set to something that does not mean no."""
    return os.environ.get(variable, "").lower() not in ("", "0", "false", "no", "off")


def _versions() -> dict[str, str]:
    return {"opscope": __version__, "python": platform.python_version()}


def _in_forked_child() -> None:
    """The child shares the parent's file and has none of its threads: it records nothing."""
    global _running, _starting
    _starting = threading.Lock()
    running, _running = _running, None
    watch.recorder = None
    if running is not None and running._recorder is not None and running._sink is not None:
        running._recorder.closed = True
        running._sink.abandon()
        running._hooks.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
atexit.register(_at_exit)
