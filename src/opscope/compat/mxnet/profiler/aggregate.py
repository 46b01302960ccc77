"""The rows of the table: what was recorded, added up by domain and name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import Basis, basis
from opscope.analyse.rows import KIND_WORDS, PHASE_WORDS, time_columns
from opscope.analyse.spans import CUSTOM, domain, span_path
from opscope.compat.mxnet.profiler.marks import Timeline
from opscope.model import Flag, Kind, Session

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Row:
    """Times are milliseconds. What has not ended is in `count` and `total` only; where nothing has,
    the others are None."""

    count: int
    total: float
    least: float | None
    most: float | None
    average: float | None


Table = dict[str, dict[str, Row]]


class Seen:
    """What earlier tables with `reset` have shown."""

    def __init__(self) -> None:
        self.spans: Ints = np.empty(0, np.int64)
        self.things: set[int] = set()  # by id(): the timeline keeps them alive

    def add(self, session: Session, timeline: Timeline) -> None:
        """All that has ended by now."""
        spans = session.spans
        ended = (spans["flags"] & Flag.INCOMPLETE) == 0
        self.spans = np.union1d(self.spans, spans["id"][ended])
        self.things |= {id(s) for s in timeline.stretches if s.end_ns}
        self.things |= {id(one) for one in (*timeline.counts, *timeline.marks)}


def table(session: Session, timeline: Timeline, seen: Seen) -> Table:
    """Domain -> name -> row, domains in order of their names."""
    found: Table = {}
    if len(session.spans):
        base = basis(session)
        fresh = ~np.isin(session.spans["id"], seen.spans)
        for where, name, apart, row in (*_calls(base, fresh), *_others(base, fresh)):
            rows = found.setdefault(where, {})
            # Two that read the same are not the same; the later one says which it is.
            name = name if name not in rows else f"{name} [{apart}]"
            rows[name] = row
    _marked(found, timeline, seen)
    return dict(sorted(found.items()))


def _calls(base: Basis, fresh: Bools) -> Iterator[tuple[str, str, str, Row]]:
    """Whole calls, and what their time on their own lane was."""
    attribution, paths = base.attribution, base.attribution.paths
    calls = attribution.calls
    columns = time_columns(attribution)
    ended = (base.session.spans["flags"][calls] & Flag.INCOMPLETE) == 0
    for word, key in (
        ("", "wall_ns"),
        ("pure_python", "python_ns"),
        ("wait", "wait_ns"),
        ("dispatch", "dispatch_ns"),
    ):
        column = columns[key]
        chosen = fresh[calls] & (column >= 0)
        groups = base.path[calls][chosen][:, None]
        for (path,), row in _fold(groups, column[chosen], ended[chosen]):
            if row.total or word in ("", "pure_python"):
                name = "::".join((*base.shown[path], word) if word else base.shown[path])
                apart = f"{base.key[path]} {PHASE_WORDS[paths.phase[path]]} {word}".strip()
                yield CUSTOM, name, apart, row


def _others(base: Basis, fresh: Bools) -> Iterator[tuple[str, str, str, Row]]:
    """Operators, tasks, chores and the like, by the path that owns them."""
    spans, names = base.session.spans, base.session.names
    kind = spans["kind"]
    of_call = (kind == Kind.DISPATCH) | ((kind == Kind.WAIT) & (base.path >= 0))
    chosen = fresh & (kind != Kind.CALL) & ~of_call
    first: dict[str, int] = {}
    by_text = np.array([first.setdefault(text, i) for i, text in enumerate(names)], np.int64)
    keys = np.stack((base.path, by_text[spans["name"]], kind.astype(np.int64)), 1)[chosen]
    length = np.maximum(spans["end_ns"] - spans["start_ns"], 0)[chosen]
    ended = ((spans["flags"] & Flag.INCOMPLETE) == 0)[chosen]
    for (path, name, sort), row in _fold(keys, length, ended):
        apart = KIND_WORDS[sort] if path < 0 else f"{base.key[path]} {KIND_WORDS[sort]}"
        yield domain(sort, path), "::".join(span_path(base, sort, path, names[name])), apart, row


def _fold(keys: Ints, length_ns: Ints, ended: Bools) -> Iterator[tuple[list[int], Row]]:
    """A row for each distinct key, exactly, in whole nanoseconds."""
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.reshape(-1)
    size = len(distinct)
    total, whole = np.zeros(size, np.int64), np.zeros(size, np.int64)
    least, most = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    np.add.at(total, which, length_ns)
    np.add.at(whole, which[ended], length_ns[ended])
    np.minimum.at(least, which[ended], length_ns[ended])
    np.maximum.at(most, which[ended], length_ns[ended])
    count = np.bincount(which, minlength=size).tolist()
    finished = np.bincount(which[ended], minlength=size).tolist()
    for i, key in enumerate(distinct.tolist()):
        done = finished[i]
        yield (
            key,
            Row(
                count[i],
                int(total[i]) / 1e6,
                int(least[i]) / 1e6 if done else None,
                int(most[i]) / 1e6 if done else None,
                int(whole[i]) / done / 1e6 if done else None,
            ),
        )


def _marked(found: Table, timeline: Timeline, seen: Seen) -> None:
    """What the program marked. The total of a counter is its last value; a mark takes no time."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in timeline.seen():
        if one.stretch.end_ns and id(one.stretch) not in seen.things:
            key = (one.stretch.category, one.stretch.name)
            values.setdefault(key, []).append(one.active_ns / 1e6)
    for mark in list(timeline.marks):
        if id(mark) not in seen.things:
            values.setdefault((mark.category, mark.name), []).append(0.0)
    counted: dict[tuple[str, str], list[float]] = {}
    for count in list(timeline.counts):
        if id(count) not in seen.things:
            counted.setdefault((count.category, count.name), []).append(count.value)
    for (category, name), many in (*values.items(), *counted.items()):
        rows = found.setdefault(category, {})
        is_count = (category, name) in counted and many is counted[category, name]
        text = f"{name} [counter]" if is_count and name in rows else name
        total = many[-1] if is_count else sum(many)
        rows[text] = Row(len(many), total, min(many), max(many), sum(many) / len(many))
