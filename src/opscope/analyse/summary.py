"""What did each custom operator cost? One row for each operator, path and phase."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import basis
from opscope.analyse.rows import (
    PHASE_WORDS,
    TIME_KEYS,
    Timed,
    add_up,
    once,
    sub_counts,
    time_columns,
)
from opscope.analyse.stats import spread
from opscope.model import Flag, Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow(Timed):
    """Times are sums over all calls, incomplete ones included; mean, percentiles, largest and first
    are of the wall time of the calls that ended, in nanoseconds, `None` where none did.

    Calls so deep in each other that one row holds them (`folded` of them lie in others of it) share
    time and what they caused: the sums have it once."""

    KEYS: ClassVar[tuple[str, ...]] = (
        *("op", "key", "host", "kind", "site", "path", "phase", "calls", "subs"),
        *("failed", "incomplete", "estimated"),
        *TIME_KEYS,
        *("mean_ns", "p50_ns", "p95_ns", "max_ns", "first_ns"),
    )

    op: str
    key: str | None  #: None: the session does not say what operator this was
    host: str | None
    kind: str | None  #: what the host calls such an operator
    site: str | None  #: file:line of its definition
    path: tuple[str, ...]  #: names on show, the outermost first, its own last
    phase: str
    calls: int
    subs: int | None
    failed: int
    incomplete: int
    estimated: int
    mean_ns: int | None
    p50_ns: int | None
    p95_ns: int | None
    max_ns: int | None
    first_ns: int | None
    node: int  #: identity of the path: two paths may read the same
    above: int  #: identity of the path around it, -1: none
    clamped: int
    lossy: int
    paused: int
    outlived: int
    folded: int


def summary(session: Session) -> tuple[OpRow, ...]:
    """One row for each (operator, path, phase), the largest total wall time first.

    The phases of one operator stand together, in the place of their sum.
    """
    return _rows(session)


@lru_cache(maxsize=1)
def _rows(session: Session) -> tuple[OpRow, ...]:
    """Kept for the session last asked about: a table, its headline and its notes ask for it."""
    base = basis(session)
    attribution, paths = base.attribution, base.attribution.paths
    spans, calls = session.spans, attribution.calls
    count = len(paths.name)
    group = paths.of_call[calls]
    columns = time_columns(attribution)
    wall = columns["wall_ns"]
    ended = (attribution.flags & Flag.INCOMPLETE) == 0
    times = add_up(once(attribution, columns) | {"subs": sub_counts(attribution)}, group, count)
    spreads = spread(group[ended], wall[ended], count)
    first = _first(group[ended], spans["start_ns"][calls][ended], wall[ended])
    number = np.bincount(group, minlength=count).tolist()
    folded = np.bincount(paths.of_call[paths.folded[0]], minlength=count).tolist()
    flagged = {
        flag: np.bincount(group[(attribution.flags & flag) != 0], minlength=count).tolist()
        for flag in Flag
    }
    rows = [
        OpRow(
            op=base.op[node],
            key=base.key[node],
            host=base.host[node],
            kind=base.kind[node],
            site=base.site[node],
            path=base.shown[node],
            phase=PHASE_WORDS[paths.phase[node]],
            calls=number[node],
            failed=flagged[Flag.FAILED][node],
            incomplete=flagged[Flag.INCOMPLETE][node],
            estimated=flagged[Flag.ESTIMATED][node],
            mean_ns=spreads[node].mean_ns,
            p50_ns=spreads[node].p50_ns,
            p95_ns=spreads[node].p95_ns,
            max_ns=spreads[node].max_ns,
            first_ns=first.get(node),
            node=node,
            above=paths.parent[node],
            clamped=flagged[Flag.CLAMPED][node],
            lossy=flagged[Flag.LOSSY][node],
            paused=flagged[Flag.PAUSED][node],
            outlived=flagged[Flag.OUTLIVED][node],
            folded=folded[node],
            **times[node],
        )
        for node in range(count)
    ]
    whole: dict[tuple[int, str], int] = {}
    for row in rows:
        whole[_operator(row)] = whole.get(_operator(row), 0) + row.wall_ns
    return tuple(
        sorted(
            rows,
            key=lambda row: (-whole[_operator(row)], _operator(row), -row.wall_ns, row.node),
        )
    )


def _operator(row: OpRow) -> tuple[int, str]:
    """What the phases of an operator at one place share."""
    return row.above, row.key or row.op


def _first(group: Ints, start_ns: Ints, wall: Ints) -> dict[int, int]:
    """The wall time of the call that began first in each group."""
    order = np.lexsort((start_ns, group))
    which, place = np.unique(group[order], return_index=True)
    return dict(zip(which.tolist(), wall[order][place].tolist(), strict=True))
