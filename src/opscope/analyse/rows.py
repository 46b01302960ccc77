"""The numbers that rows share: the parts of a call's time, what stands beside them, their sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import UNKNOWN, Attribution
from opscope.attribution.ranges import awake
from opscope.attribution.totals import totals
from opscope.model import Kind, Phase

Ints = NDArray[np.int64]

#: These seven after the first add up to the first, `None` counting as nothing.
PART_KEYS = (
    "wall_ns",
    "python_ns",
    "native_ns",
    "sub_ns",
    "wait_ns",
    "dispatch_ns",
    "runtime_ns",
    "untracked_ns",
)
#: Over a call's whole subtree; outside the sum.
BESIDE_KEYS = (
    "sub_wait_ns",
    "elsewhere_ns",
    "elsewhere_union_ns",
    "elsewhere_python_ns",
    "device_ns",
    "device_union_ns",
    "queue_ns",
    "span_ns",
)
TIME_KEYS = PART_KEYS + BESIDE_KEYS

#: What a host cannot see, in a word of its `Sight.misses`, and the columns it leaves unmeasured.
_UNSEEN = {
    "sub-operators": ("sub_ns",),
    "dispatch": ("dispatch_ns",),
    "dispatch of custom_op and backward": ("dispatch_ns",),
    "tasks": ("elsewhere_ns", "elsewhere_union_ns", "elsewhere_python_ns"),
    "other threads": ("elsewhere_python_ns",),
}
#: Formats of files that hold the operators of a host of another name.
_HOST_OF = {"kineto": "torch", "xplane": "jax"}

KIND_WORDS = {int(kind): kind.name.lower() for kind in Kind}
PHASE_WORDS = {int(phase): phase.name.lower() for phase in Phase}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Nanoseconds, as ints; `None`: not measured. Only the wall time is always known."""

    wall_ns: int
    python_ns: int | None
    native_ns: int | None
    sub_ns: int | None
    wait_ns: int | None
    dispatch_ns: int | None
    runtime_ns: int | None
    untracked_ns: int | None
    sub_wait_ns: int | None
    elsewhere_ns: int | None
    elsewhere_union_ns: int | None
    elsewhere_python_ns: int | None
    device_ns: int | None
    device_union_ns: int | None
    queue_ns: int | None
    span_ns: int | None


def time_columns(attribution: Attribution) -> dict[str, Ints]:
    """The columns of `TIME_KEYS`, one entry for each call of the session; -1: not measured."""
    parts, place, beside = attribution.parts, attribution.place, attribution.beside
    columns = {key: getattr(parts, key.removesuffix("_ns"))[place] for key in PART_KEYS}
    columns |= {key: getattr(beside, key.removesuffix("_ns")) for key in BESIDE_KEYS}
    for word, keys in _UNSEEN.items():
        blind = _blind(attribution, word)
        for key in keys if blind.any() else ():
            columns[key] = np.where(blind & (columns[key] == 0), UNKNOWN, columns[key])
    return columns


def sub_counts(attribution: Attribution) -> Ints:
    """How many sub-operators each call owns itself; -1: not measured."""
    count = attribution.beside.subs
    return np.where(_blind(attribution, "sub-operators") & (count == 0), UNKNOWN, count)


def _blind(attribution: Attribution, word: str) -> NDArray[np.bool_]:
    """Calls whose host, or the file they were read from, says that it could not see that."""
    session = attribution.session
    hosts = {
        _HOST_OF.get(sight.host, sight.host) for sight in session.sight if word in sight.misses
    }
    names = [n for n, op in zip(session.op_names, session.ops, strict=True) if op.host in hosts]
    return np.isin(session.spans["name"][attribution.calls], names)


def add_up(columns: Mapping[str, Ints], group: Ints, count: int) -> list[dict[str, Any]]:
    """The columns summed over each of `count` groups, as the fields of `Timed`.

    `group` names the group of each entry, -1 for none. A sum leaves out what is not measured, and
    is `None` where nothing is.
    """
    inside = np.flatnonzero(group >= 0)
    chosen = group[inside]
    sums: dict[str, list[int | None]] = {}
    for key, column in columns.items():
        values = column[inside]
        total = totals(chosen, np.maximum(values, 0), count)
        known = np.zeros(count, bool)
        known[chosen[values >= 0]] = True
        if key == "wall_ns":
            known[:] = True
        sums[key] = [
            value if yes else None
            for value, yes in zip(total.tolist(), known.tolist(), strict=True)
        ]
    return [{key: sums[key][number] for key in sums} for number in range(count)]


def once(attribution: Attribution, columns: Mapping[str, Ints]) -> dict[str, Ints]:
    """The columns of calls so that sums over a path count once what calls on it have in common.

    Only calls that are folded have: one that lies in another on the same path is part of what that
    one caused, and where it ran during it, on its lane, of its sub-operators.
    """
    found = dict(columns)
    inner, outer = attribution.paths.folded
    if not len(inner):
        return found
    spans, calls = attribution.session.spans, attribution.calls
    during = spans["lane"][inner] == spans["lane"][outer]
    during &= spans["start_ns"][inner] < spans["end_ns"][outer]
    mine, nested = np.searchsorted(calls, inner), np.searchsorted(calls, inner[during])
    for key in BESIDE_KEYS:
        if key != "queue_ns":
            # What a call waited in its sub-operators is its own unless it is one of them itself.
            these = nested if key == "sub_wait_ns" else mine
            found[key] = columns[key].copy()
            found[key][these] = np.minimum(columns[key][these], 0)
    start, end, _ = awake(attribution.session, spans)
    inner, outer = inner[during], outer[during]
    shared = np.maximum(np.minimum(end[inner], end[outer]) - start[inner], 0)
    shared = np.minimum(shared, columns["wall_ns"][nested])
    taken = totals(np.searchsorted(calls, outer), shared, len(calls))
    taken = np.minimum(taken, np.maximum(columns["sub_ns"], 0))
    for key in ("wall_ns", "sub_ns"):
        found[key] = columns[key] - taken
    return found


def single(columns: Mapping[str, Ints]) -> list[dict[str, Any]]:
    """The columns of single calls as the fields of `Timed`."""
    lists = {
        key: [None if value < 0 else value for value in column.tolist()]
        for key, column in columns.items()
    }
    keys = list(lists)
    return [dict(zip(keys, values, strict=True)) for values in zip(*lists.values(), strict=True)]
