"""How do the calls of each path differ from each other? A histogram, and the slowest ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import basis
from opscope.analyse.rows import time_columns
from opscope.model import Flag, Session

Ints = NDArray[np.int64]

#: A histogram has at most this many bins; as many a decade as that allows.
BINS = 36
_STEPS = (32, 16, 8, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class SlowCall:
    """One call. Nanoseconds; `start_ns` counts from the start of the session."""

    call: int
    start_ns: int
    wall_ns: int
    lane: str


@dataclass(frozen=True, slots=True)
class CallSpread:
    """Wall times of the calls of one path that ended; empty where none did.

    `counts[i]` calls took at least `edges_ns[i]` and less than `edges_ns[i + 1]`. The edges lie on
    a logarithmic grid that is the same for all paths of that many steps.
    """

    edges_ns: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    slowest: tuple[SlowCall, ...] = ()


def call_spreads(session: Session, slowest: int = 5) -> tuple[CallSpread, ...]:
    """One for each path, in the order of `OpRow.node`, with up to `slowest` calls each."""
    base = basis(session)
    attribution, spans = base.attribution, session.spans
    count = len(attribution.paths.name)
    ended = (attribution.flags & Flag.INCOMPLETE) == 0
    rows = attribution.calls[ended]
    wall = time_columns(attribution)["wall_ns"][ended]
    group = attribution.paths.of_call[rows]
    order = np.lexsort((-spans["id"][rows], -spans["start_ns"][rows], wall, group))
    rows, wall, group = rows[order], wall[order], group[order]
    first = np.searchsorted(group, np.arange(count), side="left").tolist()
    last = np.searchsorted(group, np.arange(count), side="right").tolist()
    answers = []
    for low, high in zip(first, last, strict=True):
        edges, counts = histogram(wall[low:high])
        chosen = range(high - 1, max(low, high - slowest) - 1, -1)
        answers.append(
            CallSpread(
                edges_ns=edges,
                counts=counts,
                slowest=tuple(_slow(session, int(rows[i]), int(wall[i])) for i in chosen),
            )
        )
    return tuple(answers)


def histogram(rising_ns: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(edges, counts) of values in rising order; what is below 1 ns counts as 1 ns."""
    if not len(rising_ns):
        return (), ()
    values = np.maximum(rising_ns, 1)
    low, high = int(values[0]), int(values[-1])
    for steps in _STEPS:
        begin = int(np.floor(np.log10(low) * steps)) - 1
        edges = [_edge(begin, steps)]
        while edges[-1] <= high:
            begin += 1
            edge = _edge(begin, steps)
            if edge > edges[-1]:
                edges = [edge] if edge <= low else [*edges, edge]
        if len(edges) - 1 <= BINS:
            break
    place = np.searchsorted(np.array(edges, np.int64), values, side="right") - 1
    counts = np.bincount(place, minlength=len(edges) - 1)
    return tuple(edges), tuple(counts.tolist())


def _edge(number: int, steps: int) -> int:
    return round(10 ** (number / steps))


def _slow(session: Session, row: int, wall_ns: int) -> SlowCall:
    span = session.spans[row]
    return SlowCall(
        call=int(span["id"]),
        start_ns=int(span["start_ns"]) - session.start_ns,
        wall_ns=wall_ns,
        lane=session.lanes[span["lane"]].name,
    )
