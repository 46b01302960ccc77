"""Writes protocol buffers: single fields as bytes, and many messages of one shape at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Octets = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_VARINT, _BYTES, _FIXED64 = 0, 2, 1


def varint(value: int) -> bytes:
    """`value` >= 0."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """A field that is a whole number; negative ones take ten bytes, as int32 and int64 do."""
    return varint(field << 3 | _VARINT) + varint(value & (1 << 64) - 1)


def block(field: int, *content: bytes) -> bytes:
    """A field that is a message or a string."""
    whole = b"".join(content)
    return varint(field << 3 | _BYTES) + varint(len(whole)) + whole


def text(field: int, value: str) -> bytes:
    """A field that is a string. Lone surrogates, which UTF-8 has no form for, become `\\ud800`."""
    return block(field, value.encode("utf-8", "backslashreplace"))


def fixed64(field: int, values: Ints) -> Octets:
    """One row of bytes for each value: a field of type fixed64."""
    tag = np.frombuffer(varint(field << 3 | _FIXED64), np.uint8)
    found = np.empty((len(values), len(tag) + 8), np.uint8)
    found[:, : len(tag)] = tag
    found[:, len(tag) :] = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    return found


class Table:
    """Pieces of bytes to choose from by number."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.sizes: Ints = np.array([len(piece) for piece in pieces], np.int64)
        width = int(self.sizes.max(initial=0))
        padded = b"".join(piece.ljust(width, b"\0") for piece in pieces)
        #: By column, so that what is chosen of one is gathered from memory that lies together.
        self.columns: Octets = np.ascontiguousarray(
            np.frombuffer(padded, np.uint8).reshape(len(pieces), width).T
        )


class Messages:
    """Many messages side by side, each made of the same fields, some of which it may lack.

    Kept by column: the bytes at one place of all messages, and which messages have it.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.sizes: Ints = np.zeros(count, np.int64)
        self._columns: list[tuple[Octets | int, Mask | None]] = []

    def put(self, content: bytes, mask: Mask | None = None) -> None:
        """The same bytes for all, or those in the mask."""
        for octet in content:
            self._columns.append((octet, mask))
        self.sizes += len(content) if mask is None else mask * len(content)

    def choose(self, table: Table, index: Ints, mask: Mask | None = None) -> None:
        """The piece with that number."""
        sizes = table.sizes[index]
        if mask is not None:
            sizes = np.where(mask, sizes, 0)
        for place in range(int(sizes.max(initial=0))):
            self._columns.append((table.columns[place][index], sizes > place))
        self.sizes += sizes

    def varint(self, values: Ints, mask: Mask | None = None) -> None:
        """A varint; of negative values the ten bytes of int64."""
        rest = values.astype(np.uint64)
        if mask is not None:
            rest[~mask] = 0
        here = mask
        while True:
            after = rest >> np.uint64(7)
            more = after > 0
            last: Octets = (rest & np.uint64(127)).astype(np.uint8)
            octets: Octets = last | np.left_shift(more.view(np.uint8), 7, dtype=np.uint8)
            self._columns.append((octets, here))
            self.sizes += 1 if here is None else here
            if not more.any():
                return
            rest, here = after, more

    def number(self, field: int, values: Ints, mask: Mask | None = None) -> None:
        """A field that is a whole number."""
        self.put(varint(field << 3 | _VARINT), mask)
        self.varint(values, mask)

    def block(
        self, field: int, inner: Messages, mask: Mask | None = None, room: Ints | None = None
    ) -> None:
        """A field that is a message. `room`: bytes that the caller adds at its end afterwards."""
        assert mask is None or not (inner.sizes[~mask] > 0).any()
        sizes = inner.sizes if room is None else inner.sizes + room
        self.put(varint(field << 3 | _BYTES), mask)
        self.varint(sizes, mask)
        self._columns += inner._columns
        self.sizes += inner.sizes

    def joined(self) -> Octets:
        """All messages, one after the other."""
        width = len(self._columns)
        octets: Octets = np.empty((self.count, width), np.uint8)
        there = np.ones((self.count, width), bool)
        for place, (column, mask) in enumerate(self._columns):
            octets[:, place] = column
            if mask is not None:
                there[:, place] = mask
        joined: Octets = octets[there]
        return joined


def with_tails(heads: Octets, sizes: Ints, tails: Octets, counts: Ints) -> Octets:
    """Pieces of `sizes` bytes (none empty), each followed by its `counts` rows of `tails`."""
    width = tails.shape[1]
    ends = np.cumsum(sizes + counts * width)
    some = counts > 0
    change = np.zeros(len(heads) + tails.size + 1, np.int8)
    change[(ends - counts * width)[some]] = 1
    change[ends[some]] -= 1
    is_tail = np.cumsum(change[:-1], dtype=np.int8).astype(bool)
    found = np.empty(len(is_tail), np.uint8)
    found[is_tail] = tails.ravel()
    found[~is_tail] = heads
    return found
