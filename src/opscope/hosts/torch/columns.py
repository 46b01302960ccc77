"""torch's events as columns, read by unbound getters: one call an event and column, no objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late import Events, Role
from opscope.importers.torch_names import ENGINE, MODE, STEP, WAITS, WRAPPER

Ints = NDArray[np.int64]

#: Scopes of torch's record functions.
_FUNCTION, _BACKWARD, _USER = 0, 1, 7


@dataclass(frozen=True, slots=True)
class Tables:
    """How names and lanes become entries of a session's tables, and times the recorder's."""

    name: Callable[[str], int]
    lane: Callable[[int, int, bool], int]  #: (thread or stream, device, whether it is a device)
    time: Callable[[Ints], Ints]


def read(events: list[Any], tables: Tables, *, python: bool = True) -> Events:
    """The columns of torch's events (a list of `_KinetoEvent`), without those of Python functions,
    which are among them if `python`.

    About 2 us an event, nearly all of it in torch's getters.
    """
    if python and events and hasattr(events[0], "is_python_function"):
        of_python = map(type(events[0]).is_python_function, events)
        events = [event for event, skip in zip(events, of_python, strict=True) if not skip]
    if not events:
        return Events(*(np.empty(0, np.int64) for _ in range(10)))
    get = type(events[0])
    texts: list[str] = list(map(get.name, events))
    scope = _ints(map(get.scope, events))
    start = _ints(map(get.start_ns, events))
    if hasattr(get, "end_ns"):
        end = _ints(map(get.end_ns, events))
    else:
        end = start + _ints(map(get.duration_ns, events))
    resource = _ints(map(get.device_resource_id, events))
    thread = _ints(map(get.start_thread_id, events))
    # Only nodes have one.
    nodes = np.flatnonzero(scope == _BACKWARD).tolist()
    forward = np.zeros(len(events), np.int64)
    forward[nodes] = [events[node].fwd_thread_id() for node in nodes]
    sequence = _ints(map(get.sequence_nr, events))
    correlation = _ints(map(get.correlation_id, events))
    distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    which = _ints(map(distinct.__getitem__, texts))
    names = np.array([tables.name(text) for text in distinct], np.int64)
    role = _roles(list(distinct), which, scope)
    device = np.zeros(len(events), bool)
    linked = np.zeros(len(events), np.int64)
    index = np.zeros(len(events), np.int64)
    # What torch itself records has a thread of torch's; runtime calls and device work have not.
    foreign = np.flatnonzero(thread == 0)
    for at in foreign.tolist():
        event = events[at]
        device[at] = str(event.device_type()).rpartition(".")[2] != "CPU"
        linked[at] = event.linked_correlation_id()
        index[at] = event.device_index()
    waits = np.array([text in WAITS for text in distinct])[which]
    api = np.where(waits, int(Role.WAIT), int(Role.API))
    role[foreign] = np.where(device, int(Role.DEVICE), api)[foreign]
    is_op = np.isin(role, (int(Role.DEVICE), int(Role.API), int(Role.WAIT)), invert=True)
    return Events(
        name=names[which],
        lane=_lanes(resource, index, device, tables),
        start_ns=tables.time(start),
        end_ns=tables.time(np.maximum(end, start)),
        role=role,
        thread=thread,
        forward_thread=forward,
        sequence=np.where(is_op, sequence, -1),
        correlation=np.where(is_op, 0, correlation),
        external=np.where(is_op, correlation, linked),
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def _roles(texts: list[str], which: Ints, scope: Ints) -> Ints:
    engine = np.array([text.startswith(ENGINE) for text in texts])[which]
    wrapper = np.array([text.startswith(WRAPPER) or text == MODE for text in texts])[which]
    step = np.array([text.startswith(STEP) for text in texts])[which]
    role = np.full(len(which), int(Role.OP), np.int64)
    role[wrapper & (scope == _FUNCTION)] = Role.WRAPPER
    role[engine] = Role.ENGINE
    role[scope == _BACKWARD] = Role.NODE
    role[scope == _USER] = Role.RANGE
    role[step & (scope == _USER)] = Role.STEP
    return role


def _lanes(resource: Ints, index: Ints, device: NDArray[np.bool_], tables: Tables) -> Ints:
    where = np.where(device, index << 1 | 1, 0)
    order = np.lexsort((where, resource))
    key, place = resource[order], where[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = (key[1:] != key[:-1]) | (place[1:] != place[:-1])
    made = [
        tables.lane(thread, at >> 1, bool(at & 1))
        for thread, at in zip(key[fresh].tolist(), place[fresh].tolist(), strict=True)
    ]
    lanes = np.empty(len(order), np.int64)
    lanes[order] = np.array(made, np.int64)[np.cumsum(fresh) - 1]
    return lanes
