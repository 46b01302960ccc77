"""What a call of a deep tree caused long after: that of which there are no pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.cover import Axis
from opscope.attribution.deep import Deep
from opscope.attribution.totals import distinct, totals

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Far:
    """Answers have an entry for each call of the walk; `chosen` and `values` one for each span.

    `start` and `end` are those of all spans, `first` and `until` moments for each call: its pairs
    lie between them where they lie before `until`. What they do after it is found with the rest.
    """

    def __init__(self, deep: Deep, start: Ints, end: Ints, first: Ints, until: Ints) -> None:
        self.deep, self.start, self.end = deep, start, end
        self.first, self.until = first, until

    def total(self, values: Ints, chosen: Bools) -> Ints:
        """The sum of the values of the chosen spans that a call owns and has no pair with."""
        row, call = self._near(chosen)
        near = totals(call, values[row], len(self.first))
        return self.deep.total(values, chosen) - near

    def union(self, chosen: Bools, room: NDArray[Any]) -> Ints:
        """The time from `until` on in which any of the chosen spans ran, in each room, added up."""
        row, number = self._near(chosen)
        rooms, which = distinct(number, room[row])
        call = rooms[:, 0]
        before = Axis(self.first[call], self.until[call])
        near = before.covered(which, self.start[row], self.end[row])
        whole = self.deep.union(chosen, self.start, self.end, room)
        return whole - totals(call, near, len(self.first))

    def _near(self, chosen: Bools) -> tuple[Ints, Ints]:
        row, call = self.deep.near
        some = np.flatnonzero(chosen[row])
        return row[some], call[some]
