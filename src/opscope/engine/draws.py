"""Keys of random numbers: each call of a custom operator has a stream of its own."""

from __future__ import annotations

from itertools import count

import numpy as np

Key = tuple[int, ...]


class Draws:
    """A stream of keys, no two alike. What a stream gives depends only on its own order of use.

    So random numbers do not depend on which thread runs which call first. Any thread.
    """

    __slots__ = ("_count", "_path")

    def __init__(self, path: Key) -> None:
        self._path = path
        self._count = count()

    def key(self) -> Key:
        """The next key; the seed comes first in it."""
        return (*self._path, next(self._count))

    def branch(self) -> Draws:
        """A stream for a call that is pushed now."""
        return Draws(self.key())


def start(seed: int) -> None:
    """Start over, for what no call encloses. Calls that were pushed before keep their streams."""
    global _root
    _root = Draws((int(seed) % 2**64,))


def root() -> Draws:
    """The stream of what no call encloses."""
    return _root


def generator(key: Key) -> np.random.Generator:
    """The generator of a key."""
    # A plain sequence would not do: trailing zeros of short ones do not count.
    return np.random.default_rng(np.random.SeedSequence(key[0], spawn_key=key[1:]))


_root = Draws((int(np.random.SeedSequence().generate_state(1)[0]),))
