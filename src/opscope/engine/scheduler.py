"""Which thread runs a ready task, and what follows when it ends. Waiting is in `threaded`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable

from .calls import here
from .engine import Engine
from .errors import EngineError
from .graph import CUSTOM, HIDDEN, OP, Graph, Task, Var, blame
from .hooks import hooks
from .pool import Pool, Worker

RUNNING, STOPPED, INLINE = range(3)


class Scheduler(Engine):
    """The pushing and running half of the threaded engine."""

    def __init__(
        self, workers: int | None = None, custom_on: str = "pool", idle_s: float = 5.0
    ) -> None:
        super().__init__()
        if workers is None:
            workers = min(4, os.cpu_count() or 1)
        if not isinstance(workers, int):
            raise TypeError(f"workers must be an int, not {type(workers).__name__}")
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        if custom_on not in ("pool", "workers"):
            raise ValueError(f"custom_on must be 'pool' or 'workers', not {custom_on!r}")
        self.workers = workers
        self.custom_on = custom_on
        self._lock = threading.Lock()
        self._graph = Graph()
        self._state = RUNNING
        self._outstanding = 0
        self._gates: list[threading.Lock] = []  # of threads that wait for everything
        self._airborne: set[Task] = set()  # asynchronous tasks whose function has begun
        self._short = False  # no thread could be started: whoever pushes works
        self._ops = Pool("engine-worker", workers, workers, idle_s, self._serve)
        self._bodies = Pool("engine-custom", 0, sys.maxsize, idle_s, self._serve)

    # Pushing

    def _submit(self, task: Task) -> None:
        if self._state == STOPPED:
            raise EngineError("the engine is stopped")
        if self.dropped:
            self.sweep()
        told = hooks.pushed
        if told is not None:
            told(task)
        segment = here.segment
        if segment is not None and segment.engine is self:
            if task.kind == OP and not task.is_async:
                segment.parts.append(task)
                if len(segment.parts) >= segment.limit:
                    self.flush()
                return
            self.flush()
        self._enter(task)

    def _chore(self, task: Task) -> None:
        told = hooks.pushed
        if told is not None:
            told(task)
        self._enter(task, True)

    def _enter(self, task: Task, late: bool = False) -> None:
        with self._lock:
            if self._state == STOPPED and not late:
                raise EngineError("the engine is stopped")
            self._outstanding += 1
            call = task.pushed_by
            while call is not None:
                call.pending += 1
                call = call.outer
            if self._graph.push(task):
                self._pool_of(task).put(task)
            fresh = self._summon()
        self._go(fresh)

    def conclude(self, task: Task, inner: tuple[Var, ...]) -> None:
        """Push the hidden wait; it writes, so that it waits for readers of the arrays too."""

        def then() -> tuple[Task, ...]:
            if task.error is None:
                task.error = blame(wait)
            return (wait, task)

        wait = Task(None, "CustomOperatorWait", (), inner, kind=HIDDEN)
        wait.then = then
        with self._lock:
            self._advance(self._graph.push(wait))
            fresh = self._summon()
        self._go(fresh)

    # With the lock held

    def _pool_of(self, task: Task) -> Pool:
        return self._bodies if task.kind == CUSTOM and self.custom_on == "pool" else self._ops

    def _advance(self, ready: Iterable[Task]) -> None:
        """Queue what is ready; waits end here and now, and may make more ready."""
        todo = list(ready)
        for task in todo:
            if task.then is None:
                self._pool_of(task).put(task)
            else:
                for ended in task.then():
                    todo.extend(self._close(ended))

    def _close(self, task: Task) -> list[Task]:
        ready = self._graph.done(task)
        if task.then is None:
            call = task.pushed_by
            while call is not None:
                call.pending -= 1
                if not call.pending and call.gates:
                    _open(call.gates)
                call = call.outer
            self._outstanding -= 1
            if not self._outstanding and self._gates:
                _open(self._gates)
        else:
            task.then = None  # it refers to the task; without it no collector is needed
        return ready

    def _summon(self) -> list[Worker]:
        if self._state == INLINE:
            return []
        fresh = self._ops.summon() if self._ops.due else []
        if self._bodies.due:
            fresh += self._bodies.summon()
        return fresh

    # Running

    def _serve(self, worker: Worker) -> None:
        """The life of a worker: end the last task and take the next in one go, else park."""
        pool = worker.pool
        ended: Task | None = None
        while True:
            if self.dropped:
                self.sweep()
            with self._lock:
                if ended is not None:
                    self._advance(self._close(ended))
                worker.task = task = pool.queue.take()
                if task is not None:
                    if pool.due:
                        pool.due -= 1
                elif pool.closing:
                    pool.members.discard(worker)
                else:
                    timeout_s = pool.lie_down(worker)
                fresh = self._summon()
            if fresh:
                self._start(fresh)
            if task is not None:
                ended = self._run(task, pool)
                continue
            ended = None  # a parked thread keeps nothing alive
            if pool.closing and worker not in pool.members:
                return
            if not pool.park(worker, timeout_s, self._lock):
                return

    def _run(self, task: Task, pool: Pool | None) -> Task | None:
        """Run it here; returns it if it has ended, None if somebody else will end it."""
        if task.kind == CUSTOM:
            return self._run_custom(task, pool if pool is self._ops else None)
        if not task.is_async:
            self._perform(task)
            return task
        with self._lock:
            self._airborne.add(task)
        if self._launch(task):
            return None
        with self._lock:
            self._airborne.discard(task)
        return task

    def _run_custom(self, task: Task, pool: Pool | None) -> Task | None:
        failure = blame(task)
        if failure is not None:
            self._skip(task, failure)
            return task
        fn, task.fn = task.fn, None
        assert fn is not None
        if pool is not None:
            with self._lock:
                fresh = pool.stand_in()
            if fresh:
                self._start(fresh)
        try:
            fn()
        finally:
            if pool is not None:
                with self._lock:
                    pool.blocked -= 1
        return None

    def _ended(self, task: Task) -> None:
        if self.dropped:
            self.sweep()
        with self._lock:
            self._airborne.discard(task)
            self._advance(self._close(task))
            fresh = self._summon()
        self._go(fresh)

    def _go(self, fresh: list[Worker]) -> None:
        if fresh:
            self._start(fresh)
        if self._state == INLINE or self._short:
            self._work_off()

    def _start(self, fresh: list[Worker]) -> None:
        for worker in fresh:
            try:
                worker.start()
                self._short = False
            except RuntimeError:
                # No more threads here (Python 3.12 starts none once it is about to exit): this one
                # does the work itself rather than nobody.
                self._short = True
                with self._lock:
                    worker.pool.members.discard(worker)
                worker.born.set()
                self._work_off()

    def _work_off(self) -> None:
        """Run what is queued on the calling thread. If that is a worker, it may block meanwhile."""
        thread = threading.current_thread()
        pools = (self._ops, self._bodies)
        mine = thread.pool if isinstance(thread, Worker) and thread.pool in pools else None
        while True:
            with self._lock:
                task = self._ops.queue.take() or self._bodies.queue.take()
            if task is None:
                return
            if mine is not None:
                with self._lock:
                    mine.blocked += 1
            try:
                ended = self._run(task, None)
            finally:
                if mine is not None:
                    with self._lock:
                        mine.blocked -= 1
            if ended is not None:
                with self._lock:
                    self._advance(self._close(task))


def _open(gates: list[threading.Lock]) -> None:
    for gate in gates:
        gate.release()
    gates.clear()
