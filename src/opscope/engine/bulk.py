"""Segments: consecutive synchronous operators that the graph sees as one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph import HIDDEN, Task

if TYPE_CHECKING:
    from .engine import Engine


class Segment:
    """The operators one thread has gathered in a bulk scope and not handed over yet."""

    __slots__ = ("engine", "limit", "parts")

    def __init__(self, engine: Engine, limit: int) -> None:
        self.engine = engine
        self.limit = limit
        self.parts: list[Task] = []

    def take(self) -> Task | None:
        """One task for all that was gathered, or None; the segment is empty afterwards."""
        parts, self.parts = self.parts, []
        if len(parts) < 2:
            return parts[0] if parts else None
        writes = dict.fromkeys(var for part in parts for var in part.writes)
        reads = dict.fromkeys(var for part in parts for var in part.reads if var not in writes)
        task = Task(None, "Bulk", tuple(reads), tuple(writes), kind=HIDDEN)
        task.priority = max(part.priority for part in parts)
        task.pushed_by = parts[0].pushed_by
        # An operator whose input failed is skipped by itself, not the whole segment.
        task.stubborn = True
        task.parts = parts
        return task
