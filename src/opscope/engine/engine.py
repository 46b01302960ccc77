"""What every kind of engine offers: pushing tasks, waiting for them, errors that stick."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from .bulk import Segment
from .calls import Call, here
from .errors import EngineError
from .graph import CHORE, OP, Failure, Task, Var, blame, settle, tidy
from .hooks import hooks

T = TypeVar("T")
Done = Callable[..., None]


class Engine(ABC):
    """Runs tasks in an order that respects what they read and write.

    Errors of tasks never raise at the push: they stick to what was written and raise at a wait,
    each once, with their own type. Every method may be called from any thread and from the body
    of a custom operator; the function of a plain task must not wait for others.
    """

    kind: str

    def __init__(self) -> None:
        self.failures: deque[Failure] = deque()
        # Finalisers append here at any moment, even with a lock held: never anything but append.
        self.dropped: deque[Var] = deque()

    # Pushing

    def push_async(
        self,
        fn: Callable[[Done], object] | None,
        reads: Iterable[Var] = (),
        writes: Iterable[Var] = (),
        name: str = "task",
        priority: int = 0,
    ) -> None:
        """Push a function that ends when its argument, `done(error=None)`, is called.

        Does not block (kind naive: until done). TypeError for wrong arguments, at once.
        """
        if fn is None:
            self.push_sync(None, reads, writes, name, priority)
        else:
            self._submit(self._task(fn, reads, writes, name, priority, True))

    def push_sync(
        self,
        fn: Callable[[], object] | None,
        reads: Iterable[Var] = (),
        writes: Iterable[Var] = (),
        name: str = "task",
        priority: int = 0,
    ) -> None:
        """Push a function that ends when it returns. Does not block; TypeError as above."""
        self._submit(self._task(fn, reads, writes, name, priority, False))

    def push_task(self, task: Task) -> None:
        """Push a ready-made task of any kind; nothing is checked. For operators."""
        self._submit(task)

    def _task(
        self,
        fn: Callable[..., object] | None,
        reads: Iterable[Var],
        writes: Iterable[Var],
        name: str,
        priority: int,
        is_async: bool,
    ) -> Task:
        if fn is not None and not callable(fn):
            raise TypeError(f"fn must be callable or None, not {type(fn).__name__}")
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        if not isinstance(priority, int):
            raise TypeError(f"priority must be an int, not {type(priority).__name__}")
        if reads or writes:
            reads, writes = tidy(reads, writes)
        return Task(fn, name, reads, writes, priority, OP, here.call, is_async)  # type: ignore[arg-type]

    def new_var(self) -> Var:
        """A variable that nothing has written yet."""
        return Var()

    def delete_var(self, var: Var, callback: Callable[[], object] | None = None) -> None:
        """Delete it once all pending uses have ended, then call `callback`. Does not block."""
        tidy((), (var,))
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")
        self.flush()
        try:
            self._submit(self._deletion(var, callback, here.call))
        except EngineError:  # stopped: nothing was pushed
            var.doomed = False
            raise

    def _deletion(self, var: Var, callback: Callable[[], object] | None, call: Call | None) -> Task:
        def delete() -> None:
            var.deleted = True
            if callback is not None:
                callback()

        var.doomed = True
        task = Task(delete, "DeleteVariable", (), (var,), 0, CHORE, call)
        task.stubborn = True
        return task

    def sweep(self) -> None:
        """Push the deletions that finalisers have asked for. Nobody's call is charged with them."""
        while self.dropped:
            try:
                var = self.dropped.popleft()
            except IndexError:  # another thread was quicker
                return
            if not var.doomed:
                self._chore(self._deletion(var, None, None))

    # Waiting

    def wait_for_var(self, var: Var, what: str = "wait_for_var") -> None:
        """Block until pending writes have ended (not reads), then raise what stuck to it, once."""
        self.read(var, None, what)

    @abstractmethod
    def read(self, var: Var, fn: Callable[[], T] | None, what: str) -> T | None:
        """As `wait_for_var`; then call `fn` while no write can start, and return its result."""

    @abstractmethod
    def wait_all(self, what: str = "wait_all") -> None:
        """Block until all work has ended, then raise the first unreported failure.

        In the body of a custom operator: all work that this call pushed, however deep.
        """

    @contextmanager
    def bulk(self, size: int) -> Iterator[None]:
        """Hand consecutive synchronous operators of this thread over in segments of `size`.

        A wait, another kind of push and the end of the scope hand over what was gathered. Until
        then other threads do not see those operators.
        """
        if not isinstance(size, int):
            raise TypeError(f"size must be an int, not {type(size).__name__}")
        self.flush()
        outer = here.segment
        here.segment = Segment(self, size) if size > 1 and self._gathers else None
        try:
            yield
        finally:
            try:
                self.flush()
            finally:
                here.segment = outer

    _gathers = True

    def flush(self) -> None:
        """Hand over what this thread's bulk scope has gathered. Does not block."""
        segment = here.segment
        if segment is not None and segment.parts and segment.engine is self:
            task = segment.take()
            if task is not None:
                self._enter(task)

    # Life

    @abstractmethod
    def stop(self) -> None:
        """Finish all work and let the threads go; pushing raises EngineError until `start`.

        Blocks. Unreported failures stay and raise at a later wait.
        """

    @abstractmethod
    def start(self) -> None:
        """Accept work again. Does not block."""

    # For the kinds

    @abstractmethod
    def _submit(self, task: Task) -> None:
        """Tell of the task, then run it or queue it."""

    @abstractmethod
    def _chore(self, task: Task) -> None:
        """As `_submit`, for the engine's own doing."""

    @abstractmethod
    def _enter(self, task: Task) -> None:
        """Queue a task that was told of before."""

    @abstractmethod
    def _ended(self, task: Task) -> None:
        """An asynchronous task has ended."""

    @abstractmethod
    def conclude(self, task: Task, inner: tuple[Var, ...]) -> None:
        """End a custom task once nothing uses its inner variables, with the error on them."""

    def fail(self, task: Task, error: BaseException) -> Failure:
        """A new failure of this task, which the next wait will raise."""
        failures = self.failures
        while failures and failures[0].reported:
            try:
                failures.popleft()
            except IndexError:  # another thread was quicker
                break
        failure = Failure(error, task.name, task.pushed_by)
        failures.append(failure)
        return failure

    def _first_failure(self, call: Call | None) -> Failure | None:
        """The first unreported failure, of what `call` pushed if there is one."""
        for failure in list(self.failures):
            if not failure.reported and (
                call is None or (failure.call is not None and failure.call.within(call))
            ):
                return failure
        return None

    def _perform(self, task: Task) -> None:
        """Run a synchronous task here and now, or skip it."""
        failure = None if task.stubborn else blame(task)
        if failure is not None:
            self._skip(task, failure)
            return
        if task.parts is not None:
            for part in task.parts:
                self._perform(part)
                settle(part)
            return
        told = hooks.started
        if told is not None:
            told(task)
        fn = task.fn
        if fn is not None:
            try:
                fn()
            except BaseException as error:
                task.error = self.fail(task, error)
            task.fn = fn = None  # lets go of the arrays before anyone is told
        told = hooks.finished
        if told is not None:
            told(task)

    def _skip(self, task: Task, failure: Failure) -> None:
        task.error = failure
        task.fn = None
        told = hooks.skipped
        if told is not None:
            told(task)

    def _launch(self, task: Task) -> bool:
        """Start an asynchronous task here and now; False if it was skipped instead."""
        failure = blame(task)
        if failure is not None:
            self._skip(task, failure)
            return False
        fn = task.fn
        assert fn is not None
        done = Completion(self, task)
        told = hooks.started
        if told is not None:
            told(task)
        try:
            fn(done)
        except BaseException as error:
            if not done.once:
                self.fail(task, error)  # it had ended well; the error still must not get lost
            else:
                done(error)
        return True


class Completion:
    """What an asynchronous task ends with. Any thread, once; EngineError the second time."""

    __slots__ = ("engine", "once", "task")

    def __init__(self, engine: Engine, task: Task) -> None:
        self.engine = engine
        self.task = task
        self.once = [None]  # popping it is atomic

    def __call__(self, error: BaseException | None = None) -> None:
        if error is not None and not isinstance(error, BaseException):
            raise TypeError(f"error must be an exception or None, not {type(error).__name__}")
        try:
            self.once.pop()
        except IndexError:
            raise EngineError(f"task {self.task.name!r} was completed before") from None
        task = self.task
        if error is not None:
            task.error = self.engine.fail(task, error)
        task.fn = None
        told = hooks.finished
        if told is not None:
            told(task)
        self.engine._ended(task)
