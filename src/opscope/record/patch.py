"""Replacing an attribute for a while, and putting back exactly what was there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

#: What stands patched now, for `testing.assert_restored`: (owner, attribute).
standing: list[tuple[Any, str]] = []


@contextmanager
def patched(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Inside the block `owner.name` is `make(original)`, with the original's name and docstring.

    Where the attribute is missing nothing happens. If somebody else has replaced ours meanwhile,
    theirs stays, and ours, which they may call, must do nothing but call the original.
    """
    original = vars(owner).get(name)
    if original is None:
        yield
        return
    replacement = wraps(original)(make(original))
    setattr(owner, name, replacement)
    standing.append((owner, name))
    try:
        yield
    finally:
        standing.remove((owner, name))
        if vars(owner).get(name) is replacement:
            setattr(owner, name, original)
