"""Worker threads that park on a lock each and are woken one by one; the owner's lock guards all."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from itertools import count

from .graph import CHORE, Task


class Queue:
    """Ready tasks: chores first, then by priority, in order of arrival among equals."""

    __slots__ = ("_chores", "_high", "_low", "_order", "_plain")

    def __init__(self) -> None:
        self._chores: deque[Task] = deque()
        self._plain: deque[Task] = deque()  # priority 0, by far the most
        self._high: list[tuple[int, int, Task]] = []
        self._low: list[tuple[int, int, Task]] = []
        self._order = count()

    def put(self, task: Task) -> None:
        priority = task.priority
        if task.kind == CHORE:
            self._chores.append(task)
        elif not priority:
            self._plain.append(task)
        else:
            heap = self._high if priority > 0 else self._low
            heapq.heappush(heap, (-priority, next(self._order), task))

    def take(self) -> Task | None:
        if self._chores:
            return self._chores.popleft()
        if self._high:
            return heapq.heappop(self._high)[2]
        if self._plain:
            return self._plain.popleft()
        if self._low:
            return heapq.heappop(self._low)[2]
        return None

    def __len__(self) -> int:
        return len(self._chores) + len(self._plain) + len(self._high) + len(self._low)


class Worker(threading.Thread):
    """One thread of the engine, whatever it runs: `engine-worker-N` or `engine-custom-N`."""

    def __init__(self, pool: Pool, number: int) -> None:
        super().__init__(name=f"{pool.label}-{number}", daemon=True)
        self.pool = pool
        self.number = number
        self.gate = threading.Lock()  # held while there is nothing to do
        self.gate.acquire()
        self.task: Task | None = None  # what it runs now
        self.born = threading.Event()  # it runs, or never will

    def run(self) -> None:
        self.born.set()
        self.pool.serve(self)

    def await_end(self) -> None:
        """Block until the thread is gone, also if another thread is only about to start it."""
        self.born.wait()
        if self.ident is not None:
            self.join()


class Pool:
    """A set of workers and their queue. All methods need the owner's lock, except `park`.

    `core` workers stay; up to `limit` that are not `blocked` may exist; the surplus leaves after
    `idle_s` seconds without work.
    """

    def __init__(
        self, label: str, core: int, limit: int, idle_s: float, serve: Callable[[Worker], None]
    ) -> None:
        self.label = label
        self.core = core
        self.limit = limit
        self.idle_s = idle_s
        self.serve = serve
        self.queue = Queue()
        self.due = 0  # tasks put since the last summons
        self.blocked = 0  # workers inside a custom body, which may wait for others
        self.idle: list[Worker] = []
        self.members: set[Worker] = set()
        self.closing = False

    def put(self, task: Task) -> None:
        self.queue.put(task)
        self.due += 1

    def summon(self) -> list[Worker]:
        """One thread for each task put; returns new ones, to be started without the lock."""
        fresh: list[Worker] = []
        while self.due > 0 and self.idle:
            # The one that parked last: its caches are warm, and the others get to leave.
            self.idle.pop().gate.release()
            self.due -= 1
        while self.due > 0 and len(self.members) - self.blocked < self.limit:
            fresh.append(self._recruit())
            self.due -= 1
        self.due = 0  # the rest waits in the queue for whoever ends first
        return fresh

    def stand_in(self) -> list[Worker]:
        """A worker is about to block: somebody else must see to the queue."""
        self.blocked += 1
        self.due = min(len(self.queue), 1)
        return self.summon()

    def _recruit(self) -> Worker:
        taken = {worker.number for worker in self.members}
        worker = Worker(self, next(number for number in count(1) if number not in taken))
        self.members.add(worker)
        return worker

    def lie_down(self, worker: Worker) -> float:
        """The worker found nothing to do; returns how long to park, -1 for ever."""
        self.idle.append(worker)
        return self.idle_s if len(self.members) - self.blocked > self.core else -1

    def park(self, worker: Worker, timeout_s: float, lock: threading.Lock) -> bool:
        """Sleep until summoned; False when the worker has to leave. Takes the owner's lock."""
        if not worker.gate.acquire(timeout=timeout_s):
            with lock:
                if worker not in self.idle:
                    worker.gate.acquire()  # summoned at the last moment: the gate is open
                elif len(self.members) - self.blocked > self.core:
                    self.idle.remove(worker)
                    self.members.discard(worker)
                    return False
                else:
                    self.idle.remove(worker)
        return True

    def close(self) -> list[Worker]:
        """Send everybody home; returns whom to join."""
        self.closing = True
        for worker in self.idle:
            worker.gate.release()
        self.idle.clear()
        return list(self.members)

    def forget(self, survivor: Worker | None) -> list[Task]:
        """In a forked child: only the survivor is left; returns what the others were running."""
        lost = [w.task for w in self.members if w is not survivor and w.task is not None]
        self.members = {survivor} if survivor in self.members and survivor is not None else set()
        self.idle.clear()
        self.blocked = min(self.blocked, len(self.members))
        self.due = len(self.queue)
        self.closing = False
        return lost
