"""The slices of the Chrome trace as columns, and where each begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import Own, own_time
from opscope.analyse.basis import basis
from opscope.model import Kind, LinkKind, Session
from opscope.present.slices import Face, faces
from opscope.present.threads import Threads

Ints = NDArray[np.int64]

#: Arguments that differ from slice to slice, so they stand in columns and not in a `Face`.
EACH = ("id", "call", "owner", "python_ns", "wait_ns", "cpu_ns", "queue_ns", "forward_call")


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One entry a slice: spans by row, then the stretches of own time. Times count from the start.

    `ident` is the id of the span, of own time that of its call. `some` are arguments that
    only some slices have, by key: -1 where they are not shown. `order` is thread by thread, in
    order of time, outer ones first. `box` is of own time only: the row of the span it lies in
    directly, the call or an annotation.
    """

    spans: int
    thread: Ints
    start_ns: Ints
    end_ns: Ints
    ident: Ints
    box: Ints
    owner: Ints
    some: dict[str, Ints]
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
    """All slices: one for each span, and those of own time."""
    spans, base, own = session.spans, basis(session), own_time(session)
    zero, count = session.start_ns, len(spans)
    start = np.concatenate((spans["start_ns"], own.start_ns)) - zero
    end = np.concatenate((np.maximum(spans["end_ns"], spans["start_ns"]), own.end_ns)) - zero
    thread = np.concatenate((where.of_span, where.of_span[own.box]))
    depth = base.attribution.nesting.depth
    deepest = np.full(len(own.call), int(depth.max(initial=0)) + 1)
    told = own.sort == Own.OWN
    owns, unknown = np.full(len(own.call), -1), np.full(count, -1)
    some = {
        "python_ns": np.concatenate((unknown, np.where(told, own.python_ns, -1))),
        "wait_ns": np.concatenate((unknown, np.where(told, own.wait_ns, -1))),
        "cpu_ns": np.concatenate((spans["cpu_ns"], owns)),
        "queue_ns": np.concatenate((_queued(session), owns)),
        "forward_call": np.concatenate((_forward(session), owns)),
    }
    of_span, of_own, every = faces(session, own)
    return Layout(
        spans=count,
        thread=thread,
        start_ns=start,
        end_ns=end,
        ident=np.concatenate((spans["id"], spans["id"][own.call])),
        box=own.box,
        owner=np.concatenate((spans["owner"], spans["id"][own.call])),
        some={key: values for key, values in some.items() if (values >= 0).any()},
        face=np.concatenate((of_span, of_own)),
        faces=every,
        order=np.lexsort((np.concatenate((depth, deepest)), -end, start, thread)),
    )


def _queued(session: Session) -> Ints:
    """How long each call or task waited from being handed over to its start; -1: not known."""
    spans = session.spans
    handed = (spans["kind"] == Kind.CALL) | (spans["kind"] == Kind.TASK)
    waited = np.maximum(spans["start_ns"] - spans["submitted_ns"], 0)
    return np.where(handed & (spans["submitted_ns"] > 0), waited, -1)


def _forward(session: Session) -> Ints:
    """The forward call of each backward call, by id, -1 for none; of several the last one told.

    Arrows tell it too, but not of all: none points back in time.
    """
    spans = session.spans
    links = session.links[session.links["kind"] == LinkKind.BACKWARD]
    if not len(links):
        return np.full(len(spans), -1)
    links = links[np.argsort(links["source"], kind="stable")]
    place = np.searchsorted(links["source"], spans["id"], "right") - 1
    linked = (links["source"][place] == spans["id"]) & (spans["kind"] == Kind.CALL)
    return np.where(linked, links["target"][place], -1)


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
