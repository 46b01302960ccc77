"""A stretch of a stream in memory, and where things begin and end in JSON text."""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from typing import BinaryIO

import msgspec

#: What may stand between things: white space, and what a hole in a file is filled with.
SPACE = re.compile(rb"[\x00-\x20]*")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[{}\[\]]', re.DOTALL)
_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\Z")
_BEHIND_LIST = re.compile(rb'[ \t\r\n]*(?:\Z|\}[ \t\r\n]*\Z|,[ \t\r\n]*"[^"\\]*"[ \t\r\n]*:)')
_END = re.compile(rb'\}(?=[\x00-\x20]*(?:,[\x00-\x20]*[^\x00-\x20"]|[{\]]))')
_LITERAL = re.compile(rb"[^\x00-\x20,\]}:\"{\[]+")

#: Behind a boundary or the end of a list so many places are tried.
_TRIES = 1000
_DECODED = 20
_STEP = 4096
#: White space and a comma between two events are not longer.
_AHEAD = 512


class Window:
    """The part of a stream from which nothing was taken yet: `data[at:]`, as far as it was read.

    `cut` is why the stream could not be read to its end, "" where it could.
    """

    def __init__(self, stream: BinaryIO, block: int) -> None:
        self.data = b""
        self.at = 0
        self.ended = False
        self.cut = ""
        self._base = 0
        self._block = block
        self._read = getattr(stream, "read1", None) or stream.read

    def offset(self, at: int) -> int:
        """The place in the file of a place in `data`."""
        return self._base + at

    def fill(self, ahead: int) -> bool:
        """Have at least `ahead` bytes from `at` on, or all there are. False: nothing was added."""
        missing = ahead - (len(self.data) - self.at)
        if missing <= 0 or self.ended:
            return False
        kept = self.data[self.at :]
        self._base += self.at
        self.at = 0
        parts = [kept]
        missing = max(missing, self._block)
        while missing > 0 and not self.ended:
            parts.append(self._some(missing))
            missing -= len(parts[-1])
        self.data = b"".join(parts)
        return len(self.data) > len(kept)

    def _some(self, size: int) -> bytes:
        """The next bytes. A compressed file that was cut gives what can still be unpacked."""
        try:
            some: bytes = self._read(size)
        except (EOFError, OSError, zlib.error) as error:
            self.cut = str(error) or type(error).__name__
            some = b""
        self.ended = not some
        return some


class Ends:
    """Where objects of a list seem to end: a `}` before `]`, `{` or a comma behind which no
    member follows. Each part
    of a window is searched once."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._known: list[int] = []
        self._searched = 0

    def after(self, at: int, stop: int) -> int:
        """The first behind `at` and not behind `stop`, -1 where there is none."""
        window = self._window
        here = window.offset(at)
        if here > self._searched or len(self._known) > _TRIES:
            self._known = [end for end in self._known if end > here]
            self._searched = max(self._searched, here)
        while True:
            number = bisect_right(self._known, here)
            if number < len(self._known):
                end = self._known[number] - window.offset(0)
                return end if end <= stop else -1
            begin = self._searched - window.offset(0)
            if begin >= stop:
                return -1
            self._search(begin, min(begin + _STEP, stop))

    def _search(self, begin: int, stop: int) -> None:
        base = self._window.offset(0)
        for found in _END.finditer(self._window.data, begin, stop + _AHEAD):
            if found.end() > stop:
                break
            self._known.append(found.end() + base)
        self._searched = stop + base


def value_end(data: bytes, at: int, limit: int) -> int:
    """Where the JSON value that begins at `at` ends: -1 if not before `limit`. Only strings and
    brackets are looked at."""
    first = data[at : at + 1]
    if first not in (b"{", b"[", b'"'):
        found = _LITERAL.match(data, at, limit)
        return -1 if found is None or found.end() == limit else found.end()
    depth = 0
    for token in _TOKEN.finditer(data, at, limit):
        text = token[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif not token[1]:
            return -1
        if depth <= 0:
            return token.end()
    return -1


def boundary(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Of the last `}`, comma, `{` of a stretch: the end of the first and the beginning of the last;
    -1 where there is none."""
    begin = stop
    for _ in range(_TRIES):
        begin = data.rfind(b"{", start, begin)
        if begin < 0:
            break
        found = _BETWEEN.search(data, max(start, begin - 256), begin)
        if found:
            return found.start() + 1, begin
    return -1, -1


def list_end(data: bytes, start: int) -> int:
    """The place of the `]` behind which only the end of an object, or nothing, follows up to the
    end of the file; -1 where there is none."""
    place = len(data)
    decoded = 0
    for _ in range(_TRIES):
        place = data.rfind(b"]", start, place)
        if place < 0 or decoded == _DECODED:
            break
        if _BEHIND_LIST.match(data, place + 1):
            if rest_of_object(data, place + 1):
                return place
            decoded += 1
    return -1


def rest_of_object(data: bytes, at: int) -> bool:
    """Whether what follows is white space or exactly the rest of an object."""
    rest = data[at:]
    if not rest.strip():
        return True
    try:
        msgspec.json.decode(b'{"":0' + rest)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
