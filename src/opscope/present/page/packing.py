"""Whole numbers as few bytes, for data that travels inside the page."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def varints(values: Ints) -> str:
    """Numbers of 0 and above in base 128, lowest digits first, a high bit where more follow;
    that as base64."""
    left = values.astype(np.uint64)
    sizes = np.ones(len(left), np.int64)
    for digits in range(1, 10):
        sizes += left >= np.uint64(1 << (7 * digits))
    octets = np.zeros(int(sizes.sum()), np.uint8)
    at = np.cumsum(sizes) - sizes
    for digit in range(int(sizes.max(initial=0))):
        here = np.flatnonzero(sizes > digit)
        value = (left[here] >> np.uint64(7 * digit)) & np.uint64(0x7F)
        more = np.where(sizes[here] > digit + 1, 0x80, 0)
        octets[at[here] + digit] = value.astype(np.int64) | more
    return base64.b64encode(octets.tobytes()).decode("ascii")


def signed(values: Ints) -> Ints:
    """Small numbers of either sign as small ones of 0 and above: 0, -1, 1, -2 ... as 0, 1, 2, 3."""
    return (values << 1) ^ (values >> 63)


def steps(values: Ints) -> Ints:
    """How much each is above the one before it, the first above 0."""
    return np.diff(values, prepend=np.int64(0))
