"""What do operators own? One row for each path, name and kind of sub-operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import Basis, basis
from opscope.analyse.inside import pairs
from opscope.analyse.rows import KIND_WORDS, PHASE_WORDS
from opscope.analyse.stats import spread
from opscope.attribution import BACKWARD_PREFIX, among, looking_through
from opscope.attribution.belonging import SUB_KINDS
from opscope.attribution.cover import Axis
from opscope.attribution.ranges import awake
from opscope.attribution.totals import distinct, totals
from opscope.model import Flag, Kind, Phase, Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubRow:
    """Nanoseconds. `op` and `key` are of the operator that owns them; `path` ends with the name.

    `self_ns` is the total without what ran directly inside them on their lane; of calls and tasks,
    without their sub-operators. Paused time does not count. Mean, percentiles and largest leave out
    what did not end.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        *("path", "op", "key", "name", "kind", "phase", "count", "total_ns", "self_ns"),
        *("mean_ns", "p50_ns", "p95_ns", "max_ns"),
    )

    path: tuple[str, ...]
    op: str
    key: str | None
    name: str
    kind: str
    phase: str
    count: int
    total_ns: int
    self_ns: int
    mean_ns: int | None
    p50_ns: int | None
    p95_ns: int | None
    max_ns: int | None
    above: int  #: identity of the path that owns them


def subs(session: Session) -> tuple[SubRow, ...]:
    """One row for each (owning path, name, kind, phase), the largest total first."""
    base = basis(session)
    spans, owner = session.spans, base.attribution.owner
    rows = np.flatnonzero(among(spans, SUB_KINDS) & (owner >= 0))
    if not len(rows):
        return ()
    path = base.path[owner[rows]]
    kind, phase = spans["kind"][rows], spans["phase"][rows]
    name = np.where(kind == Kind.CALL, spans["name"][rows], _by_text(session)[spans["name"][rows]])
    entries, which = distinct(path, name, kind, phase)
    count = len(entries)
    total, own = _times(base)
    totalled = totals(which, total[rows], count).tolist()
    owned = totals(which, own[rows], count).tolist()
    ended = (spans["flags"][rows] & Flag.INCOMPLETE) == 0
    spreads = spread(which[ended], total[rows][ended], count)
    number = np.bincount(which, minlength=count).tolist()
    answers = []
    for index, (above, name_index, kind_number, phase_number) in enumerate(entries.tolist()):
        text = session.names[name_index]
        if kind_number == Kind.CALL and phase_number == Phase.BACKWARD:
            text = BACKWARD_PREFIX + text
        answers.append(
            SubRow(
                path=(*base.shown[above], text),
                op=base.op[above],
                key=base.key[above],
                name=text,
                kind=KIND_WORDS[kind_number],
                phase=PHASE_WORDS[phase_number],
                count=number[index],
                total_ns=totalled[index],
                self_ns=owned[index],
                mean_ns=spreads[index].mean_ns,
                p50_ns=spreads[index].p50_ns,
                p95_ns=spreads[index].p95_ns,
                max_ns=spreads[index].max_ns,
                above=above,
            )
        )
    return tuple(sorted(answers, key=lambda row: (-row.total_ns, row.path, row.kind, row.above)))


def _by_text(session: Session) -> Ints:
    """For each name the first entry that reads the same. Only calls are more than that."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(text, i) for i, text in enumerate(session.names)], np.int64)


def _times(base: Basis) -> tuple[Ints, Ints]:
    """(total, self) of every sub-operator, by row of the spans."""
    spans, parts = base.session.spans, base.attribution.parts
    counted = among(spans, SUB_KINDS)
    rows = np.flatnonzero(counted)
    around = looking_through(base.attribution.nesting.parent, ~counted)
    below, above = pairs(spans, around, rows)
    number = np.full(len(spans), -1, np.int64)
    number[rows] = np.arange(len(rows))
    start, end, _ = awake(base.session, spans)
    axis = Axis(start[rows], end[rows])
    covered = axis.covered(number[above], start[below], end[below])
    total = np.zeros(len(spans), np.int64)
    own = np.zeros(len(spans), np.int64)
    total[rows] = axis.length_ns
    own[rows] = axis.length_ns - covered
    total[parts.rows] = parts.wall
    own[parts.rows] = parts.wall - parts.sub
    return total, own
