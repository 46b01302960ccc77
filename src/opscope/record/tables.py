"""Interned texts, lanes and operators, and which of them the file has not heard of yet."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

from opscope.model import Lane, Op


class Tables:
    """Index by text, key or operator. Any thread; looking up what is known takes no lock."""

    def __init__(self) -> None:
        # A finalizer may want a name while one is being made on this very thread.
        self._lock = threading.RLock()
        self.names: list[str] = []
        self.lanes: list[Lane] = []
        self.ops: list[tuple[int, Op]] = []
        self._by_text: dict[str, int] = {}
        self._by_lane: dict[Hashable, int] = {}
        self._by_op: dict[Op, int] = {}  # what was asked for; two may be of one key
        self._by_key: dict[str, int] = {}
        self._told = {"names": 0, "lanes": 0, "ops": 0}

    def name(self, text: str) -> int:
        """The index of a plain name."""
        found = self._by_text.get(text)
        if found is None:
            with self._lock:
                found = self._by_text.get(text)
                if found is None:
                    self.names.append(text)
                    found = self._by_text[text] = len(self.names) - 1
        return found

    def op(self, op: Op) -> int:
        """The index of the name that belongs to this operator alone; its key tells which it is."""
        found = self._by_op.get(op)
        if found is None:
            with self._lock:
                found = self._by_key.get(op.key)
                if found is None:
                    self.names.append(op.name)
                    self.ops.append((len(self.names) - 1, op))
                    found = self._by_key[op.key] = len(self.names) - 1
                self._by_op[op] = found
        return found

    def lane(self, key: Hashable, lane: Lane) -> int:
        """The index of the lane known by `key`; `lane` is taken when it is new."""
        found = self._by_lane.get(key)
        if found is None:
            with self._lock:
                found = self._by_lane.get(key)
                if found is None:
                    self.lanes.append(lane)
                    found = self._by_lane[key] = len(self.lanes) - 1
        return found

    def news(self) -> list[tuple[str, Any]]:
        """Facts for the file: what was added since the last time. One thread at a time."""
        facts: list[tuple[str, Any]] = []
        # Operators first: their names were added before them, so the names told next hold theirs.
        ops = self.ops[self._told["ops"] :]
        lanes = self.lanes[self._told["lanes"] :]
        names = self.names[self._told["names"] :]
        rows: dict[str, list[Any]] = {
            "names": names,
            "lanes": [[lane.name, lane.kind, lane.thread] for lane in lanes],
            "ops": [[index, asdict(op)] for index, op in ops],
        }
        for word, new in rows.items():
            if new:
                facts.append((word, [self._told[word], new]))
                self._told[word] += len(new)
        return facts
