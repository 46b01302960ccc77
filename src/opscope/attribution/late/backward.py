"""The backward rule: a node of the graph belongs to the call whose operator made it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late.events import Events, Role

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


#: Forward operators whose nodes are waited for, at most.
_MOST = 1_000_000


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """Forward operators that may have made a node, by (thread, sequence number) and start.

    `call` is the id of the call that each belongs to and `op` that call's operator, 0 and -1: none.
    """

    thread: Ints = field(default_factory=_none)
    sequence: Ints = field(default_factory=_none)
    start_ns: Ints = field(default_factory=_none)
    call: Ints = field(default_factory=_none)
    op: Ints = field(default_factory=_none)

    def joined(self, other: Forward) -> Forward:
        """Both."""
        return Forward(
            np.concatenate((self.thread, other.thread)),
            np.concatenate((self.sequence, other.sequence)),
            np.concatenate((self.start_ns, other.start_ns)),
            np.concatenate((self.call, other.call)),
            np.concatenate((self.op, other.op)),
        )

    def kept(self) -> Forward:
        """What nodes of much later may still come from: of each number the operator that had it
        last, where that one belongs to a call; the newest `_MOST` of them."""
        order = np.lexsort((self.start_ns, self.sequence, self.thread))
        thread, sequence = self.thread[order], self.sequence[order]
        last = np.ones(len(order), bool)
        last[:-1] = (thread[1:] != thread[:-1]) | (sequence[1:] != sequence[:-1])
        chosen = order[last & (self.call[order] > 0)]
        chosen = chosen[np.argsort(self.start_ns[chosen], kind="stable")][-_MOST:]
        return Forward(
            self.thread[chosen],
            self.sequence[chosen],
            self.start_ns[chosen],
            self.call[chosen],
            self.op[chosen],
        )

    def made(self, events: Events, nodes: Ints) -> Ints:
        """For each of the node events the entry that made it, -1 for none.

        Sequence numbers are counted on each thread, and an operator that makes no node repeats the
        last one: so it is the one that started last, before the node did.
        """
        found = np.full(len(nodes), -1, np.int64)
        if not len(nodes) or not len(self.thread):
            return found
        thread = _ranks(self.thread, events.forward_thread[nodes])
        sequence = _ranks(self.sequence, events.sequence[nodes])
        key = thread * len(sequence) + sequence
        split = len(self.thread)
        # One sorted line of (key, start): the entry just before each node on it.
        times = np.concatenate((self.start_ns, events.start_ns[nodes]))
        is_node = np.arange(len(times)) >= split
        line = np.lexsort((is_node, times, key))
        entry = np.where(line < split, np.arange(len(line)), -1)
        before = np.maximum.accumulate(entry)
        place = line >= split
        node = line[place] - split
        last = before[place]
        known = last >= 0
        candidate = line[last[known]]
        same = key[candidate] == key[split + node[known]]
        found[node[known][same]] = candidate[same]
        return found


def _ranks(*columns: Ints) -> Ints:
    """All of the columns, each number as its place among the distinct ones."""
    ranks: Ints = np.unique(np.concatenate(columns), return_inverse=True)[1].reshape(-1)
    return ranks


def forward_table(events: Events, call: Ints, op: Ints) -> Forward:
    """The forward operators among the events; `call` and `op` are what each belongs to."""
    able = (events.sequence >= 0) & np.isin(events.role, (int(Role.OP), int(Role.WRAPPER)))
    return Forward(
        events.thread[able], events.sequence[able], events.start_ns[able], call[able], op[able]
    )


def runs(lane: Ints, start: Ints, call: Ints) -> Ints:
    """A number for each node: nodes of one forward call that follow each other on a lane, with no
    other node between them, have the same."""
    order = np.lexsort((start, lane))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (lane[order][1:] != lane[order][:-1]) | (call[order][1:] != call[order][:-1])
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(fresh) - 1
    return group
