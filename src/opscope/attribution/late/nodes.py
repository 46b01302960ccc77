"""Nodes of the backward graph that nobody recorded, as backward calls of custom operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late.backward import Forward, runs
from opscope.attribution.late.events import Events, Role
from opscope.attribution.late.scene import Scene

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """For each event: the operator it is a backward node of (-1: none), the id of its forward call
    (0: not known), and the number of the run of nodes it is part of (-1: it stands alone)."""

    op: Ints
    forward: Ints
    run: Ints


def nodes(
    events: Events,
    named: Ints,
    free: NDArray[np.bool_],
    made: Forward,
    scene: Scene,
    holder_id: Ints,
    near: Ints,
) -> Nodes:
    """`named` is the operator that the name of an event tells, `free` marks events of no recorded
    call.

    A node whose name says nothing belongs to the call in which its forward operator ran, unless the
    node runs inside that very call. Nodes of one call that follow each other are one backward call.
    """
    op = np.full(len(events), -1, np.int64)
    forward = np.zeros(len(events), np.int64)
    run = np.full(len(events), -1, np.int64)
    chosen = np.flatnonzero(free & (events.role == Role.NODE) & (events.sequence >= 0))
    entry = made.made(events, chosen)
    call = np.where(entry >= 0, made.call[entry] if len(made.call) else 0, 0)
    whose = np.where(entry >= 0, made.op[entry] if len(made.op) else -1, -1)
    own = named[chosen]
    exact = own >= 0
    outside = ~_within(scene.stretches + chosen, call, holder_id, near)
    told = ~exact & (call > 0) & (whose >= 0) & outside
    op[chosen] = np.where(exact, own, np.where(told, whose, -1))
    forward[chosen] = np.where(told | (exact & (whose == own)), call, 0)
    # Another node between two of a call parts them, also a recorded one or one of nobody's; but not
    # one without a number: it adds up the gradient of a parameter, on behalf of the node before it.
    every = np.flatnonzero((events.role == Role.NODE) & ((events.sequence >= 0) | ~free))
    number: Ints = np.zeros(len(events), np.int64)
    number[chosen] = np.where(told, call, 0)
    number[every] = runs(events.lane[every], events.start_ns[every], number[every])
    number = number[chosen]
    size = np.bincount(number) if len(number) else np.empty(0, np.int64)
    many = told & (size[number] > 1) if len(number) else told
    run[chosen[many]] = np.unique(number[many], return_inverse=True)[1].reshape(-1)
    # Nodes without a number on their thread can still be told by name.
    rest = np.flatnonzero(free & (events.role == Role.NODE) & (events.sequence < 0))
    op[rest] = named[rest]
    return Nodes(op, forward, run)


def _within(places: Ints, call: Ints, holder_id: Ints, near: Ints) -> NDArray[np.bool_]:
    """Whether each place lies inside the holder of that id."""
    found = np.zeros(len(places), bool)
    around = near[places]
    while (around >= 0).any():
        found |= (around >= 0) & (holder_id[around] == call)
        around = np.where(around >= 0, near[around], -1)
    return found
