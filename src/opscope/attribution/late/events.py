"""Events of a framework's profiler as columns, and what is known of custom operators in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Role(IntEnum):
    """What an event is to its framework."""

    OP = 0  #: an operator, on the thread that executed it
    NODE = 1  #: a node of the backward graph, being run
    ENGINE = 2  #: the backward engine around a node
    WRAPPER = 3  #: the framework's own way to a custom operator's function
    RANGE = 4  #: an annotation of the user's
    STEP = 5  #: a step of the user's loop
    API = 6  #: a call of a device's runtime, which may launch work
    WAIT = 7  #: a call of a device's runtime that waits for the device
    DEVICE = 8  #: work on a device stream


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """One entry an event, all int64. Times are on the recorder's clock, in ns.

    `name` and `lane` are entries of the session's tables. `thread` is the framework's own number of
    the thread, `forward_thread` that of the thread on which a node's forward operator ran, and
    `sequence` the number a node shares with it on that thread; -1: none. `correlation` joins a
    runtime call to device work, `external` an operator to it; 0: none.
    """

    name: Ints
    lane: Ints
    start_ns: Ints
    end_ns: Ints
    role: Ints
    thread: Ints
    forward_thread: Ints
    sequence: Ints
    correlation: Ints
    external: Ints

    def __len__(self) -> int:
        return len(self.name)

    def take(self, which: NDArray[Any]) -> Events:
        """The chosen events, by mask or by index."""
        return Events(*(getattr(self, column.name)[which] for column in fields(self)))

    def and_also(self, other: Events) -> Events:
        """These and those."""
        columns = (column.name for column in fields(self))
        return Events(
            *(np.concatenate((getattr(self, name), getattr(other, name))) for name in columns)
        )


@dataclass(frozen=True, slots=True)
class Customs:
    """What the names of events say about custom operators; all keys and values are name entries.

    `forward` and `backward` map the name of an event to its operator where no hook records the
    calls. `around` and `inside` map (operator, 1 for backward) to the name of the event that
    stands around, or inside, the bracket a hook recorded: an event of that name without a record
    was no call of the user's function.
    """

    forward: Mapping[int, int] = field(default_factory=dict)
    backward: Mapping[int, int] = field(default_factory=dict)
    around: Mapping[tuple[int, int], int] = field(default_factory=dict)
    inside: Mapping[tuple[int, int], int] = field(default_factory=dict)
    #: Names of nodes that hooks record: without a record they ran for no call (a compiler looked).
    recorded: frozenset[int] = frozenset()
    #: Names of nodes and annotations in which forward operators run again (checkpoints).
    again: frozenset[int] = frozenset()


def looked_up(keys: NDArray[Any], table: Mapping[int, int]) -> Ints:
    """`table[key]` for each key, -1 where it has none. One look-up a distinct key."""
    distinct, place = np.unique(keys, return_inverse=True)
    values = [table.get(key, -1) for key in distinct.tolist()]
    return np.array(values, np.int64)[place.reshape(-1)] if len(values) else np.empty(0, np.int64)
