"""Who may run when: variables with queues of readers and writers. Knows no threads, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .errors import EngineError, GraphError

if TYPE_CHECKING:
    from .calls import Call

OP, CUSTOM, CHORE, HIDDEN = range(4)


class Failure:
    """One error of one task, shared by everything it reached; raised once, then `reported`."""

    __slots__ = ("call", "exception", "reported", "task_name")

    def __init__(self, exception: BaseException, task_name: str, call: Call | None) -> None:
        self.exception = exception
        self.task_name = task_name
        self.call = call
        self.reported = False

    def __repr__(self) -> str:
        return f"<Failure of {self.task_name}: {self.exception!r}>"


class Var:
    """A thing that tasks read and write. `version` counts writes."""

    __slots__ = ("deleted", "doomed", "error", "queue", "reading", "version", "writer")

    def __init__(self) -> None:
        self.queue: deque[tuple[Task, bool]] | None = None  # made late: most never need one
        self.reading = 0
        self.writer: Task | None = None
        self.version = 0
        self.error: Failure | None = None
        self.doomed = False  # its deletion is pushed
        self.deleted = False  # its deletion has run

    @property
    def settled(self) -> bool:
        """True when no write is running or waiting."""
        return self.writer is None and not self.queue


class Task:
    """One unit of work and what it touches.

    `error` is the Failure it ended with. `note` is free for one watcher. `pushed_by` is the custom
    call whose body pushed it. The other fields belong to the engine.
    """

    __slots__ = (
        "error",
        "fn",
        "is_async",
        "kind",
        "name",
        "note",
        "parts",
        "priority",
        "pushed_by",
        "reads",
        "stubborn",
        "then",
        "waits",
        "writes",
    )

    def __init__(
        self,
        fn: Callable[..., object] | None,
        name: str,
        reads: tuple[Var, ...] = (),
        writes: tuple[Var, ...] = (),
        priority: int = 0,
        kind: int = OP,
        pushed_by: Call | None = None,
        is_async: bool = False,
    ) -> None:
        self.fn = fn
        self.name = name
        self.reads = reads
        self.writes = writes
        self.priority = priority
        self.kind = kind
        self.pushed_by = pushed_by
        self.is_async = is_async
        self.error: Failure | None = None
        self.note: Any = None
        self.waits = 0  # variables not granted yet
        self.stubborn = False  # runs although what it touches has failed
        self.parts: list[Task] | None = None  # the operators of a bulk segment
        # Completed in place by whoever makes it ready: returns the tasks that end now.
        self.then: Callable[[], tuple[Task, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Task {self.name!r}>"


def tidy(reads: Iterable[Var], writes: Iterable[Var]) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
    """Checked tuples without duplicates; a variable in both lists is only written."""
    reads, writes = tuple(reads), tuple(writes)
    for var in reads + writes:
        if var.__class__ is not Var:
            raise TypeError(f"reads and writes must hold Var objects, not {type(var).__name__}")
        if var.doomed:
            raise EngineError("the variable has been deleted")
    if len(writes) > 1:
        writes = tuple(dict.fromkeys(writes))
    if reads and (writes or len(reads) > 1):
        reads = tuple(dict.fromkeys(var for var in reads if var not in writes))
    return reads, writes


def blame(task: Task) -> Failure | None:
    """The first unreported failure among what the task touches, its outputs included."""
    for var in task.reads:
        if var.error is not None and not var.error.reported:
            return var.error
    for var in task.writes:
        if var.error is not None and not var.error.reported:
            return var.error
    return None


def settle(task: Task) -> None:
    """Leave the task's mark on what it wrote; the caller has it granted exclusively."""
    error = task.error
    for var in task.writes:
        var.version += 1
        if error is not None or not task.stubborn:  # a deletion mends nothing
            var.error = error


class Graph:
    """Grants variables to tasks in push order: many readers or one writer. Not thread-safe."""

    __slots__ = ("tasks",)

    def __init__(self) -> None:
        self.tasks: set[Task] = set()

    def push(self, task: Task) -> tuple[Task, ...]:
        """Queue the task; returns it if it may run at once."""
        waits = 0
        for var in task.reads:
            if var.writer is None and not var.queue:
                var.reading += 1
            else:
                waits += 1
                self._enqueue(var, task, False)
        for var in task.writes:
            if var.writer is None and not var.reading and not var.queue:
                var.writer = task
            else:
                waits += 1
                self._enqueue(var, task, True)
        task.waits = waits
        self.tasks.add(task)
        return () if waits else (task,)

    @staticmethod
    def _enqueue(var: Var, task: Task, write: bool) -> None:
        if var.queue is None:
            var.queue = deque()
        var.queue.append((task, write))

    def done(self, task: Task) -> list[Task]:
        """Give back what the task held; returns the tasks that may run now, in push order."""
        try:
            self.tasks.remove(task)
        except KeyError:
            raise GraphError(f"{task!r} is not pending") from None
        if task.waits:
            raise GraphError(f"{task!r} ended before it was ready")
        if task.kind != HIDDEN:
            settle(task)
        ready: list[Task] = []
        for var in task.reads:
            var.reading -= 1
            if not var.reading and var.queue:
                self._grant(var, ready)
        for var in task.writes:
            var.writer = None
            if var.queue:
                self._grant(var, ready)
        return ready

    @staticmethod
    def _grant(var: Var, ready: list[Task]) -> None:
        queue = var.queue
        while queue:
            task, write = queue[0]
            if write and var.reading:
                return
            queue.popleft()
            task.waits -= 1
            if not task.waits:
                ready.append(task)
            if write:
                var.writer = task
                return
            var.reading += 1

    def check(self) -> None:
        """Raise GraphError when the state contradicts itself."""
        waits: dict[Task, int] = dict.fromkeys(self.tasks, 0)
        variables = {var for task in self.tasks for var in (*task.reads, *task.writes)}
        for var in variables:
            if var.reading < 0 or (var.reading and var.writer is not None):
                raise GraphError(f"{var.reading} readers beside writer {var.writer!r}")
            if var.writer is not None and var.writer not in self.tasks:
                raise GraphError(f"{var.writer!r} has ended and still holds a variable")
            if var.queue and var.writer is None and not (var.reading and var.queue[0][1]):
                raise GraphError(f"{var.queue[0][0]!r} waits for a variable that is free")
            for task, _ in var.queue or ():
                if task not in waits:
                    raise GraphError(f"{task!r} is queued and not pending")
                waits[task] += 1
        for task, count in waits.items():
            if task.waits != count:
                raise GraphError(f"{task!r} counts {task.waits} waits and has {count}")
