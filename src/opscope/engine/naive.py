"""The engine without threads: every push runs its task before it returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from .calls import here
from .engine import Engine, T
from .errors import EngineError
from .graph import CUSTOM, Task, Var, blame, settle, tidy
from .hooks import hooks


class NaiveEngine(Engine):
    """Serial and synchronous, for debugging and as the reference.

    Errors still stick to what was written and raise at waits only; an interrupt raises at once.
    Tasks that several threads push at the same time are not ordered against each other.
    """

    kind = "naive"
    _gathers = False

    def __init__(self) -> None:
        super().__init__()
        self._stopped = False
        self._gates: dict[Task, threading.Lock] = {}  # of asynchronous tasks under way

    def push_sync(
        self,
        fn: Callable[[], object] | None,
        reads: Iterable[Var] = (),
        writes: Iterable[Var] = (),
        name: str = "task",
        priority: int = 0,
    ) -> None:
        """As `Engine.push_sync`; the function has run when this returns."""
        if (
            not hooks
            and not reads
            and not writes
            and name.__class__ is str
            and priority.__class__ is int
            and callable(fn)
            and not self._stopped
            and not self.dropped
        ):
            # Nobody watches and nothing depends on it: no task is needed unless it fails.
            try:
                fn()
            except BaseException as error:
                self._raised(Task(None, name, pushed_by=here.call), error)
            return
        super().push_sync(fn, reads, writes, name, priority)

    def _raised(self, task: Task, error: BaseException) -> None:
        task.error = self.fail(task, error)
        self._interrupt(task)

    def _interrupt(self, task: Task) -> None:
        """Ctrl-C hit this very thread: the caller must hear of it now."""
        failure = task.error
        if failure is not None and not failure.reported:
            if isinstance(failure.exception, Exception):
                return
            failure.reported = True
            raise failure.exception

    def _submit(self, task: Task) -> None:
        if self._stopped:
            raise EngineError("the engine is stopped")
        if self.dropped:
            self.sweep()
        self._chore(task)

    def _chore(self, task: Task) -> None:
        told = hooks.pushed
        if told is not None:
            told(task)
        self._enter(task)

    def _enter(self, task: Task) -> None:
        if task.kind == CUSTOM:
            failure = blame(task)
            if failure is not None:
                self._skip(task, failure)
                settle(task)
            else:
                fn, task.fn = task.fn, None
                assert fn is not None
                fn()
        elif task.is_async:
            gate = self._gates[task] = threading.Lock()
            gate.acquire()
            if self._launch(task):
                gate.acquire()
            else:
                del self._gates[task]
                settle(task)
        else:
            self._perform(task)
            settle(task)
        self._interrupt(task)

    def _ended(self, task: Task) -> None:
        settle(task)
        self._gates.pop(task).release()

    def conclude(self, task: Task, inner: tuple[Var, ...]) -> None:
        """At once: everything the body pushed has run."""
        if task.error is None:
            task.error = blame(Task(None, task.name, inner))
        settle(task)

    def read(self, var: Var, fn: Callable[[], T] | None, what: str) -> T | None:
        """Never blocks; raises what stuck to the variable."""
        if self.dropped and not self._stopped:
            self.sweep()
        if var.__class__ is not Var:
            tidy((var,), ())
        failure = var.error
        if failure is not None and not failure.reported:
            failure.reported = True
            raise failure.exception
        return None if fn is None else fn()

    def wait_all(self, what: str = "wait_all") -> None:
        """Never blocks; raises the first unreported failure."""
        if self.dropped and not self._stopped:
            self.sweep()
        failure = self._first_failure(here.call)
        if failure is not None:
            failure.reported = True
            raise failure.exception

    def stop(self) -> None:
        """Nothing is ever pending; pushing raises until `start`."""
        self.sweep()
        self._stopped = True

    def start(self) -> None:
        """Accept work again."""
        self._stopped = False
