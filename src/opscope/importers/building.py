"""`Builder`: what every importer fills, and the session that comes of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import nest
from opscope.attribution.late import Context, Customs, Events, join
from opscope.importers.quality import Quality
from opscope.model import (
    LINK,
    SPAN,
    Kind,
    Lane,
    Op,
    Process,
    Rows,
    Session,
    Sight,
    no_rows,
)

Ints = NDArray[np.int64]

#: Of a crossing the place told is the number of the event in the order of the file.
CROSSINGS = "spans that begin inside another and end after it (kept as inside)"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user wants: names that match one of the globs are custom operators."""

    custom: tuple[str, ...] = ()

    def chosen(self, name: str) -> bool:
        """Whether the user calls that name a custom operator."""
        return any(fnmatchcase(name, glob) for glob in self.custom)


@dataclass
class Builder:
    """Tables of one session in the making. `format` is how the importer is called."""

    format: str
    options: Options = field(default_factory=Options)
    quality: Quality = field(default_factory=Quality)
    names: list[str] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    ops: list[tuple[int, Op]] = field(default_factory=list)
    _by_name: dict[str, int] = field(default_factory=dict)
    _by_lane: dict[Hashable, int] = field(default_factory=dict)
    _by_key: dict[str, int] = field(default_factory=dict)
    _last_id: int = 0
    _links: list[tuple[int, int, int]] = field(default_factory=list)

    def name(self, text: str) -> int:
        """The entry of a name."""
        found = self._by_name.get(text)
        if found is None:
            self.names.append(text)
            found = self._by_name[text] = len(self.names) - 1
        return found

    def lane(self, key: Hashable, name: str, kind: str = "thread", *, thread: int = 0) -> int:
        """The entry of a lane, made when `key` is new."""
        found = self._by_lane.get(key)
        if found is None:
            self.lanes.append(Lane(name, kind, thread=thread))
            found = self._by_lane[key] = len(self.lanes) - 1
        return found

    def rename_lane(self, lane: int, name: str) -> None:
        """Give a lane the name that the file told later."""
        old = self.lanes[lane]
        self.lanes[lane] = Lane(name, old.kind, old.process, old.thread)

    def op(self, op: Op) -> int:
        """The entry of the name that belongs to this operator alone."""
        found = self._by_key.get(op.key)
        if found is None:
            self.names.append(op.name)
            found = self._by_key[op.key] = len(self.names) - 1
            self.ops.append((found, op))
        return found

    def ids(self, count: int) -> Ints:
        """So many new ids."""
        first = self._last_id + 1
        self._last_id += count
        return np.arange(first, first + count, dtype=np.int64)

    def joined(self, events: Events, customs: Customs, recorded: Rows | None = None) -> Rows:
        """The events as rows with owners; their links are kept for `session`."""
        known = no_rows(SPAN) if recorded is None else recorded
        found = join(events, known, Context(customs, self.ids, self.name("dispatch")))
        if found.unattributed:
            self.quality.count("device spans without a launching operator", found.unattributed)
        if found.outside:
            self.quality.count(
                "device spans launched outside any operator (by a replayed graph, or unseen)",
                found.outside,
            )
        self._links += found.links
        return found.rows

    def session(
        self,
        rows: Rows,
        *,
        sees: Sequence[str],
        misses: Mapping[str, str],
        version: str = "",
        wall_ns: int | None = None,
        damage: str = "",
        notes: Iterable[str] = (),
        links: Rows | None = None,
    ) -> Session:
        """The session of these rows. `wall_ns` is the wall-clock time of the rows' zero, if known;
        `damage` says in words what of the file could not be read."""
        self._count_crossings(rows)
        start_ns = int(rows["start_ns"].min()) if len(rows) else 0
        end_ns = int(rows["end_ns"].max()) if len(rows) else 0
        anchors = () if wall_ns is None else ((start_ns, wall_ns + start_ns),)
        told = [np.array(self._links, LINK)]
        if links is not None:
            told.append(links)
        return Session(
            spans=rows,
            names=tuple(self.names),
            lanes=tuple(self.lanes) or (Lane("?"),),
            links=np.concatenate(told),
            ops=tuple(op for _, op in self.ops),
            op_names=tuple(entry for entry, _ in self.ops),
            sight=(Sight(self.format, version, tuple(sees), dict(misses)),),
            processes=(
                Process(
                    start_ns=start_ns,
                    end_ns=end_ns,
                    anchors=anchors,
                    complete=True,
                    damage=damage,
                    notes=tuple(notes),
                    findings=self.quality.findings(),
                ),
            ),
        )

    def _count_crossings(self, rows: Rows) -> None:
        host = rows[rows["kind"] != Kind.DEVICE]
        crossing = np.flatnonzero(nest(host).crosses)
        places = [f"{self.names[host['name'][row]]}" for row in crossing[:5].tolist()]
        self.quality.count(CROSSINGS, len(crossing), places)
