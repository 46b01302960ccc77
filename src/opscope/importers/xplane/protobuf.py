"""The wire format of protocol buffers: one message at a time, or many of a kind as columns.

Nothing here raises on bytes that are cut or wrong: a message is read as far as it goes, and where
it did not go on is noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

#: How a value is written.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

#: (number, how written, value, end): of bytes the value is where they start and `end` where they
#: stop; of anything else the value is the value, and signed where it is as wide as 64 bits.
Field = tuple[int, int, int, int]

_SIZES = {FIXED64: 8, FIXED32: 4}
#: Which bits stay, which move, and how far.
_PUSHED = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
#: Of the places at which messages broke so many are kept.
_PLACES = 5


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One field of each message `which`, as `Field` says."""

    which: Ints
    number: Ints
    wire: Ints
    value: Ints
    end: Ints


class Wire:
    """The bytes of a file. `breaks` counts messages that did not go on, `places` are the first."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.breaks = 0
        self.places: list[int] = []
        short = data if len(data) >= 8 else data + bytes(8 - len(data))
        self._last = len(short) - 8
        # The eight bytes from each place on as one number: overlapping, so no copy is made.
        self._words: NDArray[Any] = np.ndarray(self._last + 1, "<u8", short, strides=(1,))

    def text(self, start: int, stop: int) -> str:
        """Those bytes as text, whatever they are."""
        return self.data[start:stop].decode("utf-8", "replace")

    def broke(self, places: list[int]) -> None:
        """Note that a message did not go on at each of the places."""
        self.breaks += len(places)
        self.places += places[: _PLACES - len(self.places)]

    def fields(self, start: int, stop: int, cut: tuple[int, ...] = ()) -> Iterator[Field]:
        """The fields of the message in those bytes. Bytes that reach over its end are left out,
        but of the fields `cut` what there is of them is told."""
        at = start
        while at < stop:
            field, after = self._field(at, stop, cut)
            if field is None:
                return
            yield field
            at = after

    def split(self, start: int, stop: int, number: int) -> tuple[list[int], list[int], list[Field]]:
        """Where the messages of field `number` (below 16) start and stop, and all other fields."""
        data, tag = self.data, number << 3 | BYTES
        starts: list[int] = []
        stops: list[int] = []
        rest: list[Field] = []
        add_start, add_stop = starts.append, stops.append
        at, last = start, stop - 1
        while at < last:
            if data[at] == tag:
                size = data[at + 1]
                if size < 0x80:
                    begin = at + 2
                else:
                    size, begin = self.varint(at + 1, stop)
                end = begin + size
                if size < 0 or end > stop:
                    self.broke([at])
                    return starts, stops, rest
                add_start(begin)
                add_stop(end)
                at = end
                continue
            field, at = self._field(at, stop, ())
            if field is None:
                return starts, stops, rest
            rest.append(field)
        if at < stop:
            self.broke([at])
        return starts, stops, rest

    def varint(self, at: int, stop: int) -> tuple[int, int]:
        """(value without a sign, where it ends); -1 where it does not end."""
        value = shift = 0
        for place in range(at, min(at + 10, stop)):
            byte = self.data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
            shift += 7
        return -1, stop

    def _field(self, at: int, stop: int, cut: tuple[int, ...]) -> tuple[Field | None, int]:
        tag, after = self.varint(at, stop)
        number, wire = tag >> 3, tag & 7
        if tag > 7 and wire == VARINT:
            value, after = self.varint(after, stop)
            if value >= 0:
                return (number, wire, value - (value >> 63 << 64), after), after
        elif tag > 7 and wire == BYTES:
            size, after = self.varint(after, stop)
            if 0 <= size <= stop - after:
                return (number, wire, after, after + size), after + size
            if size >= 0 and number in cut:
                self.broke([at])
                return (number, wire, after, stop), stop
        elif tag > 7 and wire in _SIZES and after + _SIZES[wire] <= stop:
            end = after + _SIZES[wire]
            value = int.from_bytes(self.data[after:end], "little", signed=wire == FIXED64)
            return (number, wire, value, end), end
        self.broke([at])
        return None, at

    def rounds(self, start: Ints, stop: Ints) -> Iterator[Round]:
        """The fields of many messages at once: first the first of each, then the second ..."""
        which = np.flatnonzero(start < stop).astype(np.int64)
        at, stop = start[which], stop[which]
        while len(which):
            tag, after, good = self._varints(at, stop)
            number, wire = tag >> 3, tag & 7
            value, end, whole = self._varints(after, stop)
            is_bytes = wire == BYTES
            fixed = (wire == FIXED64) | (wire == FIXED32)
            good &= (number > 0) & ((wire == VARINT) | is_bytes | fixed) & (whole | fixed)
            good &= ~is_bytes | ((value >= 0) & (value <= stop - end))
            if fixed.any():
                wide = wire == FIXED64
                raw = self._word(after)
                narrow = (raw & np.uint64(0xFFFF_FFFF)).view(np.int64)
                value = np.where(fixed, np.where(wide, raw.view(np.int64), narrow), value)
                end = np.where(fixed, after + np.where(wide, 8, 4), end)
                good &= end <= stop
            beyond = np.where(is_bytes & good, end + value, end)
            value = np.where(is_bytes, end, value)
            if not good.all():
                self.broke(at[~good].tolist())
                which, number, wire = which[good], number[good], wire[good]
                value, beyond, stop = value[good], beyond[good], stop[good]
            yield Round(which, number, wire, value, beyond)
            left = np.flatnonzero(beyond < stop)
            which, at, stop = which[left], beyond[left], stop[left]

    def _word(self, at: Ints) -> Words:
        """The eight bytes from each place on; 0 beyond the end of the file."""
        first = np.minimum(at, self._last)
        word: Words = self._words[first].astype(np.uint64, copy=False)
        over, zero = at - first, np.uint64(0)
        if over.any():
            word = np.where(over < 8, word >> (8 * np.minimum(over, 7)).astype(np.uint64), zero)
        return word

    def _varints(self, at: Ints, stop: Ints) -> tuple[Ints, Ints, Bools]:
        """(value, where it ends, whether it does) of the varint at each place."""
        word = self._word(at)
        # The last byte of a varint is the first without its high bit.
        ends = ~word & np.uint64(0x8080_8080_8080_8080)
        below = (ends & (~ends + np.uint64(1))) - np.uint64(1)
        size = ((below & np.uint64(0x0101_0101_0101_0101)) * np.uint64(0x0101_0101_0101_0101)) >> (
            np.uint64(56)
        )
        bits = word & below & np.uint64(0x7F7F_7F7F_7F7F_7F7F)
        # Seven bits of each byte pushed together: in pairs, in fours, in eights.
        for low, high, shift in _PUSHED:
            bits = (bits & low) | ((bits & high) >> shift)
        length = size.astype(np.int64)
        long = np.flatnonzero(ends == 0)
        good = np.ones(len(at), bool)
        if len(long):
            more = self._word(at[long] + 8)
            ninth, tenth = more & np.uint64(0xFF), (more >> np.uint64(8)) & np.uint64(0xFF)
            bits[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
            two = ninth >= 0x80
            bits[long] |= np.where(two, tenth << np.uint64(63), np.uint64(0))
            length[long] = np.where(two, 10, 9)
            good[long] = ~two | (tenth < 0x80)
        end = at + length
        good &= end <= stop
        return bits.view(np.int64), end, good
