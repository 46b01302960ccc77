"""Looking through packed rows; in C where that is there, which keeps the GIL meanwhile.

With many busy threads the writer waits long for the GIL each time it has let go of it, and numpy
and `bytes.join` let go of it at every step.
"""

from __future__ import annotations

import numpy as np

from opscope.model import SPAN
from opscope.record.extension import native


def joined(parts: list[bytes]) -> bytes:
    """The parts in one."""
    return b"".join(parts)


def newest(rows: bytes) -> int:
    """The largest id among packed rows; 0 where there are none."""
    return int(np.frombuffer(rows, SPAN)["id"].max(initial=0))


def among(ids: list[int], rows: bytes) -> list[int]:
    """Those of these ids that are among packed rows."""
    found: list[int] = np.array(ids, np.int64)[
        np.isin(np.array(ids, np.int64), np.frombuffer(rows, SPAN)["id"])
    ].tolist()
    return found


if native is not None:
    globals().update({name: getattr(native, name) for name in ("joined", "newest", "among")})
