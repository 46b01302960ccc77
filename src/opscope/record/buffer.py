"""What one thread has recorded and nobody has written yet: it appends, the writer takes."""

from __future__ import annotations

import logging
import struct
import threading
import weakref
from collections import deque
from itertools import starmap

from opscope.model import SPAN_FORMAT

log = logging.getLogger("opscope")

#: One finished span: the fields of `model.SPAN`, in order.
Row = tuple[int, int, int, int, int, int, int, int, int, int, int, int]

#: Rows a thread may have waiting before more are dropped, and before the writer is woken early.
BOUND = 65_536
_WAKE = 8_192

_pack = struct.Struct(SPAN_FORMAT).pack


class Buffer:
    """The rows of one thread. `_native.Buffer` is its twin in C."""

    __slots__ = (
        "bound", "drop_from", "drop_to", "dropped", "ident", "lane", "reported", "rows", "thread",
        "wake_at",
    )  # fmt: skip

    def __init__(self, lane: int, bound: int) -> None:
        self.rows: deque[Row] = deque()
        self.lane = lane
        self.ident = threading.get_ident()
        self.thread = weakref.ref(threading.current_thread())
        self.bound = bound
        self.wake_at = wake_at(bound)
        self.dropped = self.reported = (
            0  # both only ever grow, so no count gets lost between threads
        )
        self.drop_from = self.drop_to = 0

    def waiting(self) -> int:
        """How many rows nobody has taken yet."""
        return len(self.rows)

    def take(self, count: int) -> bytes:
        """The oldest rows, packed as `model.SPAN`; at most as many as there are."""
        popleft = self.rows.popleft
        return _packed([popleft() for _ in range(min(count, len(self.rows)))])


def wake_at(bound: int) -> int:
    """How many rows have to wait before the writer is woken."""
    return min(bound, _WAKE)


def does_not_fit(row: object) -> None:
    """Say that a row is left out."""
    log.error("opscope: a span does not fit the file and is left out: %r", row)


def _packed(rows: list[Row]) -> bytes:
    try:
        return b"".join(starmap(_pack, rows))
    except struct.error:
        return b"".join(_packed_or_nothing(row) for row in rows)


def _packed_or_nothing(row: Row) -> bytes:
    try:
        return _pack(*row)
    except struct.error:
        does_not_fit(row)
        return b""
