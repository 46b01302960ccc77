"""The hot path: spans from any thread into bounded buffers, which a writer drains into a sink.

Pure Python: the reference for the faster one in C behind the same face, see `chosen`. Rows are bare
tuples of the twelve fields of `model.SPAN`, as an object per event costs several times the event.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Any, ClassVar, Protocol

from opscope.model import Kind, Lane, LinkKind, Phase, Rows, Sight
from opscope.record.buffer import BOUND, Buffer, Row, log
from opscope.record.clock import Clock, SystemClock
from opscope.record.stacks import current_frames
from opscope.record.tables import Tables


class Sink(Protocol):
    """Where facts go; one thread at a time. See `store.frames.TAGS` for the words."""

    def put(self, word: str, data: Any) -> None: ...
    def flush(self) -> None: ...
    def abandon(self) -> None: ...
    def close(self) -> None: ...


class Recorder:
    """Takes spans while a profile runs. Every method may be called from any thread; none blocks.

    The face that hosts see is `mode`, `clock`, `now`, `cpu`, `name`, `lane`, `op`, `here`, `begin`,
    `end`, `put`, `add`, `link`, `lost`, `fault`, `in_flight`, `sight`, `notes`, `taps`,
    `sources`, `listeners`, `flush`.
    """

    #: Tells which class `Recorder(...)` makes; set by `chosen`.
    chosen: ClassVar[Callable[[], type[Recorder]] | None] = None

    #: Rows a thread may have waiting, where nobody says how many.
    default_bound = BOUND

    #: An id that no span has.
    next_id: Callable[[], int]

    def __new__(cls, *args: Any, **kwargs: Any) -> Recorder:
        if cls is Recorder and cls.chosen is not None:
            cls = cls.chosen()
            if cls is not Recorder:
                return cls.__new__(cls)
        return super().__new__(cls)

    def __init__(
        self,
        sink: Sink,
        clock: Clock | None = None,
        *,
        bound: int = 0,
        mode: str = "full",
    ) -> None:
        self.sink = sink
        #: "full", or "light": calls, waits and tasks only, so that watching costs least.
        self.mode = mode
        self.clock: Clock = clock or SystemClock()
        self.now = self.clock.now
        self.closed = False
        self.wake = threading.Event()
        self.off: set[str] = set()
        self.broken: list[str] = []
        self.notes: list[str] = []
        self.sight: list[Sight] = []
        #: Asked at start and after a pause: which calls are running that nobody saw begin.
        self.in_flight: list[Callable[[], Iterable[Any]]] = []
        #: Given every batch of finished rows, packed as `model.SPAN`, before it is written.
        self.taps: list[Callable[[bytes], None]] = []
        #: Asked at every flush, with whether it is the last, for facts of theirs to be written.
        self.sources: list[Callable[[bool], list[tuple[str, Any]]]] = []
        #: Told "pause", "resume", "step", and "tick" after each flush of the writer.
        self.listeners: list[Callable[[str], None]] = []
        #: Have everything recorded so far written (and tapped) now. Blocks.
        self.flush: Callable[[], None] = _nothing
        self.start_ns = self.since_ns = self.now()
        self.pauses: list[tuple[int, int]] = []
        self.paused_ns = 0
        self.tables = Tables()
        self.name = self.tables.name
        self.op = self.tables.op
        self.opened: dict[int, list[int]] = {}
        self.links: deque[tuple[int, int, int]] = deque()
        self.links_lost = 0
        self.losses: deque[tuple[int, int, int]] = deque()
        self.late: deque[bytes] = deque()
        self.unfit: deque[Any] = deque()
        self.buffers: list[Buffer] = []
        #: The writer was woken, and has not looked since.
        self.woken = False
        self._bound = bound or self.default_bound
        self._next_lane = count().__next__
        #: Recording was never paused: the clock's CPU time is the one that counts.
        self.plain_cpu = True
        self._skipped_cpu: dict[int, int] = {}
        self._pause_cpu: dict[int, int] = {}
        self._local = threading.local()
        self._foreign: dict[int, Buffer] = {}  # by ident
        # By ident, for threads that have no buffer yet; the thread tells if it is still the one.
        self._lane_of: dict[int, tuple[int, weakref.ref[threading.Thread] | None]] = {}
        self._set_up()

    def _set_up(self) -> None:
        self.next_id = count(1).__next__

    def _new_buffer(self, lane: int) -> Buffer:
        return Buffer(lane, self._bound)

    # --- where and when ---------------------------------------------------------------------------

    def here(self) -> Buffer:
        """The calling thread's buffer; its `lane` is the lane of the thread."""
        try:
            return self._local.buffer  # type: ignore[no-any-return]
        except AttributeError:
            buffer = self._local.buffer = self._new_here()
            return buffer

    def _new_here(self) -> Buffer:
        ident, thread = threading.get_ident(), threading.current_thread()
        # A thread that Python did not start has a new state, and no memory of us, at each callback.
        foreign = isinstance(thread, threading._DummyThread)
        if foreign and ident in self._foreign:
            return self._foreign[ident]
        lane = self._known_lane(ident, thread)
        self._lane_of.pop(ident, None)
        buffer = self._new_buffer(lane if lane >= 0 else self._thread_lane(thread))
        self.buffers.append(buffer)
        if foreign:
            self._foreign[ident] = buffer
        return buffer

    def lane_of(self, ident: int) -> int:
        """The lane of another live thread."""
        main = threading.main_thread()  # which is not "alive" while the interpreter ends
        for buffer in list(self.buffers):
            thread = buffer.thread() if buffer.ident == ident else None
            if thread is not None and (thread is main or thread.is_alive()):
                return buffer.lane
        threads = {thread.ident: thread for thread in threading.enumerate()}
        found = threads.get(ident)
        lane = self._known_lane(ident, found)
        if lane < 0:
            lane = self._thread_lane(found)
            self._lane_of[ident] = lane, None if found is None else weakref.ref(found)
        return lane

    def _known_lane(self, ident: int, thread: threading.Thread | None) -> int:
        """The lane `lane_of` gave this very thread; -1: none. Idents are used again."""
        lane, known = self._lane_of.get(ident, (-1, None))
        if known is not None:
            return lane if known() is thread else -1
        # One that Python did not start may only now have become known to it.
        foreign = thread is None or isinstance(thread, threading._DummyThread)
        return lane if foreign else -1

    def _thread_lane(self, thread: threading.Thread | None) -> int:
        name, native = (thread.name, thread.native_id or 0) if thread else ("thread", 0)
        return self.lane(("thread", self._next_lane()), name, thread=native)

    def lane(
        self, key: Hashable, name: str, kind: str = "thread", *, thread: int = 0, process: int = 0
    ) -> int:
        """The lane known by `key`, made when it is new."""
        return self.tables.lane(key, Lane(name, kind, process, thread))

    def cpu(self) -> int:
        """CPU time of the calling thread in ns; it stands still while recording is paused."""
        used = self.clock.cpu()
        if self._skipped_cpu or self._pause_cpu:
            ident = threading.get_ident()
            used = self._pause_cpu.get(ident, used) - self._skipped_cpu.get(ident, 0)
        return used

    def cpu_of(self, ident: int) -> int:
        """The same for another live thread; -1 where the system does not tell."""
        used = self.clock.cpu_of(ident)
        return used - self._skipped_cpu.get(ident, 0) if used >= 0 else -1

    def cpu_on(self, lane: int) -> int:
        """The same for the thread of that lane; -1: not known."""
        for buffer in list(self.buffers):
            if buffer.lane == lane and (thread := buffer.thread()) and thread.is_alive():
                return -1 if self.paused_ns else self.cpu_of(buffer.ident)
        return -1

    # --- spans ------------------------------------------------------------------------------------

    def begin(
        self,
        kind: Kind,
        name: int,
        *,
        owner: int,
        phase: Phase = Phase.NONE,
        flags: int = 0,
        lane: int = -1,
        submitted_ns: int = 0,
        submitted_lane: int = -1,
        start_ns: int = 0,
    ) -> int:
        """Open a span and return its id; 0, which `end` ignores, once recording has ended.

        `owner` is the id of the call that caused it, 0 for none. An open call is written as such at
        the next flush, so a killed process still shows it.
        """
        if self.closed:
            return 0
        if lane < 0:
            lane = self.here().lane
        span = self.next_id()
        row = [
            span, owner, name, int(kind), int(phase), flags, lane,
            submitted_lane if submitted_lane >= 0 else lane, start_ns, 0, submitted_ns, -1,
        ]  # fmt: skip
        self.opened[span] = row
        if not start_ns:
            row[8] = self.now()
        return span

    def end(self, span: int, *, flags: int = 0, cpu_ns: int = -1, end_ns: int = 0) -> None:
        """Close a span. A span that is unknown, or was closed before, is left alone."""
        now = end_ns or self.now()
        row = self.opened.get(span)
        if row is None:
            return
        if flags:
            row[5] |= int(flags)
        row[9] = now if now > row[8] else row[8]
        row[11] = cpu_ns
        self.put(tuple(row))  # type: ignore[arg-type]
        # Only now: the writer finds the call either among the open ones or in a buffer.
        self.opened.pop(span, None)

    def put(self, row: Row) -> None:
        """Take one finished span as the bare tuple of its fields."""
        buffer = self.here()
        waiting = len(buffer.rows)
        if waiting >= buffer.bound:
            buffer.drop_from = min(buffer.drop_from or row[8], row[8])
            buffer.drop_to = row[9]
            buffer.dropped += 1
            return
        buffer.rows.append(row)
        if waiting + 1 >= buffer.wake_at and not self.woken:
            # First: a signal handler that comes while the event is locked may record as well.
            self.woken = True
            self.wake.set()

    def add(self, rows: Rows) -> None:
        """Late delivery: many finished spans as one `model.SPAN` table."""
        self.late.append(rows.tobytes())

    def link(self, kind: LinkKind, source: int, target: int) -> None:
        """Join two spans by their ids."""
        if source and target:
            if len(self.links) >= self._bound:
                self.links_lost += 1
                return
            self.links.append((int(kind), source, target))

    def lost(self, start_ns: int, end_ns: int, count: int = 0) -> None:
        """Spans between these moments were not seen: calls that overlap it become lossy."""
        self.losses.append((start_ns, end_ns, count))

    def tell(self, moment: str) -> None:
        """Tell the listeners. Never raises."""
        for listener in list(self.listeners):
            try:
                listener(moment)
            except Exception as error:
                self.fault(f"listener at {moment}", error)

    # --- faults and pauses ------------------------------------------------------------------------

    def fault(self, where: str, error: BaseException) -> None:
        """A hook of ours failed: switch it off, log it once, keep its name. Never raises."""
        if where not in self.off:
            self.off.add(where)
            self.broken.append(f"{where}: {type(error).__name__}: {error}")
            log.error("opscope: %s failed and is switched off", where, exc_info=error)

    def pause(self) -> None:
        """Stop the clocks of the recording. Calls that run now go on and keep their rows."""
        if not self.paused_ns:
            self.paused_ns = self.now()
            self.plain_cpu = False
            # Of every thread: a call that was found running has recorded nothing on its own yet.
            self._pause_cpu = {ident: self.clock.cpu_of(ident) for ident in current_frames()}

    def resume(self) -> None:
        """Take up recording again after `pause`."""
        if self.paused_ns:
            alive = current_frames()
            for ident, before in self._pause_cpu.items():
                if ident in alive and before >= 0:
                    used = self.clock.cpu_of(ident) - before
                    self._skipped_cpu[ident] = self._skipped_cpu.get(ident, 0) + max(used, 0)
            self._pause_cpu = {}
            self.since_ns = self.now()
            self.pauses.append((self.paused_ns, self.since_ns))
            self.paused_ns = 0


def _nothing() -> None:
    """Where no writer is."""


__all__ = ["BOUND", "Buffer", "Recorder", "Row", "Sink"]
