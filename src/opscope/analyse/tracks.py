"""Where can the spans of a lane be drawn so that no two cross?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import basis
from opscope.model import Session

Ints = NDArray[np.int64]


def tracks(session: Session) -> Ints:
    """The track of each span, by row: 0, or where it would cross another span of its lane, the
    first number on which it does not. What lies in a span is drawn below it where it fits."""
    spans, nesting = session.spans, basis(session).attribution.nesting
    track = np.zeros(len(spans), np.int64)
    crossed = np.unique(spans["lane"][nesting.crosses])
    if not len(crossed):
        return track
    rows = np.flatnonzero(np.isin(spans["lane"], crossed))
    start, end = spans["start_ns"], np.maximum(spans["end_ns"], spans["start_ns"])
    order = rows[np.lexsort((nesting.depth[rows], -end[rows], start[rows], spans["lane"][rows]))]
    stacks: list[list[int]] = []  # of each track of the lane at hand, the ends of what is open
    lane = -1
    placed: dict[int, int] = {}
    for row, here, begin, finish, parent in zip(
        order.tolist(),
        spans["lane"][order].tolist(),
        start[order].tolist(),
        end[order].tolist(),
        nesting.parent[order].tolist(),
        strict=True,
    ):
        if here != lane:
            lane, stacks = here, []
        number = _place(stacks, placed.get(parent, 0), begin, finish)
        stacks[number].append(finish)
        placed[row] = number
    track[order] = list(placed.values())
    return track


def _place(stacks: list[list[int]], wish: int, begin: int, finish: int) -> int:
    """The track to put a span on: the one wished for, else the first where it crosses nothing."""
    if not stacks:
        stacks.append([])
    number: int
    for number in [wish, *range(len(stacks))]:
        stack = stacks[number]
        while stack and (stack[-1] < begin or (stack[-1] == begin and finish > begin)):
            stack.pop()
        if not stack or finish <= stack[-1]:
            return number
    stacks.append([])
    return len(stacks) - 1
