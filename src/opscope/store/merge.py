"""Several recordings (ranks, subprocesses, repeated runs) as one session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.model import Lane, Op, Process, Rows, Session, Sight

#: Two clocks whose offsets from the wall clock differ by less than this count as one clock.
_SAME_CLOCK_NS = 1_000_000_000


def merge(sessions: Sequence[Session]) -> Session:
    """One session of all: ids, names, lanes and processes re-based, operators of one key made one.

    Times of another machine (or boot) are moved by the wall-clock anchors onto the clock of the
    first session.
    """
    if len(sessions) == 1:
        return sessions[0]
    names = _Names()
    spans: list[Rows] = []
    links: list[Rows] = []
    stretches: dict[str, list[Rows]] = {"pauses": [], "drops": []}
    lanes: list[Lane] = []
    processes: list[Process] = []
    last_id = 0
    for session in sessions:
        shift = _shift(processes[0], session.processes[0]) if processes else 0
        spans.append(_spans(session, names.take(session), len(lanes), last_id, shift))
        linked = session.links.copy()
        linked["source"] += last_id
        linked["target"] += last_id
        links.append(linked)
        for word, tables in stretches.items():
            rows = getattr(session, word).copy()
            rows["process"] += len(processes)
            rows["start_ns"] += shift
            rows["end_ns"] += shift
            tables.append(rows)
        lanes += [replace(lane, process=lane.process + len(processes)) for lane in session.lanes]
        processes += [_moved(process, shift) for process in session.processes]
        # Ids of spans that were lost count too: a link to one must not find somebody else's.
        told = (spans[-1]["id"], spans[-1]["owner"], linked["source"], linked["target"])
        last_id = max(last_id, *(int(ids.max(initial=0)) for ids in told))
    return Session(
        spans=np.concatenate(spans),
        names=tuple(names.texts),
        lanes=tuple(lanes),
        links=np.concatenate(links),
        ops=tuple(names.ops),
        op_names=tuple(names.by_key[op.key] for op in names.ops),
        pauses=np.concatenate(stretches["pauses"]),
        drops=np.concatenate(stretches["drops"]),
        samples=tuple(sample for session in sessions for sample in session.samples),
        sight=_seen_by_all([sight for session in sessions for sight in session.sight]),
        processes=tuple(processes),
        corrected=any(session.corrected for session in sessions),
    )


class _Names:
    """One table of names from several: plain texts once, operators once for each key."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.ops: list[Op] = []
        self.by_key: dict[str, int] = {}
        self._by_text: dict[str, int] = {}

    def take(self, session: Session) -> NDArray[np.int32]:
        """For each name of the session its index in the common table."""
        renamed = np.zeros(max(len(session.names), 1), np.int32)
        op_of = dict(zip(session.op_names, session.ops, strict=True))
        for index, text in enumerate(session.names):
            op = op_of.get(index)
            table, key = (self._by_text, text) if op is None else (self.by_key, op.key)
            if key not in table:
                table[key] = len(self.texts)
                self.texts.append(text)
                if op is not None:
                    self.ops.append(op)
            renamed[index] = table[key]
        return renamed


def _spans(session: Session, renamed: NDArray[Any], lanes: int, last_id: int, shift: int) -> Rows:
    spans: Rows = session.spans.copy()
    spans["name"] = renamed[spans["name"]]
    spans["lane"] += lanes
    spans["submitted_lane"] += lanes
    spans["id"] += last_id
    spans["owner"] += np.where(spans["owner"] != 0, last_id, 0)
    spans["start_ns"] += shift
    spans["end_ns"] += shift
    spans["submitted_ns"] += np.where(spans["submitted_ns"] != 0, shift, 0)
    return spans


def _seen_by_all(sights: Sequence[Sight]) -> tuple[Sight, ...]:
    """One for each host: it sees what it saw in all of them, and misses what it missed in one."""
    hosts: dict[str, Sight] = {}
    for sight in sights:
        known = hosts.setdefault(sight.host, sight)
        hosts[sight.host] = Sight(
            sight.host,
            ", ".join(dict.fromkeys(filter(None, [*known.version.split(", "), sight.version]))),
            tuple(word for word in known.sees if word in sight.sees),
            {**sight.misses, **known.misses},
        )
    return tuple(hosts.values())


def _shift(first: Process, other: Process) -> int:
    """What to add to the times of `other` to stand on the clock of `first`."""
    if first.machine == other.machine or not (first.anchors and other.anchors):
        return 0
    (mono, wall), (other_mono, other_wall) = first.anchors[0], other.anchors[0]
    offset = (other_wall - other_mono) - (wall - mono)
    return offset if abs(offset) >= _SAME_CLOCK_NS else 0


def _moved(process: Process, shift: int) -> Process:
    return replace(
        process,
        start_ns=process.start_ns + shift if process.start_ns else 0,
        end_ns=process.end_ns + shift if process.end_ns else 0,
        anchors=tuple((mono + shift, wall) for mono, wall in process.anchors),
    )
