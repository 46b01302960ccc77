"""The spans of an exported trace as rows, and the session of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import owner_rows
from opscope.attribution.paths import call_paths
from opscope.attribution.totals import distinct
from opscope.importers.building import Builder
from opscope.importers.ours.arrows import Drawn
from opscope.importers.ours.lanes import FOREIGN, Tracks
from opscope.importers.ours.tables import Tables
from opscope.importers.quality import PLACES
from opscope.model import (
    LINK,
    SPAN,
    Flag,
    Kind,
    Lane,
    LinkKind,
    Op,
    Phase,
    Process,
    Rows,
    Session,
    Sight,
)

Ints = NDArray[np.int64]

#: What slices have in common: (name, kind, phase, operator, its key, own name, flags).
Look = tuple[str, str, str, str | None, str | None, str | None, tuple[str, ...]]

TWICE = "slices of a span that is told already (left out)"
NO_KIND = "slices of a kind or phase that there is not (left out)"
NO_FLAG = "slices with flags that there are not (left without)"
NO_OP = "operators that the file does not describe (known by key and name only)"
RENAMED = "slices that are not named after the calls that own them (their whole name is kept)"

_NEVER = np.iinfo(np.int64).max
_KINDS = {kind.name.lower(): int(kind) for kind in Kind}
_PHASES = {phase.name.lower(): int(phase) for phase in Phase}
_FLAGS = {flag.name.lower(): int(flag) for flag in Flag if flag.name}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One entry a span; times count from the zero of the trace. `place` numbers the events."""

    looks: tuple[Look, ...]
    look: Ints
    track: Ints
    id: Ints
    owner: Ints
    start_ns: Ints
    length_ns: Ints
    cpu_ns: Ints
    queue_ns: Ints
    forward: Ints
    place: Ints


def session_of(
    builder: Builder,
    other: dict[str, object],
    damage: str,
    columns: Columns,
    tracks: Tracks,
    drawn: Drawn,
) -> Session:
    """The session; `other` are the members of the document beside its events."""
    tables = Tables(other, builder.quality)
    processes = tables.processes()
    untold = {pid: system for pid, system in tracks.pids().items() if pid not in processes}
    builder.quality.count(FOREIGN, len(untold), [f"pid {pid}" for pid in untold])
    processes |= {pid: Process(pid=system) for pid, system in untold.items()}
    numbers = {pid: entry for entry, pid in enumerate(processes)}
    lanes = tracks.build(builder, numbers)

    chosen = _sound(columns, builder)
    track = columns.track[chosen]
    rows = _rows(columns, chosen, lanes)
    operators = _operators(columns, chosen, rows, tables, builder)
    rows["name"] = operators
    up = owner_rows(rows)
    _name(columns, chosen, rows, up, builder)
    links = drawn.join(rows, track, up >= 0, builder.quality)
    forward = columns.forward[chosen]
    back = np.zeros(int((forward > 0).sum()), LINK)
    back["kind"] = LinkKind.BACKWARD
    back["source"], back["target"] = rows["id"][forward > 0], forward[forward > 0]

    zero = tables.start_ns
    _move(rows, 1 if zero is None else zero)  # a moment 0 would be none
    session = Session(
        spans=rows,
        names=tuple(builder.names),
        lanes=tuple(builder.lanes) or (Lane("?"),),
        links=np.concatenate((links[~np.isin(links, back)], back)),
        ops=tuple(op for _, op in builder.ops),
        op_names=tuple(entry for entry, _ in builder.ops),
        pauses=tables.pauses(numbers),
        drops=tables.drops(numbers),
        sight=_sight(tables, builder),
        processes=tuple(processes.values()) or (Process(),),
        corrected=tables.corrected,
    )
    return _told(session, 1 if zero is None else zero, damage, builder)


def _sound(columns: Columns, builder: Builder) -> Ints:
    """Which entries are spans that can be, each once, by id."""
    quality = builder.quality
    odd = np.array(
        [look[1] not in _KINDS or look[2] not in _PHASES for look in columns.looks], bool
    )
    flags = np.array([not _FLAGS.keys() >= set(look[6]) for look in columns.looks], bool)

    def count(what: str, which: Ints) -> None:
        places = columns.place[which[:PLACES]].tolist()
        quality.count(what, len(which), [f"event {place}" for place in places])

    bad = odd[columns.look] if len(odd) else np.zeros(len(columns.look), bool)
    count(NO_KIND, np.flatnonzero(bad))
    good = np.flatnonzero(~bad)
    order: Ints = good[np.argsort(columns.id[good], kind="stable")]
    again = np.append(False, np.diff(columns.id[order]) == 0)[: len(order)]
    count(TWICE, np.sort(order[again]))
    chosen: Ints = order[~again]
    if len(flags):
        count(NO_FLAG, np.sort(chosen[flags[columns.look[chosen]]]))
    return chosen


def _rows(columns: Columns, chosen: Ints, lanes: Ints) -> Rows:
    """All but names, from the zero of the trace."""
    rows = np.zeros(len(chosen), SPAN)
    if not len(chosen):
        return rows
    kind, phase, flags = (
        np.array(column, np.int64)[columns.look[chosen]]
        for column in (
            [_KINDS.get(look[1], 0) for look in columns.looks],
            [_PHASES.get(look[2], 0) for look in columns.looks],
            [sum(_FLAGS.get(flag, 0) for flag in {*look[6]}) for look in columns.looks],
        )
    )
    rows["id"], rows["owner"] = columns.id[chosen], columns.owner[chosen]
    rows["kind"], rows["phase"], rows["flags"] = kind, phase, flags
    rows["lane"] = rows["submitted_lane"] = lanes[columns.track[chosen]]
    rows["start_ns"] = columns.start_ns[chosen]
    rows["end_ns"] = columns.start_ns[chosen] + columns.length_ns[chosen]
    rows["cpu_ns"] = columns.cpu_ns[chosen]
    queue = columns.queue_ns[chosen]
    rows["submitted_ns"] = np.where(queue >= 0, rows["start_ns"] - queue, _NEVER)
    return rows


def _move(rows: Rows, zero: int) -> None:
    """From the zero of the trace to the session's clock."""
    most = np.iinfo(np.int64).max - zero
    submitted = rows["submitted_ns"]
    known = submitted != _NEVER
    rows["submitted_ns"] = np.where(known, np.maximum(np.where(known, submitted, 0) + zero, 1), 0)
    for word in ("start_ns", "end_ns"):
        rows[word] = np.minimum(rows[word], most) + zero


def _operators(
    columns: Columns, chosen: Ints, rows: Rows, tables: Tables, builder: Builder
) -> Ints:
    """For each row that is a call the entry of its operator's name; 0 for others."""
    known = {key: builder.op(op) for key, op in tables.ops()}
    calls = rows["kind"] == Kind.CALL
    entries = np.zeros(len(columns.looks), np.int64)
    untold: dict[str, None] = {}
    for number in np.unique(columns.look[chosen[calls]]).tolist():
        name, _, _, op, key, *_ = columns.looks[number]
        text = name if op is None else op
        if key is None:
            entries[number] = builder.name(text)
        elif key in known:
            entries[number] = known[key]
        else:
            untold[key] = None
            known[key] = builder.op(Op(builder.format, "", text, qualified=key))
            entries[number] = known[key]
    builder.quality.count(NO_OP, len(untold), untold)
    if not len(entries):
        return entries
    found: Ints = np.where(calls, entries[columns.look[chosen]], 0)
    return found


def _name(columns: Columns, chosen: Ints, rows: Rows, up: Ints, builder: Builder) -> None:
    """Name what is no call. A slice has the path of the owning call before its name, and that path
    is known: nothing is looked for in the name."""
    calls = np.flatnonzero(rows["kind"] == Kind.CALL)
    others = np.flatnonzero(rows["kind"] != Kind.CALL)
    if not len(others):
        return
    paths, names = call_paths(rows, up, calls), tuple(builder.names)
    owner = up[others]
    path = np.where(owner >= 0, paths.of_call[owner], -1)
    pairs, which = distinct(columns.look[chosen[others]], path)
    before = {
        one: "::".join((*paths.shown(one, names), "")) if one >= 0 else ""
        for one in np.unique(pairs[:, 1]).tolist()
    }
    entries, strange = [], np.zeros(len(pairs), bool)
    for number, (look, of) in enumerate(pairs.tolist()):
        shown, *_, name, _ = columns.looks[look]
        strange[number] = not shown.startswith(before[of])
        if name is None:
            name = shown if strange[number] else shown[len(before[of]) :]
        entries.append(builder.name(name))
    rows["name"][others] = np.array(entries, np.int64)[which]
    odd = columns.place[chosen[others[strange[which]]]]
    places = [f"event {place}" for place in np.sort(odd)[:PLACES].tolist()]
    builder.quality.count(RENAMED, len(odd), places)


#: What an export leaves out, and why.
_MISSES = {
    "submission": "a Chrome trace tells when something was pushed only of calls, tasks and what "
    "ran on another lane",
}
_LINES = "a Chrome trace has no hot lines: they stand in the recording it was made of"
_UNTOLD = "the file does not say what could be seen when it was recorded"


def _sight(tables: Tables, builder: Builder) -> tuple[Sight, ...]:
    told = tables.sight()
    misses = dict(_MISSES)
    for sight in told:
        if sight.host == builder.format:  # it was read and exported before
            misses |= sight.misses
    if tables.lines:
        misses["hot lines"] = _LINES
    if not tables.has("sight"):
        unseen = dict.fromkeys(("sub-operators", "dispatch", "tasks"), _UNTOLD)
        misses |= unseen
        hosts = dict.fromkeys(op.host for _, op in builder.ops if op.host != builder.format)
        told += [Sight(host, misses=unseen) for host in hosts]
    others = (sight for sight in told if sight.host != builder.format)
    return (*others, Sight(builder.format, tables.version, (), misses))


def _told(session: Session, zero: int, damage: str, builder: Builder) -> Session:
    """With what was odd about the file, and with the zero of the trace as its zero."""
    first, *rest = session.processes
    whole = "; ".join(filter(None, (first.damage, damage)))
    findings = (*first.findings, *builder.quality.findings())
    start = first.start_ns if session.start_ns == zero else zero
    first = replace(first, damage=whole, findings=findings, start_ns=start)
    return replace(session, processes=(first, *rest))
