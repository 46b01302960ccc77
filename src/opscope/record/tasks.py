"""Work handed to another thread: it belongs to the call that handed it over, or to nobody.

One hand-over for all hosts: `threading.Thread`, `ThreadPoolExecutor` (so also `asyncio.to_thread`
and `run_in_executor`), `multiprocessing.pool.ThreadPool`, and by hand `carry`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import Context
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any, TypeVar

from opscope.model import Flag, Kind, Phase
from opscope.record import scope, watch
from opscope.record.patch import patched
from opscope.record.recorder import Recorder
from opscope.record.scope import Frame

F = TypeVar("F", bound=Callable[..., Any])

#: Threads that are machinery, not work: by class, and by the module of their target. A pool's
#: worker that happens to start inside a call must not belong to that call for the rest of its life.
machinery: set[type[threading.Thread]] = set()
_MACHINERY_MODULES = frozenset(
    ("concurrent.futures.thread", "concurrent.futures.process", "multiprocessing.pool",
     "multiprocessing.queues", "multiprocessing.managers")
)  # fmt: skip


class Carried:
    """A function that takes the call it was handed over by to the thread that runs it.

    To everybody else it looks like the function, and it is pickled as the function.
    """

    __slots__ = (
        "__wrapped__", "frame", "name", "recorder", "submitted_lane", "submitted_ns", "thread",
    )  # fmt: skip

    def __init__(self, fn: Callable[..., Any], recorder: Recorder, name: str = "") -> None:
        self.__wrapped__ = fn
        self.recorder = recorder
        self.frame = scope.current(recorder)
        self.thread = threading.get_ident()
        self.name = recorder.name(name or task_name(fn))
        self.submitted_lane = recorder.here().lane
        self.submitted_ns = recorder.now()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = self.recorder
        begun = None if recorder.closed or "tasks" in recorder.off else self._begin(recorder)
        if begun is None:
            return self.__wrapped__(*args, **kwargs)
        frame, before = begun  # `adopt` looks for `frame`
        failed = Flag.FAILED
        try:
            result = self.__wrapped__(*args, **kwargs)
            failed = Flag(0)
            return result
        finally:
            scope.push(before)
            _end(frame, failed)

    def _begin(self, recorder: Recorder) -> tuple[Frame, Frame | None] | None:
        """Begin the task; None when nothing was handed over, or when that failed."""
        submitter = self.frame
        at_home = submitter is not None and threading.get_ident() == self.thread
        if at_home and scope.current(recorder) is submitter:
            return None  # run on the spot, by the call itself
        before = scope.held()
        owner, phase = (submitter.call, submitter.phase) if submitter else (0, Phase.NONE)
        try:
            frame = Frame(recorder, scope.link(), owner, phase)
            frame.lane = recorder.here().lane
            frame.cpu = recorder.cpu()
            frame.task = recorder.begin(
                Kind.TASK,
                self.name,
                owner=owner,
                phase=phase,
                lane=frame.lane,
                submitted_ns=self.submitted_ns,
                submitted_lane=self.submitted_lane,
            )
        except Exception as error:
            recorder.fault("tasks", error)
            return None
        scope.push(frame)
        return frame, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.__wrapped__,)


def _itself(fn: F) -> F:
    return fn


def _end(frame: Frame, flags: int) -> None:
    recorder = frame.recorder
    try:
        if not recorder.closed and scope.claim(frame):
            now = recorder.now()
            used = max(recorder.cpu() - frame.cpu, 0)
            recorder.end(frame.task, flags=flags, cpu_ns=used, end_ns=now)
    except Exception as error:
        recorder.fault("tasks", error)


def carry(fn: F) -> F:
    """`fn`, to be run by another thread on behalf of the current call.

    What it does there counts as that call's work elsewhere. Outside a recording `fn` comes back as
    it is. Use it where work reaches a thread by a way opscope does not know (a queue of your own).
    """
    recorder = watch.recorder
    if recorder is None:
        return fn
    carried: F = _carried(fn, recorder)
    return carried


def task_name(fn: Callable[..., Any]) -> str:
    """What to call a task on show: the qualified name of its function."""
    while isinstance(fn, partial):
        fn = fn.args[0] if _runs_in_context(fn.func, fn.args) else fn.func
    return str(getattr(fn, "__qualname__", "") or type(fn).__qualname__)


def _runs_in_context(fn: Any, args: Sequence[Any]) -> bool:
    """Whether `fn(*args)` is `context.run(function, ...)`."""
    return bool(args) and isinstance(getattr(fn, "__self__", None), Context)


def _carried(fn: Any, recorder: Recorder, name: str = "") -> Any:
    if isinstance(fn, Carried) or "tasks" in recorder.off:
        return fn
    if isinstance(fn, partial) and _runs_in_context(fn.func, fn.args):
        # asyncio.to_thread. The context is a copy, so the task has to begin inside it.
        return partial(fn.func, _carried(fn.args[0], recorder, name), *fn.args[1:], **fn.keywords)
    try:
        return Carried(fn, recorder, name)
    except Exception as error:
        recorder.fault("tasks", error)
        return fn


@contextmanager
def handed_over() -> Iterator[None]:
    """Inside the block work that goes to another thread takes the current call along."""
    with ExitStack() as stack:
        stack.enter_context(patched(threading.Thread, "start", _thread_start))
        stack.enter_context(patched(ThreadPoolExecutor, "submit", _submit))
        for method in ("apply_async", "_map_async", "imap", "imap_unordered"):
            stack.enter_context(patched(_home_of(ThreadPool, method), method, _pool_method))
        yield


def _home_of(cls: type, method: str) -> type:
    """The class in whose body the method stands."""
    return next((base for base in cls.__mro__ if method in vars(base)), cls)


class _Once:
    """Stands in for `Thread.run` until it is called; from then on the thread looks untouched."""

    __slots__ = ("own", "run", "thread")

    def __init__(self, thread: threading.Thread, run: Callable[[], object]) -> None:
        self.thread = thread
        self.own = vars(thread).get("run")  # somebody may have set it on the thread itself
        self.run = run

    def __call__(self) -> None:
        self.restore()
        self.run()

    def restore(self) -> None:
        attributes = vars(self.thread)
        if attributes.get("run") is self:
            if self.own is None:
                del attributes["run"]
            else:
                attributes["run"] = self.own


def _thread_start(original: Callable[[threading.Thread], None]) -> Callable[..., None]:
    def start(self: threading.Thread) -> None:
        recorder = watch.recorder
        run = self.run
        if recorder is None or isinstance(run, _Once) or _is_machinery(self):
            return original(self)
        target = getattr(self, "_target", None)
        carried = _carried(run, recorder, task_name(target) if target is not None else "")
        once = _Once(self, carried)
        self.run = once  # type: ignore[method-assign]
        try:
            return original(self)
        except BaseException:
            once.restore()
            raise

    return start


def _is_machinery(thread: threading.Thread) -> bool:
    if isinstance(thread, tuple(machinery)):
        return True
    target = getattr(thread, "_target", None) or type(thread)
    return getattr(target, "__module__", None) in _MACHINERY_MODULES


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: ThreadPoolExecutor, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        recorder = watch.recorder
        if recorder is not None:
            if _runs_in_context(fn, args):
                args = (_carried(args[0], recorder), *args[1:])
            else:
                fn = _carried(fn, recorder)
        return original(self, fn, *args, **kwargs)

    return submit


def _pool_method(original: Callable[..., Any]) -> Callable[..., Any]:
    def hand_over(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = watch.recorder
        # The same method serves pools of processes, whose functions must stay picklable.
        if recorder is not None and isinstance(self, ThreadPool):
            func = _carried(func, recorder)
        return original(self, func, *args, **kwargs)

    return hand_over
