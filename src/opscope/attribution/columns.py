"""The columns of spans, each taken out of its 64-byte rows only once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.model import SPAN, Rows


class Columns:
    """`spans["start_ns"]` as a column of its own, copied when first asked for.

    A row fills a cache line, so whatever walks over one field of all rows reads all of them; and
    everything here walks over some field many times.
    """

    def __init__(self, spans: Rows) -> None:
        self.spans = spans
        self._made: dict[str, NDArray[Any]] = {}
        self._count = len(spans)

    @classmethod
    def made(cls, columns: dict[str, NDArray[Any]]) -> Columns:
        """Of nothing but these columns."""
        made = cls(np.empty(0, SPAN))
        made._made, made._count = columns, len(next(iter(columns.values())))
        return made

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, field: str) -> NDArray[Any]:
        column = self._made.get(field)
        if column is None:
            column = self._made[field] = np.ascontiguousarray(self.spans[field])
        return column


#: Spans as they are stored or by column: `table[field]` and `len(table)` are all that is asked.
Table = Rows | Columns
