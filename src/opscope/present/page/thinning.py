"""Which slices of a session that has too many are left out: the shortest, everywhere alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.model import Kind, Session
from opscope.present.edges import Layout

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: So many stretches of time on each thread, fewer where there are many threads.
_BINS, _REGIONS = 256, 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Thinned:
    """`kept` has one entry for each slice. `where` are (thread, stretch of time, slices left out
    there), and the length of the session holds `bins` such stretches."""

    kept: Bools
    spans: int
    own: int
    bins: int
    where: list[tuple[int, int, int]]


def thinned(session: Session, laid: Layout, limit: int) -> Thinned:
    """At most `limit` spans, and as many stretches of own time.

    Calls of custom operators and steps stay while there is room, then the longest of each region
    (a stretch of time on a thread), so that quiet regions keep all they have.
    """
    threads = int(laid.thread.max(initial=0)) + 1
    bins = max(min(_BINS, _REGIONS // threads), 8)
    length = laid.end_ns - laid.start_ns
    whole = int(laid.end_ns.max(initial=0)) + 1
    bin_of = (laid.start_ns * (bins / whole)).astype(np.int64).clip(0, bins - 1)
    region = laid.thread * bins + bin_of
    kind = session.spans["kind"]
    first = (kind == Kind.CALL) | (kind == Kind.STEP)

    kept = np.ones(len(length), bool)
    spans, own = slice(0, laid.spans), slice(laid.spans, None)
    kept[spans] = _chosen(first, region[spans], length[spans], limit)
    gone = np.sort(laid.ident[spans][~kept[spans]])
    orphan = np.isin(laid.owner[own], gone) if len(gone) else np.zeros(len(kept[own]), bool)
    kept[own] = _chosen(~orphan, region[own], length[own], min(limit, int((~orphan).sum())))
    regions, counts = np.unique(region[~kept], return_counts=True)
    where = zip((regions // bins).tolist(), (regions % bins).tolist(), counts.tolist(), strict=True)
    return Thinned(
        kept=kept,
        spans=int((~kept[spans]).sum()),
        own=int((~kept[own]).sum()),
        bins=bins,
        where=list(where),
    )


def _chosen(first: Bools, region: Ints, length: Ints, limit: int) -> Bools:
    """At most `limit`: those that come first, then the longest of each region in turn."""
    if len(length) <= limit:
        return np.ones(len(length), bool)
    by_length = np.lexsort((-length, ~first, region))
    sorted_region = region[by_length]
    starts = np.append(True, sorted_region[1:] != sorted_region[:-1])
    place = np.arange(len(length))
    rank = np.empty_like(place)
    rank[by_length] = place - np.maximum.accumulate(np.where(starts, place, 0))
    best = np.lexsort((-length, rank, ~first))[:limit]
    kept = np.zeros(len(length), bool)
    kept[best] = True
    return kept
