"""JSON trace documents as batches of typed events, whatever state the file is in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any, BinaryIO, TypeVar

import msgspec

from opscope.importers.documents.loose import BEGINNING, LIMIT, Loose, unread
from opscope.importers.documents.mending import COMMAS, mend
from opscope.importers.documents.typed import NO_EVENT, Typed
from opscope.importers.documents.window import SPACE, Window, boundary, list_end, value_end
from opscope.importers.quality import Quality

T = TypeVar("T", bound=msgspec.Struct)

#: So many bytes are read and decoded at once. More is slower: what was decoded leaves the caches.
BLOCK = 1 << 20
#: A stretch that cannot be decoded at once is cut down to this, and read event by event.
FLOOR = 1 << 12
#: No single value is longer.
LONGEST = 1 << 26

_FIRST = re.compile(rb"(?:\[[\x00-\x20]*)?\{")
MARK = b'"traceEvents"'
NESTED = "lists begun inside the list of events (read as part of it)"
NOT_CLOSED = "lists of events that are not closed"
NO_COMMA = "events without a comma before them"
HEADLESS = "events outside of any list (read all the same)"
MORE = "documents after the first in one file"
HEAD = "parts of a file beside its events that could not be read"
BRACES = "closing braces too many"
RENAMED = "lists of events under another name than traceEvents"
HOLES = "stretches of control bytes between events"


class _State(Enum):
    TOP = auto()  #: outside of any document
    MEMBERS = auto()  #: in an object, not in its events
    EVENTS = auto()
    END = auto()


class Document:
    """Events of a file in the object form, `{"traceEvents": [...], ...}`, or the array form.

    The file is read block by block, so memory is a block's. Undamaged text is decoded a block at
    a time. Where that fails, only the place around the damage is read event by event: mended by
    the rules of `mending`, or left out; both are counted in `quality`. Never raises for content.
    """

    def __init__(self, stream: BinaryIO, quality: Quality) -> None:
        #: The other members of objects with events; complete once `batches` is exhausted.
        self.other: dict[str, Any] = {}
        #: In words what could not be read, "" where all was. Complete like `other`.
        self.damage = ""
        self._quality = quality
        self._window = Window(stream, BLOCK)
        self._loose = Loose(self._window, quality, lambda text, at: self._typed.read(text, at))
        self._state = _State.TOP
        self._typed: Typed[Any]
        self._members: dict[str, Any] = self.other
        self._in_object = False
        self._documents = 0
        self._events = 0
        self._commas = 1
        self._some = False
        self._hole = -1
        self._reach = BLOCK
        self._stretch = FLOOR
        self._text = b""

    def batches(self, kind: type[T]) -> Iterator[list[T]]:
        """All events as structs of that kind, once. Each field of it must have a default; of what
        an event says only what the struct asks for is decoded."""
        self._typed = Typed(kind, self._quality)
        while self._state is not _State.END:
            if self._state is _State.TOP:
                self._top()
            elif self._state is _State.MEMBERS:
                self._member()
            else:
                batch = self._at_once()
                if batch is None:
                    batch = self._one_by_one()
                if batch:
                    self._events += len(batch)
                    yield batch
        self.damage = "; ".join(self._damages())

    def again(self, kind: type[T]) -> list[T]:
        """The events of the last batch as another kind."""
        return Typed(kind, Quality()).read(self._text, 0) or []

    def _damages(self) -> Iterator[str]:
        if self._window.cut:
            yield f"the compressed data are damaged or end early ({self._window.cut})"
        if self._loose.cut:
            yield "the file ends inside an event"
        if self._loose.lost:
            yield unread(self._loose.lost)
        if not self._events:
            yield "no events were found"

    # Outside of the events.

    def _top(self) -> None:
        window = self._window
        first = self._next()
        if not first:
            self._state = _State.END
        elif first == b"[":
            window.at += 1
            self._begin(False)
        elif first == b"{":
            if self._begins_event():
                self._quality.count(HEADLESS, 1, (window.offset(window.at),))
                self._members = {}
                self._begin(True)
            else:
                window.at += 1
                self._members = {}
                self._state = _State.MEMBERS
        elif first in b",]}":
            window.at += 1
        elif window.data.startswith(b"\xef\xbb\xbf", window.at):
            window.at += 3
        else:
            self._resume()

    def _begin(self, in_object: bool) -> None:
        """The list of events begins."""
        if in_object:
            self.other.update(self._members)
            self._members = self.other
        self._documents += 1
        if self._documents > 1:
            self._quality.count(MORE, 1, (self._window.offset(self._window.at),))
        self._in_object = in_object
        self._commas = 1
        self._some = False
        self._state = _State.EVENTS

    def _member(self) -> None:
        """One member of the object, or its end."""
        window = self._window
        first = self._next()
        if first == b",":
            window.at += 1
            first = self._next()
        if first == b"}" or not first:
            window.at += len(first)
            self._state = _State.TOP
            return
        if first in b"{[":
            self._state = _State.TOP
            return
        begin = window.offset(window.at)
        key = self._value() if first == b'"' else None
        if not isinstance(key, str) or self._next() != b":":
            self._quality.count(HEAD, 1, (begin,))
            self._resume()
            return
        window.at += 1
        is_list = self._next() == b"["
        begin = window.offset(window.at)
        if is_list and (key == "traceEvents" or self._begins_event()):
            if key != "traceEvents":
                self._quality.count(RENAMED, 1, (begin,))
            window.at += 1
            self._begin(True)
            return
        value = self._value()
        if value is msgspec.UNSET:
            self._quality.count(HEAD, 1, (begin,))
            self._resume()
        else:
            self._members[key] = value

    def _value(self) -> Any:
        """The value that begins here, mended if need be; UNSET, and nothing is skipped, if it
        cannot be read."""
        window = self._window
        ahead = BLOCK
        window.fill(ahead)
        end = value_end(window.data, window.at, len(window.data))
        while end < 0 and not window.ended and ahead < LONGEST:
            ahead *= 2
            window.fill(ahead)
            end = value_end(window.data, window.at, len(window.data))
        if end < 0:
            return msgspec.UNSET
        text = window.data[window.at : end]
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            mended = mend(text)
            if mended is None:
                return msgspec.UNSET
            for what in mended[1]:
                self._quality.count(what, 1, (window.offset(window.at),))
            try:
                value = msgspec.json.decode(mended[0])
            except (msgspec.DecodeError, RecursionError):
                return msgspec.UNSET
        window.at = end
        return value

    def _next(self) -> bytes:
        """Go to the next byte that says something; "" at the end of the file."""
        window = self._window
        while True:
            found = SPACE.match(window.data, window.at)
            end = found.end() if found else window.at
            if window.data[window.at : end].strip():
                begin = window.offset(window.at)
                self._quality.count(HOLES, int(begin != self._hole), (begin,))
                self._hole = window.offset(end)
            window.at = end
            if end < len(window.data):
                return window.data[end : end + 1]
            if not window.fill(1):
                return b""

    def _begins_event(self) -> bool:
        """Whether the object that begins here, or behind a bracket, is an event, no document."""
        self._window.fill(LIMIT)
        data, limit = self._window.data, self._window.at + LIMIT
        first = _FIRST.match(data, self._window.at, limit)
        if first is None:
            return False
        at = first.end() - 1
        while True:
            key = BEGINNING.match(data, at + 1, limit)
            if key is None or key[1] == b"traceEvents":
                return False
            if key[1] == b"ph":
                return True
            at = value_end(data, key.end(), limit)
            found = SPACE.match(data, at, limit) if at >= 0 else None
            if found is None or data[found.end() : found.end() + 1] != b",":
                return False
            at = found.end()

    # In the events.

    def _at_once(self) -> list[Any] | None:
        """The next block of events; None where the next few must be read one by one."""
        window = self._window
        if not self._commas and self._next() == b",":
            self._commas = 1
            window.at += 1
        if self._commas != 1:
            return None
        while True:
            window.fill(self._reach)
            data, start = window.data, window.at
            stop = min(start + self._reach, len(data))
            end = begin = -1
            if window.ended and stop == len(data):
                end = list_end(data, start)
            closed = end >= 0
            if not closed:
                end, begin = boundary(data, start, stop)
            if end >= 0 and data.find(MARK, start, end) < 0:
                text = b"".join((b"[", memoryview(data)[start:end], b"]"))
                batch = self._typed.read(text, window.offset(start) - 1)
                if batch is not None:
                    self._text = text
                    self._some = True
                    self._stretch = FLOOR
                    self._reach = min(self._reach * 4, BLOCK)
                    window.at = end + 1 if closed else begin
                    if closed:
                        self._end_list()
                    return batch
            if self._reach <= FLOOR:
                return None
            self._reach = max(self._reach // 16, FLOOR)

    def _end_list(self) -> None:
        self._state = _State.MEMBERS if self._in_object else _State.TOP

    def _one_by_one(self) -> list[Any]:
        """The events of a short stretch."""
        window = self._window
        stop = window.offset(window.at) + self._stretch
        self._stretch = min(self._stretch * 2, BLOCK // 4 + 1)
        batch: list[Any] = []
        texts: list[bytes] = []
        while self._state is _State.EVENTS and window.offset(window.at) < stop:
            for text, events in self._step():
                batch += events
                texts.append(text[1:-1])
        self._text = b"[" + b",".join(texts) + b"]"
        return batch

    def _step(self) -> list[tuple[bytes, list[Any]]]:
        """What stands next in the list of events: [event], with how it reads as JSON."""
        window = self._window
        first = self._next()
        place = window.offset(window.at)
        if not first:
            self._quality.count(NOT_CLOSED, 1, (place,))
            self._state = _State.END
        elif first == b"]":
            if self._some and self._commas == 1:
                self._quality.count(COMMAS, 1, (place,))
            window.at += 1
            self._end_list()
        elif first == b",":
            window.at += 1
            self._commas += 1
            if self._commas > 1:
                self._quality.count(COMMAS, 1, (place,))
        elif first == b"}":
            self._quality.count(BRACES, 1, (place,))
            window.at += 1
        elif first == b"{":
            window.fill(LIMIT)
            mark = window.data.find(MARK, window.at, window.at + LIMIT)
            # A document has its events inside; an object that is closed before them is none.
            if (
                mark >= 0
                and value_end(window.data, window.at, mark) < 0
                and not self._begins_event()
            ):
                self._state = _State.TOP
                return []
            if not self._commas:
                self._quality.count(NO_COMMA, 1, (place,))
            found = self._loose.event()
            if found:
                self._commas, self._some = 0, True
                return found
            self._resume()
        elif (first == b"[" and self._begins_event()) or not self._other_value():
            if first == b"[":
                self._quality.count(NESTED, 1, (place,))
                window.at += 1
            else:
                self._resume()
        return []

    def _other_value(self) -> bool:
        """Go past a whole value that is no event."""
        window = self._window
        window.fill(LIMIT)
        end = value_end(window.data, window.at, min(window.at + LIMIT, len(window.data)))
        found = SPACE.match(window.data, end) if end >= 0 else None
        if found is None or window.data[found.end() : found.end() + 1] not in (b",", b"]"):
            return False
        try:
            msgspec.json.decode(window.data[window.at : end])
        except (msgspec.DecodeError, RecursionError):
            return False
        self._quality.count(NO_EVENT, 1, (window.offset(window.at),))
        window.at = end
        self._commas, self._some = 0, True
        return True

    def _resume(self) -> None:
        """Leave out what cannot be read, up to the next event or list of events."""
        if self._loose.skip():
            self._begin(True)
        elif self._state is not _State.EVENTS:
            self._in_object = True
            self._state = _State.EVENTS
        self._commas, self._some = 1, False
