"""The path of enclosing calls each call stands on: (operator, phase), outermost first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.folds import DEEPEST, folded_paths
from opscope.attribution.totals import distinct
from opscope.model import Phase

Ints = NDArray[np.int64]

#: Written before the name of an operator for its backward call, as MXNet does. For show only.
BACKWARD_PREFIX = "_backward_"


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Distinct paths as a tree: entry `p` is (name[p], phase[p]) below parent[p] (-1: top)."""

    parent: tuple[int, ...]
    name: tuple[int, ...]  #: index into the session's names
    phase: tuple[int, ...]
    of_call: Ints  #: for each span, by row, the path of that call; -1 for what is not a call
    #: Pairs of rows: a call, and the nearest call around it on the same path. Only in deep paths.
    folded: tuple[Ints, Ints]
    cut: int = 0  #: how many calls begin a path of their own as they lie too deep

    def shown(self, path: int, names: tuple[str, ...]) -> tuple[str, ...]:
        """The path as texts, outermost first; backward calls carry the prefix."""
        parts: list[str] = []
        while path >= 0:
            text = names[self.name[path]]
            parts.append(BACKWARD_PREFIX + text if self.phase[path] == Phase.BACKWARD else text)
            path = self.parent[path]
        return tuple(reversed(parts))


def call_paths(spans: Table, up: Ints, calls: Ints) -> Paths:
    """The path of each of the rows `calls`; `up` as from `owner_rows`. One round a level, and where
    there are more than `DEEPEST` levels below the first the paths are folded."""
    parent: list[int] = []
    name: list[int] = []
    phase: list[int] = []
    of_call = np.full(len(spans), -1, np.int64)
    left = calls
    levels = 0
    while len(left):
        if levels > DEEPEST:
            return _deep_paths(spans, up, calls)
        levels += 1
        outer = up[left]
        above = np.where(outer >= 0, of_call[outer], -1)
        ready = (outer < 0) | (above >= 0)
        now = left[ready]
        entries, which = distinct(above[ready], spans["name"][now], spans["phase"][now])
        of_call[now] = len(parent) + which
        for entry in entries.tolist():
            parent.append(entry[0])
            name.append(entry[1])
            phase.append(entry[2])
        left = left[~ready]
    none = np.empty(0, np.int64)
    return Paths(tuple(parent), tuple(name), tuple(phase), of_call, (none, none))


def _deep_paths(spans: Table, up: Ints, calls: Ints) -> Paths:
    way, found = folded_paths(spans, up, calls)
    of_call = np.full(len(spans), -1, np.int64)
    of_call[way.calls] = found.path
    inside = np.array(found.inside, np.int64)
    inner = np.flatnonzero(inside >= 0)
    return Paths(
        parent=tuple(found.parent),
        name=tuple(name for name, _ in found.step),
        phase=tuple(phase for _, phase in found.step),
        of_call=of_call,
        folded=(way.calls[inner], way.calls[inside[inner]]),
        cut=found.cut,
    )
