"""Which event is the framework's own record of a call that a hook recorded: they are one span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late.events import Customs, Events, Role, looked_up
from opscope.attribution.nesting import nest
from opscope.model import SPAN, Kind, Phase, Rows

Ints = NDArray[np.int64]

#: The two clocks may differ by this much where one is worked out from the other.
SLACK_NS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """`call` is, for each event, the row of the call it is the record of, or -1; `outer` for each
    call its outermost such event around it, or -1."""

    call: Ints
    outer: Ints


def match(events: Events, calls: Rows, customs: Customs) -> Match:
    """Each call with the events of its operator's name around its bracket, or the one inside it.

    Several around it (the dispatcher entered again for the same call) are all the call's.
    """
    found = Match(np.full(len(events), -1, np.int64), np.full(len(calls), -1, np.int64))
    back = calls["phase"] == Phase.BACKWARD
    around = _wanted(calls, back, customs.around)
    inside = _wanted(calls, back, customs.inside)
    names = np.array([*customs.around.values(), *customs.inside.values()], np.int64)
    chosen = np.flatnonzero(np.isin(events.name, names) | (events.role == Role.WRAPPER))
    if not len(chosen) or not len(calls):
        return found
    some = events.take(chosen)
    size = len(some)
    parent = nest(_table(some, calls, around >= 0)).parent
    name = np.concatenate((some.name, np.full(len(calls), -2, np.int64)))
    wrapper = np.concatenate((some.role == Role.WRAPPER, np.zeros(len(calls), bool)))

    row = np.flatnonzero(around >= 0)
    event = parent[size + row]
    while len(row):
        mine = (event >= 0) & ((name[event] == around[row]) | wrapper[event])
        row, event = row[mine], event[mine]
        free = found.call[chosen[event]] < 0
        row, event = row[free], event[free]
        found.call[chosen[event[::-1]]] = row[::-1]  # of two calls in one event the first
        won = found.call[chosen[event]] == row
        row, event = row[won], event[won]
        found.outer[row] = chosen[event]
        event = parent[event]

    holder = parent[:size] - size
    fits = (holder >= 0) & (some.name == inside[np.maximum(holder, 0)])
    event = np.flatnonzero(fits)[::-1]
    first = np.full(len(calls), -1, np.int64)
    first[holder[event]] = event
    have = np.flatnonzero(first >= 0)
    found.call[chosen[first[have]]] = have
    return found


def _wanted(calls: Rows, back: NDArray[Any], table: Any) -> Ints:
    """The name of the event that belongs to each call, -1 for none."""
    coded = {op << 1 | backward: name for (op, backward), name in table.items()}
    return looked_up(calls["name"].astype(np.int64) << 1 | back, coded)


def _table(events: Events, calls: Rows, shrink: NDArray[Any]) -> Rows:
    """Both as rows to be nested. Calls give way by the slack on the side where they might cross."""
    rows = np.zeros(len(events) + len(calls), SPAN)
    split = len(events)
    for column in ("lane", "start_ns", "end_ns"):
        rows[column][:split] = getattr(events, column)
        rows[column][split:] = calls[column]
    length = np.maximum(calls["end_ns"] - calls["start_ns"], 0)
    slack = np.where(shrink, np.minimum(length // 4, SLACK_NS), -SLACK_NS)
    rows["start_ns"][split:] += slack
    rows["end_ns"][split:] -= slack
    rows["kind"] = Kind.OP
    rows["id"] = np.arange(len(rows))
    return rows
