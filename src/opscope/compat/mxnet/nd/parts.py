"""Keys of parts of arrays: what MXNet makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

Shape = tuple[int, ...]


def kept(key: Any, shape: Shape) -> Any:
    """The key; one that leaves no axis becomes one that leaves an axis of 1. IndexError."""
    parts = [one for one in (key if isinstance(key, tuple) else (key,)) if one is not Ellipsis]
    if len(parts) != len(shape) or not all(isinstance(one, (int, np.integer)) for one in parts):
        return key
    last, extent = int(parts[-1]), shape[-1]
    if not -extent <= last < extent:
        raise IndexError(f"index {last} is out of bounds for an axis of {extent}")
    return (*parts[:-1], slice(last, last + 1 or None))


def together(key: Any, shape: Shape) -> bool:
    """Whether the key is of integers and slices, and the elements it picks lie side by side."""
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not None]
    if not all(part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts):
        return False
    dots = sum(part is Ellipsis for part in parts)
    if dots > 1 or len(parts) - dots > len(shape):
        return False  # NumPy says what is wrong with it
    place = next((n for n, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = [slice(None)] * (len(shape) - len(parts) + dots)
    parts[place : place + dots] = rest
    cut = False  # one axis may be a range; behind it all must be whole
    for part, extent in zip(parts, shape, strict=True):
        picked = range(extent)[part] if isinstance(part, slice) else range(1)
        if len(picked) != 1 and picked.step != 1:
            return False
        if cut and len(picked) != extent:
            return False
        cut |= len(picked) != 1
    return True
