"""The paths of calls nested deeper than anybody reads: calls of one operator inside each other are
put on one path there. The rule, and why, is in docs/design/deep-paths.md."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.columns import Table
from opscope.attribution.deep import Walk, walk

Ints = NDArray[np.int64]
#: An operator and a phase, as (index into the names, phase).
Step = tuple[int, int]

#: An operator is folded where one of its calls lies in more calls than this ...
DEEPEST = 64
#: ... and in so many of its own operator and phase.
ALIKE = 8
#: No path has more entries: what would stand on a longer one begins a path of its own.
LONGEST = 256


@dataclass(slots=True)
class Folded:
    """Entry `p` is step[p] below parent[p]. By call, in the order of the walk: its path, the number
    of the nearest call around it on the same path (-1: none). `cut`: how many lie too deep."""

    parent: list[int] = field(default_factory=list)
    step: list[Step] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)
    cut: int = 0


def folded_paths(spans: Table, up: Ints, calls: Ints) -> tuple[Walk, Folded]:
    """The paths of `calls`; `up` as from `owner_rows`."""
    way = walk(up, calls)
    columns = (spans[key][way.calls].tolist() for key in ("name", "phase"))
    steps = list(zip(*columns, strict=True))
    depth, above = way.depth.tolist(), way.up.tolist()
    return way, _placed(steps, depth, above, _repeated(steps, depth))


def _repeated(steps: list[Step], depth: list[int]) -> set[Step]:
    """What is to be folded."""
    found: set[Step] = set()
    around: Counter[Step] = Counter()
    chain: list[Step] = []
    for step, level in zip(steps, depth, strict=True):
        while len(chain) > level:
            around[chain.pop()] -= 1
        if level > DEEPEST and around[step] >= ALIKE:
            found.add(step)
        around[step] += 1
        chain.append(step)
    return found


def _placed(steps: list[Step], depth: list[int], above: list[int], fold: set[Step]) -> Folded:
    made = Folded()
    length: list[int] = []
    known: dict[tuple[int, Step], int] = {}
    anew: set[tuple[int, Step]] = set()
    latest: dict[int, int] = {}  # of each path, the innermost call on it that is around us
    chain: list[int] = []

    def entry(outer: int, step: Step) -> int:
        if step in fold:
            at = outer
            while at >= 0 and made.step[at] != step:
                at = made.parent[at]
            if at >= 0:
                return at
        if outer >= 0 and length[outer] >= LONGEST:
            anew.add((outer, step))
            return find(-1, step)
        made.parent.append(outer)
        made.step.append(step)
        length.append(1 if outer < 0 else length[outer] + 1)
        return len(length) - 1

    def find(outer: int, step: Step) -> int:
        path = known.get((outer, step))
        if path is None:
            path = known[outer, step] = entry(outer, step)
        return path

    for number, (step, level, owner) in enumerate(zip(steps, depth, above, strict=True)):
        while len(chain) > level:
            gone = chain.pop()
            latest[made.path[gone]] = made.inside[gone]
        outer = made.path[owner] if owner >= 0 else -1
        path = find(outer, step)
        made.cut += (outer, step) in anew
        made.path.append(path)
        made.inside.append(latest.get(path, -1))
        latest[path] = number
        chain.append(number)
    return made
