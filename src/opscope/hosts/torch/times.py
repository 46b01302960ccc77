"""torch tells time as nanoseconds since 1970: onto the recorder's clock and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.record import Clock

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Anchor:
    """One moment on both clocks."""

    mono_ns: int
    wall_ns: int


def anchor(clock: Clock) -> Anchor:
    """Now on both, from the closest of several readings."""
    best: tuple[int, Anchor] | None = None
    for _ in range(7):
        before = clock.now()
        wall = clock.wall()
        after = clock.now()
        if best is None or after - before < best[0]:
            best = after - before, Anchor((before + after) // 2, wall)
    assert best is not None
    return best[1]


def to_mono(first: Anchor, last: Anchor, wall_ns: Ints) -> Ints:
    """Wall-clock times on the recorder's clock, in a straight line through two anchors: the wall
    clock may have been slewed between them."""
    offset = first.mono_ns - first.wall_ns
    drift = (last.mono_ns - last.wall_ns) - offset
    length = max(last.wall_ns - first.wall_ns, 1)
    share = np.clip((wall_ns - first.wall_ns) / length, 0.0, 1.0)
    return wall_ns + offset + np.rint(share * drift).astype(np.int64)
