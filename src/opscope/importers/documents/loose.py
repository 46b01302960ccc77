"""Events in the damaged part of a file, one at a time: read, mended, taken apart or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from opscope.importers.documents.mending import NAN, mend, mend_one_of, without_nan
from opscope.importers.documents.window import Ends, Window, list_end, value_end
from opscope.importers.quality import Quality

#: A damaged event is looked for in so many bytes.
LIMIT = 1 << 16
#: An event that is whole may be this long, if the bytes after its beginning hold no other.
_LONGEST = 1 << 26
#: So many places are tried as its end, and so many events may stand inside another one.
_ENDS = 32
_INSIDE = 8
#: How often in one file a very long event is looked for in vain.
_PATIENCE = 4
#: Nor how often one of at most so many bytes, in the middle of something else.
_SCANS = 2000
_SHORT = 1 << 12

LEFT_OUT = "stretches between events that could not be read (left out)"
MIXED = "events with others in the middle of them (taken apart)"

BEGINNING = re.compile(rb'[\x00-\x20]*"([^"\\]*)"[\x00-\x20]*:[\x00-\x20]*')
_NEXT = re.compile(rb'"traceEvents"[\x00-\x20]*:[\x00-\x20]*\[|\{')
_VALUE_BEFORE = re.compile(rb":[\x00-\x20]*\Z")
_FOLLOWS = re.compile(rb'[\x00-\x20]*(?:,(?![\x00-\x20]*"[^"\\]*"[\x00-\x20]*:)|[\]{}]|\Z)')
_COMMA = re.compile(rb"[\x00-\x20]*,?[\x00-\x20]*")

Read = Callable[[bytes, int], "list[Any] | None"]
Found = list[tuple[bytes, list[Any]]]

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def unread(lost: list[tuple[int, int]]) -> str:
    """What was left out, in words."""
    size = sum(end - begin for begin, end in lost)
    what = "a stretch" if len(lost) == 1 else f"{len(lost):,} stretches"
    where = "at" if len(lost) == 1 else "the first at"
    return f"{what} of the file ({size:,} bytes, {where} byte {lost[0][0]:,}) could not be read"


class Loose:
    """Reads at `window.at`. `read` makes events of the text of a list, or says that it is no JSON.

    `lost` are the stretches left out, from where to where in the file; `cut` tells that the last of
    them is the beginning of an event.
    """

    def __init__(self, window: Window, quality: Quality, read: Read) -> None:
        self.lost: list[tuple[int, int]] = []
        self.cut = False
        self._window = window
        self._quality = quality
        self._read = read
        self._patience = _PATIENCE
        self._scans = _SCANS
        self._known = Ends(window)

    def event(self) -> Found:
        """The event that begins here, and goes past it; nothing where it cannot be read."""
        window = self._window
        window.fill(3 * LIMIT)
        data, start = window.data, window.at
        stop = min(start + LIMIT, len(data))
        first = self._known.after(start, stop)
        found = self._taken(first) if first >= 0 else []
        if found:
            return found
        # JSON can only end where its brackets are closed.
        closed = value_end(data, start, stop)
        if closed >= 0 and not _FOLLOWS.match(data, closed):
            # That brace is none of its own: what follows belonged to the event.
            return self._mended(-1) or self._apart()
        if closed >= 0:
            found = self._taken(closed) or self._without_nan(closed)
            return found or self._mended(closed) or self._apart()
        return self._long() or self._mended(closed) or self._apart()

    def skip(self) -> bool:
        """Go on to the next event, or the end of the list. True: to the beginning of a list."""
        window = self._window
        window.fill(3 * LIMIT)
        data, start = window.data, window.at
        place, marked = self._next_place()
        begin, end = window.offset(start), window.offset(place)
        if place > start:
            if self.lost and self.lost[-1][1] == begin:
                self.lost[-1] = (self.lost[-1][0], end)
            else:
                self.lost.append((begin, end))
                self._quality.count(LEFT_OUT, 1, (begin,))
            if window.ended and place == len(data) and data[start : start + 1] == b"{":
                self.cut = True
        window.at = place
        return marked

    def _taken(self, end: int) -> Found:
        """The event if it is JSON up to there."""
        window = self._window
        text = b"[" + window.data[window.at : end] + b"]"
        events = self._read(text, window.offset(window.at) - 1)
        if events is None:
            return []
        window.at = end
        return [(text, events)]

    def _without_nan(self, end: int) -> Found:
        window = self._window
        place = window.offset(window.at)
        text = b"[" + without_nan(window.data[window.at : end]) + b"]"
        if len(text) == 2 + end - window.at:
            return []
        events = self._read(text, place - 1)
        if events is None:
            return []
        self._quality.count(NAN, 1, (place,))
        window.at = end
        return [(text, events)]

    def _mended(self, closed: int) -> Found:
        window = self._window
        data, start = window.data, window.at
        end = start

        def texts() -> Iterator[bytes]:
            nonlocal end
            for end in self._ends(closed):
                yield data[start:end]

        mended = mend_one_of(texts())
        if mended is None:
            return []
        text = b"[" + mended[0] + b"]"
        place = window.offset(window.at)
        events = self._read(text, place - 1)
        if events is None:
            return []
        for what in mended[1]:
            self._quality.count(what, 1, (place,))
        window.at = end
        return [(text, events)]

    def _ends(self, closed: int) -> Iterator[int]:
        """Where the event may end, from the nearest place on; `closed` is one, if not -1."""
        data, start = self._window.data, self._window.at
        stop = min(start + LIMIT, len(data))
        end = start
        for _ in range(_ENDS):
            last, end = end, self._known.after(end, stop)
            if last < closed and (closed < end or end < 0):
                yield closed
            if end < 0:
                break
            yield end
        if self._window.ended and stop == len(data):
            end = data.rfind(b"}", start) + 1
            if end > max(last, closed) and not data[end:].strip(b"\x00\t\r\n ,"):
                yield end

    def _apart(self) -> Found:
        """An event in the middle of which others stand, as when two programs write one file."""
        window = self._window
        data, start = window.data, window.at
        place, marked = self._next_place()
        if marked or place >= len(data) or data[place : place + 1] != b"{":
            return []
        inside: Found = []
        head = data[start:place]
        for _ in range(_INSIDE):
            end = self._event_end(place)
            if end < 0:
                break
            text = b"[" + data[place:end] + b"]"
            inside.append((text, self._read(text, window.offset(place) - 1) or []))
            comma = _COMMA.match(data, end)
            place = comma.end() if comma else end
            for rest in (place, end):
                last = self._known.after(rest, min(rest + LIMIT, len(data)))
                if last >= 0:
                    outer = head + data[rest:last]
                    if self._is_event(outer) and (mend(outer) or ("", "twice"))[1] == ():
                        text = b"[" + outer + b"]"
                        events = self._read(text, window.offset(start) - 1) or []
                        self._quality.count(MIXED, 1, (window.offset(start),))
                        window.at = last
                        return [(text, events), *inside]
        return []

    def _long(self) -> Found:
        """An event that is longer than the stretch in which damage is looked for."""
        window = self._window
        if not self._patience or self._next_place()[0] < window.at + LIMIT:
            return []
        ahead = LIMIT
        end = -1
        while end < 0 and ahead < _LONGEST:
            ahead *= 8
            window.fill(ahead)
            end = value_end(window.data, window.at, min(window.at + ahead, len(window.data)))
            if window.ended and window.at + ahead > len(window.data):
                break
        if end >= 0:
            text = b"[" + window.data[window.at : end] + b"]"
            events = self._read(text, window.offset(window.at) - 1)
            if events is not None:
                window.at = end
                return [(text, events)]
        self._patience -= 1
        return []

    def _next_place(self) -> tuple[int, bool]:
        """Where to go on behind damage, and whether a list of events begins there."""
        window = self._window
        data, start = window.data, window.at
        stop = min(start + LIMIT, len(data))
        for found in _NEXT.finditer(data, start + 1, stop):
            if found.end() - found.start() > 1:
                return found.end(), True
            place = found.start()
            if not _VALUE_BEFORE.search(data, max(start, place - 64), place) and (
                self._event_end(place) >= 0
            ):
                return place, False
        if window.ended and stop == len(data):
            place = list_end(data, start)
            if place >= 0:
                return place, False
        return stop, False

    def _event_end(self, place: int) -> int:
        """The end of the whole event that begins there; -1: none does."""
        data = self._window.data
        stop = min(place + LIMIT, len(data))
        end = place
        for _ in range(_ENDS // 2):
            end = self._known.after(end, stop)
            if end < 0:
                break
            if self._is_event(data[place:end]):
                return end
        if self._scans and data.find(b'"ph"', place, place + _SHORT) >= 0:
            end = value_end(data, place, min(place + _SHORT, len(data)))
            if end >= 0 and self._is_event(data[place:end]):
                return end
            self._scans -= 1
        if end < 0 and self._window.ended and stop == len(data):
            end = data.rfind(b"}", place) + 1
            if end and self._is_event(data[place:end]):
                return end
        return -1

    def _is_event(self, text: bytes) -> bool:
        """Whether it is an object that says what sort of event it is."""
        try:
            return "ph" in _members.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return False
