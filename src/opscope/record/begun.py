"""What the file holds as begun: a killed process shows it, and a lost end is told."""

from __future__ import annotations

from collections.abc import Mapping

from opscope.model import Flag, Kind, Rows
from opscope.record.buffer import Row
from opscope.record.packed import among

#: What a killed process still shows as begun; at an orderly end everything that is open is written.
_KEPT = (Kind.CALL, Kind.TASK, Kind.STEP)


class Begun:
    """Asked at every flush, by the one thread that writes."""

    def __init__(self) -> None:
        #: What was written as begun and is not gone yet; None once its end is written too.
        self._told: dict[int, list[int] | None] = {}

    def settle(
        self, now_open: Mapping[int, list[int]], written: bytes, held: Rows, now_ns: int
    ) -> list[Row]:
        """The rows whose end was dropped for want of room, ended now.

        `written` are the rows that go into the file with this flush, `held` those that have ended
        and go with the next. Without a row a call would seem to run until the recording ends.
        """
        for span in among([*self._told, *now_open], written):
            self._told[span] = None
        waiting = set(held["id"].tolist())
        gone = [span for span in self._told if span not in now_open and span not in waiting]
        rows = [row for span in gone if (row := self._told.pop(span)) is not None]
        return [_ended(row, now_ns) for row in rows]

    def news(
        self, now_open: Mapping[int, list[int]], held: Rows, *, everything: bool
    ) -> list[list[int]]:
        """Rows of what has begun and is in the file neither as begun nor as ended."""
        rows = {row[0]: list(row) for row in (*now_open.values(), *held.tolist())}
        # A row without a start is still being filled in by its thread.
        new = {
            span: row
            for span, row in rows.items()
            if row[8] and (everything or row[3] in _KEPT) and span not in self._told
        }
        self._told.update(new)
        return list(new.values())


def _ended(row: list[int], now_ns: int) -> Row:
    flags = row[5] | Flag.INCOMPLETE | Flag.LOSSY
    return (*row[:5], flags, *row[6:9], now_ns, row[10], -1)  # type: ignore[return-value]
