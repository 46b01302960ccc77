"""The numpy row types of a session: spans (64 bytes), links, pauses, drops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows of any of the types below. numpy's typing has no names for fields.
Rows = NDArray[Any]

#: One span. `owner` 0: none. `submitted_ns` 0 and `cpu_ns` -1: not known.
#: `name` and `lane` are indices into the session's tables.
SPAN = np.dtype(
    [
        ("id", "<i8"),
        ("owner", "<i8"),
        ("name", "<i4"),
        ("kind", "<i1"),
        ("phase", "<i1"),
        ("flags", "<i2"),
        ("lane", "<i4"),
        ("submitted_lane", "<i4"),
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("submitted_ns", "<i8"),
        ("cpu_ns", "<i8"),
    ]
)

#: The same 64 bytes for the `struct` module, which packs a tuple of 12 integers faster than numpy.
SPAN_FORMAT = "<qqibbhiiqqqq"

#: A fact that joins two spans, by their ids.
LINK = np.dtype([("kind", "<i1"), ("source", "<i8"), ("target", "<i8")])

#: A stretch of time in which one process was not recorded on purpose.
PAUSE = np.dtype([("process", "<i4"), ("start_ns", "<i8"), ("end_ns", "<i8")])

#: A stretch of time in which `count` spans of one process were lost for want of room.
DROP = np.dtype([("process", "<i4"), ("start_ns", "<i8"), ("end_ns", "<i8"), ("count", "<i8")])


def no_rows(dtype: np.dtype[Any]) -> Rows:
    """An empty table of that type."""
    return np.empty(0, dtype)
