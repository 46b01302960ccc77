"""The slices of the Chrome trace as columns, and where each begins and ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import Own, own_time
from opscope.analyse.basis import basis
from opscope.analyse.spans import all_flags
from opscope.model import Session
from opscope.present.slices import Slices
from opscope.present.threads import Threads

Ints = NDArray[np.int64]

#: Arguments that differ from slice to slice, so they stand in columns.
EACH = ("id", "call", "owner", "python_ns", "wait_ns")


@dataclass(frozen=True, slots=True)
class Face:
    """What many slices share: name, category, those arguments of Chrome's that are not `EACH`.

    `path` is an index into the columns of `Basis`, -1 for none.
    """

    name: str
    category: str
    args: dict[str, Any]
    path: int
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One entry a slice: spans by row, then the stretches of own time. Times count from the start.

    `ident` is the id of the span, of own time that of its call. `python_ns` and `wait_ns` are -1
    where they are not shown. `order` is that of the Chrome trace, which no two slices of a thread
    cross in.
    """

    spans: int
    thread: Ints
    start_ns: Ints
    end_ns: Ints
    ident: Ints
    owner: Ints
    python_ns: Ints
    wait_ns: Ints
    face: Ints
    faces: tuple[Face, ...]
    order: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Begins and ends of the slices of one thread in the order in which they happen: each slice
    ends before what is around it does. `slice` is an index into the columns of the layout."""

    thread: int
    slice: Ints
    at_ns: Ints
    begins: NDArray[np.bool_]


def layout(session: Session, where: Threads) -> Layout:
    """The slices that `Slices.events` writes."""
    spans, base, own = session.spans, basis(session), own_time(session)
    zero, count = session.start_ns, len(spans)
    start = np.concatenate((spans["start_ns"], own.start_ns)) - zero
    end = np.concatenate((np.maximum(spans["end_ns"], spans["start_ns"]), own.end_ns)) - zero
    thread = np.concatenate((where.of_span, where.of_span[own.box]))
    depth = base.attribution.nesting.depth
    deepest = np.full(len(own.call), int(depth.max(initial=0)) + 1)
    told = own.sort == Own.OWN
    unknown = np.full(count, -1, np.int64)
    of_span, of_own, faces = _faces(session, where, own.call, own.sort)
    return Layout(
        spans=count,
        thread=thread,
        start_ns=start,
        end_ns=end,
        ident=np.concatenate((spans["id"], spans["id"][own.call])),
        owner=np.concatenate((spans["owner"], spans["id"][own.call])),
        python_ns=np.concatenate((unknown, np.where(told, own.python_ns, -1))),
        wait_ns=np.concatenate((unknown, np.where(told, own.wait_ns, -1))),
        face=np.concatenate((of_span, of_own)),
        faces=faces,
        order=np.lexsort((np.concatenate((depth, deepest)), -end, start, thread)),
    )


def edges(laid: Layout) -> Iterator[Edges]:
    """Thread by thread, those that have slices."""
    threads = laid.thread[laid.order]
    cuts = np.flatnonzero(np.diff(threads)) + 1
    if not len(threads):
        return
    for first, last in pairwise([0, *cuts.tolist(), len(threads)]):
        rows = laid.order[first:last]
        place, begins = _sequence(laid.start_ns[rows], laid.end_ns[rows])
        which = rows[place]
        at = np.where(begins, laid.start_ns[which], laid.end_ns[which])
        yield Edges(int(threads[first]), which, at, begins)


def _sequence(start: Ints, end: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """(slice, whether it begins) of each edge. At one moment: ends, inner first; begins; slices
    without length. Those come before the ends where nothing begins: they lie in what ends."""
    count = len(start)
    place, empty = np.arange(count), start == end
    long = start[~empty]  # in order of time, as all of them are
    found = np.minimum(np.searchsorted(long, end), max(len(long) - 1, 0))
    followed = long[found] == end if len(long) else empty
    rank_begin = np.where(empty, 2, 1)
    rank_end = np.where(empty, 2, np.where(followed, 0, 3))
    tie_begin = np.where(empty, 2 * place, place)
    tie_end = np.where(empty, 2 * place + 1, -place)
    rank = np.concatenate((rank_begin, rank_end)) * 4 * (count + 1)
    order = np.lexsort(
        (rank + np.concatenate((tie_begin, tie_end)), np.concatenate((start, end))),
    )
    return order % count, order < count


def _faces(
    session: Session, where: Threads, call: Ints, sort: Ints
) -> tuple[Ints, Ints, tuple[Face, ...]]:
    """The face of each span and of each stretch of own time, and all faces."""
    spans, base = session.spans, basis(session)
    flags = np.array(all_flags(base), np.int64)
    columns = [spans[key].astype(np.int64) for key in ("name", "kind", "phase")]
    first, of_span = _distinct(*columns, base.path, flags)
    rows = zip(*(c[first].tolist() for c in (*columns, base.path, flags)), strict=True)
    slices, faces = Slices(session, where), []
    for name, kind, phase, path, flag in rows:
        faces.append(_face(slices._span(0, 0, name, kind, phase, path, flag), path))
    first, of_own = _distinct(base.path[call], spans["phase"][call].astype(np.int64), sort)
    for row, what in zip(call[first].tolist(), sort[first].tolist(), strict=True):
        faces.append(_face(slices._own(row, what, 0, 0), int(base.path[row])))
    return of_span, of_own + (len(faces) - len(first)), tuple(faces)


def _face(body: str, path: int) -> Face:
    event = json.loads(f"{{{body}}}")
    args = {key: value for key, value in event["args"].items() if key not in EACH}
    return Face(event["name"], event["cat"], args, path, args["kind"])


def _distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """Where each combination of values is first, and which combination each row has."""
    group = np.zeros(len(columns[0]), np.int64)
    first = group[:0]
    for column in columns:
        low = column.min(initial=0)
        width = int(column.max(initial=0) - low) + 1
        _, first, group = np.unique(
            group * width + (column - low), return_index=True, return_inverse=True
        )
    return first, group
