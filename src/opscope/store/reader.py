"""Bytes of a session file to a `Session`. Whatever is whole is used, whatever is lost is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opscope.errors import InputError
from opscope.model import (
    DROP,
    LINK,
    PAUSE,
    SPAN,
    Flag,
    Lane,
    Process,
    Rows,
    Session,
    no_rows,
)
from opscope.store import sense
from opscope.store.frames import HEAD, MAGIC, VERSION, Damage, frames

#: Stands for a name whose frame was lost.
LOST_NAME = "?"


def is_session(data: bytes) -> bool:
    """Whether the bytes begin as a session file does (or as far as they reach)."""
    return bool(data) and MAGIC.startswith(data[: len(MAGIC)])


def parse(data: bytes, where: str) -> Session:
    """The session in `data`; `where` names the file in messages.

    Raises InputError when this is no session file, or one of a newer format. Damage behind the head
    never raises: it is told in `Process.damage`.
    """
    if not data:
        raise InputError(f"{where} is empty: nothing was recorded in it")
    if not is_session(data):
        raise InputError(f"{where} is not an opscope session: it begins with {data[:8]!r}")
    if len(data) < HEAD.size:
        return Session(processes=(Process(damage=f"{where} ends inside its head"),))
    version = HEAD.unpack_from(data)[1]
    if version > VERSION:
        raise InputError(
            f"{where} was written by a newer opscope (format {version}; this one reads up to "
            f"{VERSION}): upgrade with `pip install -U opscope`"
        )
    build = _Build(sense.limit(len(data)))
    for found in frames(memoryview(data)):
        if isinstance(found, Damage):
            build.damage.append(str(found))
            continue
        try:
            build.take(*found)
        except Exception as error:  # whole, but not written by us: told, never raised
            build.damage.append(f"a frame {found[0]!r} that makes no sense ({error})")
    return build.session()


#: What becomes of each entry of a numbered table, and of each entry of a plain list.
_TABLES: dict[str, Callable[[Any], Any]] = {
    "names": sense.text, "lanes": sense.lane, "ops": sense.op,
}  # fmt: skip
_LISTS: dict[str, Callable[[Any], Any]] = {
    "samples": sense.sample, "sight": sense.sight, "broken": sense.text, "notes": sense.text,
}  # fmt: skip
#: Entries that are rows of numbers, which the file writes without their process.
_ROWS: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
    "open": (SPAN, ()), "links": (LINK, ()), "pauses": (PAUSE, (0,)), "drops": (DROP, (0,)),
}  # fmt: skip


class _Build:
    """Collects the frames of one file, in order."""

    def __init__(self, most: int) -> None:
        self._most = most  # what no index is larger than
        self.tables: dict[str, dict[int, Any]] = {word: {} for word in _TABLES}
        self.lists: dict[str, list[Any]] = {word: [] for word in _LISTS}
        self.rows: dict[str, list[Rows]] = {
            word: [no_rows(dtype)] for word, (dtype, _) in _ROWS.items()
        }
        self.rows["spans"] = [no_rows(SPAN)]
        self.process = Process()
        self.anchors: list[tuple[int, int]] = []
        self.costs: dict[str, tuple[int, int]] = {}
        self.end_ns: int | None = None
        self.damage: list[str] = []

    def take(self, word: str, payload: memoryview) -> None:
        """Add one frame, or raise and leave everything as it was."""
        if word == "spans":
            count = len(payload) // SPAN.itemsize
            self.rows[word].append(np.frombuffer(payload, SPAN, count=count))
            return
        data = json.loads(bytes(payload))
        if word in _TABLES:
            first, entries = data
            if not 0 <= first <= self._most:
                raise ValueError(f"it begins with number {first}")
            found = list(map(_TABLES[word], entries))
            if word == "ops" and any(not 0 <= name < self._most for name, _ in found):
                raise ValueError("an operator without a name")
            self.tables[word].update(enumerate(found, first))
        elif word in _ROWS:
            dtype, before = _ROWS[word]
            self.rows[word].append(np.array([(*before, *row) for row in data], dtype))
        elif word in _LISTS:
            self.lists[word].extend(list(map(_LISTS[word], data)))
        elif word == "process":
            self.process = sense.process(data)
        elif word == "anchor":
            mono, wall = map(sense.whole, data)
            self.anchors.append((mono, wall))
        elif word == "costs":
            self.costs = {
                str(k): (sense.whole(inside), sense.whole(out)) for k, (inside, out) in data.items()
            }
        elif word == "end":
            self.end_ns = sense.whole(data["end_ns"])

    def session(self) -> Session:
        """What the frames tell together."""
        rows = {word: np.concatenate(tables) for word, tables in self.rows.items()}
        for word in ("spans", "open"):
            sound = sense.spans(rows[word], self._most)
            if not sound.all():
                self.damage.append(f"{np.count_nonzero(~sound):,} spans that make no sense")
                rows[word] = rows[word][sound]
        end_ns = self._last_moment(rows) if self.end_ns is None else self.end_ns
        spans = _with_open(_latest(rows["spans"]), rows["open"], end_ns)
        ops = [entry for _, entry in sorted(self.tables["ops"].items())]
        process = replace(
            self.process,
            end_ns=end_ns,
            anchors=tuple(self.anchors),
            complete=self.end_ns is not None,
            damage="; ".join(self.damage),
            broken=tuple(self.lists["broken"]),
            notes=tuple(self.lists["notes"]),
            costs=self.costs,
        )
        return Session(
            spans=spans,
            names=self._names(spans),
            lanes=self._lanes(spans),
            links=rows["links"],
            ops=tuple(op for _, op in ops),
            op_names=tuple(index for index, _ in ops),
            pauses=rows["pauses"],
            drops=rows["drops"],
            samples=tuple(self.lists["samples"]),
            sight=tuple(self.lists["sight"]),
            processes=(process,),
        )

    def _last_moment(self, rows: Mapping[str, Rows]) -> int:
        """The latest time that anything in the file speaks of."""
        ends = [int(rows[word]["end_ns"].max(initial=0)) for word in ("spans", "pauses", "drops")]
        begun = int(rows["open"]["start_ns"].max(initial=0))
        return max(*ends, begun, self.process.start_ns, *(mono for mono, _ in self.anchors))

    def _names(self, spans: Rows) -> tuple[str, ...]:
        """The table as long as anything needs it; entries whose frame was lost read `?`."""
        table = self.tables["names"]
        needed = [index for index, _ in self.tables["ops"].values()]
        size = max(*table, *needed, int(spans["name"].max(initial=-1)), -1) + 1
        return tuple(table.get(index, LOST_NAME) for index in range(size))

    def _lanes(self, spans: Rows) -> tuple[Lane, ...]:
        table = self.tables["lanes"]
        used = (int(spans[word].max(initial=-1)) for word in ("lane", "submitted_lane"))
        size = max(*table, *used) + 1
        return tuple(table.get(index, Lane(LOST_NAME)) for index in range(size))


def _latest(spans: Rows) -> Rows:
    """One row an id: the last one told, which a host that learnt more later has written again."""
    ids = spans["id"]
    if (np.diff(ids) > 0).all():
        return spans
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    last = np.concatenate((ordered[1:] != ordered[:-1], [True]))
    return spans if last.all() else spans[np.sort(order[last])]


def _with_open(spans: Rows, begun: Rows, end_ns: int) -> Rows:
    """Add the spans that had begun and were never seen to end; a span that did end wins."""
    if not len(begun):
        return spans
    _, last = np.unique(begun["id"][::-1], return_index=True)
    rows = begun[np.sort(len(begun) - 1 - last)]
    rows = rows[~np.isin(rows["id"], spans["id"])]
    rows["flags"] |= Flag.INCOMPLETE
    rows["end_ns"] = np.maximum(end_ns, rows["start_ns"])
    rows["cpu_ns"] = -1  # in an open row the field is the recorder's own
    return np.concatenate((spans, rows))
