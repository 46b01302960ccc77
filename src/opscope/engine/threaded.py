"""The engine with threads: workers for operators, and threads for the bodies of custom ones."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

from .calls import Call, here
from .engine import T
from .errors import EngineError
from .graph import HIDDEN, Failure, Task, Var, tidy
from .hooks import hooks
from .pool import Worker
from .scheduler import INLINE, RUNNING, STOPPED, Scheduler

live: weakref.WeakSet[ThreadedEngine] = weakref.WeakSet()

#: How often to wait for work where others may push more, and how often to look meanwhile.
_ROUNDS, _LOOK_S = 10, 0.001


class Pin(Task):
    """A wait: it holds a variable for reading until the waiting thread has looked at it."""

    __slots__ = ("abandoned", "gate", "granted")

    def __init__(self, var: Var) -> None:
        super().__init__(None, "wait", (var,), kind=HIDDEN)
        self.gate = threading.Lock()
        self.gate.acquire()
        self.granted = False
        self.abandoned = False
        self.then = self._grant

    def _grant(self) -> tuple[Task, ...]:
        self.granted = True
        if self.abandoned:
            return (self,)
        self.gate.release()
        return ()


class ThreadedEngine(Scheduler):
    """`workers` threads run operators (default: as many as CPUs, at most 4), made when needed.

    `custom_on` says where bodies of custom operators run: on a "pool" of their own, which grows
    while calls are ready and no thread is idle, or on the "workers", where another worker steps in
    for each that enters a body. Threads beyond the usual number leave after `idle_s` seconds.
    """

    kind = "threaded"

    def __init__(
        self, workers: int | None = None, custom_on: str = "pool", idle_s: float = 5.0
    ) -> None:
        super().__init__(workers, custom_on, idle_s)
        live.add(self)

    # Waiting

    def read(self, var: Var, fn: Callable[[], T] | None, what: str) -> T | None:
        """Blocks while writes are pending; EngineError instead if a task's function asks."""
        if var.__class__ is not Var:
            tidy((var,), ())
        self._before_wait()
        pin = Pin(var)
        with self._lock:
            if not var.settled:
                self._refuse_worker()
            ready = pin.granted = bool(self._graph.push(pin))
        try:
            if not ready:
                self._block(pin.gate, what)
            failure = var.error
            if failure is not None and self._claim(failure):
                raise failure.exception
            return None if fn is None else fn()
        finally:
            with self._lock:
                if pin.granted:
                    self._advance(self._close(pin))
                else:
                    pin.abandoned = True  # interrupted; nobody will look at it any more
                fresh = self._summon()
            self._go(fresh)

    def wait_all(self, what: str = "wait_all") -> None:
        """Blocks until nothing is pending; in a body, until nothing of this call is."""
        call = here.call
        self._await_all(call, what)
        with self._lock:
            failure = self._first_failure(call)
            if failure is not None:
                failure.reported = True
        if failure is not None:
            raise failure.exception

    def _await_all(self, call: Call | None, what: str | None) -> None:
        self._before_wait()
        with self._lock:
            if not (self._outstanding if call is None else call.pending):
                return
            self._refuse_worker()
            gate = threading.Lock()
            gate.acquire()
            (self._gates if call is None else call.gates).append(gate)
        self._block(gate, what)

    def _before_wait(self) -> None:
        if self._state != STOPPED:
            if self.dropped:
                self.sweep()
            self.flush()
        if self._ops.due or self._bodies.due:  # only in a forked child
            with self._lock:
                fresh = self._summon()
            self._start(fresh)

    def _block(self, gate: threading.Lock, what: str | None) -> None:
        if gate.acquire(blocking=False):
            return
        if what is None:
            gate.acquire()
            return
        hooks.tell("wait_began", what)
        try:
            gate.acquire()
        finally:
            hooks.tell("wait_ended", what)

    def _claim(self, failure: Failure) -> bool:
        with self._lock:
            mine = not failure.reported
            failure.reported = True
        return mine

    def _is_own_worker(self) -> bool:
        thread = threading.current_thread()
        return isinstance(thread, Worker) and thread.pool in (self._ops, self._bodies)

    def _refuse_worker(self) -> None:
        if here.call is None and self._is_own_worker():
            raise EngineError("the function of a task must not wait: it could wait for itself")

    # Life

    def stop(self) -> None:
        """Blocks until all work has ended and all threads are gone; EngineError from a task."""
        self._refuse_own()
        self._await_all(None, None)
        self._retire(STOPPED)

    def start(self) -> None:
        """Accept work again; threads are made when work comes."""
        with self._lock:
            self._state = RUNNING

    def finish(self) -> None:
        """For the interpreter's exit: as `stop`, but later pushes run on the calling thread."""
        if not self._is_own_worker():  # else a child that was forked by a body ends
            self._refuse_own()
            self._await_present()
            self._retire(INLINE)

    def _refuse_own(self) -> None:
        if here.call is not None or self._is_own_worker():
            raise EngineError("an engine cannot be stopped by what it runs")

    def _await_present(self) -> None:
        """Block until what is pending has ended, and what it pushes meanwhile.

        Other threads may go on pushing for ever: they neither keep a process from ending nor from
        being forked.
        """
        self._before_wait()
        for _ in range(_ROUNDS):
            with self._lock:
                present = {task for task in self._graph.tasks if not isinstance(task, Pin)}
            while present:
                time.sleep(_LOOK_S)
                with self._lock:
                    present &= self._graph.tasks
            with self._lock:
                if all(task.pushed_by is None for task in self._graph.tasks):
                    return

    def _retire(self, state: int) -> None:
        with self._lock:
            self._state = state
            leaving = self._ops.close() + self._bodies.close()
        for worker in leaving:
            worker.await_end()
        with self._lock:
            self._ops.closing = self._bodies.closing = False

    # Forking

    def before_fork(self) -> None:
        """Take the lock; finish all work and let the threads go first, unless one of them asks."""
        if not self._is_own_worker() and here.call is None:
            for _ in range(_ROUNDS):  # other threads may go on pushing
                self._await_present()
                if not self._outstanding:
                    self._retire(self._state)
                self._lock.acquire()
                if not self._outstanding and not self._ops.members and not self._bodies.members:
                    return
                self._lock.release()
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Only this thread is left: what others were running here has failed."""
        self._lock = threading.Lock()
        thread = threading.current_thread()
        survivor = thread if isinstance(thread, Worker) else None
        lost = set(self._ops.forget(survivor) + self._bodies.forget(survivor)) | self._airborne
        self._airborne.clear()
        self._gates.clear()
        with self._lock:
            for task in list(self._graph.tasks):
                if isinstance(task, Pin):
                    task.abandoned = True
                    if task.granted:
                        self._advance(self._close(task))
            for task in lost & self._graph.tasks:
                error = EngineError(f"{task.name!r} was running on a thread lost in a fork")
                task.error = self.fail(task, error)
                self._advance(self._close(task))
