"""Drains the buffers into the sink: a thread of its own, and once more at the end."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from opscope.model import SPAN, Sight
from opscope.record.begun import Begun
from opscope.record.buffer import Buffer, does_not_fit, log
from opscope.record.packed import joined, newest
from opscope.record.recorder import Recorder, Sink

#: How often the file is brought up to date, in seconds: what a killed process can lose.
FLUSH_S = 0.25


class Writer(threading.Thread):
    """The only one to touch the sink. Keeps memory flat; never raises into the program.

    When the sink fails (a full disk) that is logged once and the program goes on: `error` says why,
    and `lost` counts the spans that came after what is in the file.
    """

    def __init__(self, recorder: Recorder, flush_s: float = FLUSH_S) -> None:
        super().__init__(name="opscope-writer", daemon=True)
        self.recorder = recorder
        recorder.flush = self.flush
        self.error: OSError | None = None
        self.lost = 0
        self._flush_s = flush_s
        self._flushing = threading.Lock()
        self._held = b""  # rows that go with the next flush
        self._begun = Begun()
        self._told_lists = {"broken": 0, "notes": 0, "pauses": 0, "sight": 0}
        self._ending = self._closed = False

    def run(self) -> None:
        wake = self.recorder.wake
        while not self._ending:
            wake.wait(self._flush_s)
            wake.clear()
            self.recorder.woken = False
            if not self._ending:
                self.flush()
                self.recorder.tell("tick")

    def head(self, command: list[str], versions: Mapping[str, str]) -> None:
        """Tell the file about this process; before anything else."""
        fact = {
            "pid": os.getpid(),
            "command": command,
            "machine": machine(),
            "versions": dict(versions),
            "start_ns": self.recorder.start_ns,
        }
        with self._flushing:
            self._write([("process", fact)])
        self.flush()

    def flush(self) -> None:
        """Write everything recorded so far. Any thread; nothing happens after `finish`."""
        with self._flushing:
            if not self._closed:
                self._write_news()

    def finish(self) -> None:
        """Write the rest, say that the recording ended in order, and close the sink."""
        recorder = self.recorder
        self._ending = True
        recorder.wake.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join()
        end_ns = recorder.now()
        if recorder.links_lost:
            recorder.notes.append(f"{recorder.links_lost:,} links were lost for want of room")
        if recorder.paused_ns:
            recorder.pauses.append((recorder.paused_ns, end_ns))
        with self._flushing:
            self._write_news(last=True)
            recorder.opened.clear()
            self._write([("end", {"end_ns": end_ns})])
            self._closed = True
            try:
                recorder.sink.close()
            except OSError as error:
                self._failed(error)

    def _write_news(self, *, last: bool = False) -> None:
        try:
            facts = self._facts(last)
        except Exception:
            log.exception("opscope: part of the recording was lost")
        else:
            self._write(facts)

    def _write(self, facts: list[tuple[str, Any]]) -> None:
        sink = self.recorder.sink
        if self.error is None:
            try:
                for word, data in facts:
                    _put(sink, word, data)
                sink.flush()
                return
            except OSError as error:
                self._failed(error)
        for word, data in facts:
            if word == "spans":
                self.lost += len(data) // SPAN.itemsize
            elif word == "drops":
                self.lost += sum(drop[-1] for drop in data)

    def _failed(self, error: OSError) -> None:
        if self.error is None:
            self.error = error
            log.error("opscope: the recording cannot be written any more and ends here: %s", error)

    def _facts(self, last: bool) -> list[tuple[str, Any]]:
        """Everything new, in an order in which whatever a row needs stands before it.

        Owners included: what is open is looked at after the rows to be written were counted, and
        what came in between waits, but is shown as open if it is a call. In the end no call begins
        any more, and everything is written.
        """
        recorder = self.recorder
        now_open = dict(recorder.opened) if last else {}
        rows, self._held = [self._held], b""
        counted = [(buffer, buffer.waiting()) for buffer in list(recorder.buffers)]
        late = len(recorder.late)
        links = len(recorder.links)
        if not last:
            now_open = dict(recorder.opened)
        rows += [_taken(buffer, size) for buffer, size in counted]
        if not last:
            self._held = joined([_taken(b, b.waiting()) for b in list(recorder.buffers)])
        while recorder.unfit:
            does_not_fit(recorder.unfit.popleft())
        packed = joined(rows)
        self._tap(packed)
        spans = joined([packed, *(recorder.late.popleft() for _ in range(late))])
        held = np.frombuffer(self._held, SPAN)
        settled = self._begun.settle(now_open, spans, held, recorder.now())
        if settled:
            spans += np.array(settled, SPAN).tobytes()
        # What began later than anything seen so far has no rows here, and perhaps an owner who is
        # not shown as open yet.
        last_seen = max(max(now_open, default=0), newest(packed))
        ended = held[held["id"] <= last_seen]
        opened = self._begun.news(now_open, ended, everything=last)
        # Only now: whatever the rows above refer to was interned before them.
        facts = [*recorder.tables.news(), *self._lists(), *self._asked(last)]
        if opened:
            facts.append(("open", opened))
        if spans:
            facts.append(("spans", spans))
        if links:
            facts.append(("links", [recorder.links.popleft() for _ in range(links)]))
        drops = [drop for buffer, _ in counted if (drop := _drop(buffer))]
        drops += [recorder.losses.popleft() for _ in range(len(recorder.losses))]
        if drops:
            facts.append(("drops", drops))
        facts.append(("anchor", [recorder.now(), recorder.clock.wall()]))
        self._forget_dead(counted)
        return facts

    def _tap(self, rows: bytes) -> None:
        for tap in list(self.recorder.taps) if rows else ():
            try:
                tap(rows)
            except Exception as error:
                self.recorder.fault("tap", error)

    def _asked(self, last: bool) -> list[tuple[str, Any]]:
        facts: list[tuple[str, Any]] = []
        for source in list(self.recorder.sources):
            try:
                facts += source(last)
            except Exception as error:
                self.recorder.fault("source of facts", error)
        return facts

    def _forget_dead(self, counted: list[tuple[Buffer, int]]) -> None:
        """Let go of the empty buffers of threads that are gone: a program may start millions."""
        for buffer, _ in counted:
            thread = buffer.thread()
            dead = thread is None or not thread.is_alive()
            # Looked at after that: a thread that is gone adds no more.
            if dead and not buffer.waiting() and buffer.dropped == buffer.reported:
                self.recorder.buffers.remove(buffer)

    def _lists(self) -> list[tuple[str, Any]]:
        recorder = self.recorder
        facts: list[tuple[str, Any]] = []
        for word, done in self._told_lists.items():
            rows = list(getattr(recorder, word))[done:]
            if rows:
                self._told_lists[word] += len(rows)
                facts.append((word, [_sight(r) if isinstance(r, Sight) else r for r in rows]))
        return facts


def _put(sink: Sink, word: str, data: Any) -> None:
    """One fact that cannot be put into words costs nobody else's."""
    try:
        sink.put(word, data)
    except Exception:
        log.exception("opscope: part of the recording was lost: %s", word)


def _taken(buffer: Buffer, size: int) -> bytes:
    return buffer.take(size)


def _drop(buffer: Buffer) -> tuple[int, int, int] | None:
    count = buffer.dropped - buffer.reported
    if not count:
        return None
    # Zero where the thread was just about to note the start.
    drop = (buffer.drop_from or buffer.drop_to, buffer.drop_to, count)
    buffer.reported += count
    buffer.drop_from = 0
    return drop


def _sight(sight: Sight) -> dict[str, Any]:
    return {
        "host": sight.host,
        "version": sight.version,
        "sees": list(sight.sees),
        "misses": dict(sight.misses),
    }


def machine() -> str:
    """A text that is the same for all processes that share this monotonic clock."""
    boot = ""
    if sys.platform == "linux":
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                boot = file.read().strip()
        except OSError:
            boot = ""
    return f"{platform.node()} {boot}".strip()
