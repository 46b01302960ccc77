"""The bytes of a session file: a head, then frames of (tag, length, CRC32, payload), appended.

    head   magic (8 bytes), format version (u2), zero (u2)
    frame  tag (4 letters), payload length (u4), CRC32 of tag and payload (u4), payload

Span frames hold rows of `model.SPAN`; every other payload is JSON in ASCII. Names, lanes and
operators stand before the frames that use them, so every prefix that ends at a frame is a whole
session. All numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAGIC = b"\x89opscope"
VERSION = 1
HEAD = struct.Struct("<8sHH")
FRAME = struct.Struct("<4sII")

#: The word the recorder uses for a fact, and the tag it has in the file.
TAGS = {
    "process": b"PROC",  # {pid, command, machine, versions, start_ns}
    "names": b"NAME",  # [index of the first, [text, ...]]
    "lanes": b"LANE",  # [index of the first, [[name, kind, thread], ...]]
    "ops": b"OPER",  # [index of the first, [[name index, {fields of Op}], ...]]
    "spans": b"SPAN",  # raw rows
    "open": b"OPEN",  # [[the 12 fields of a span], ...]: begun, not ended yet
    "links": b"LINK",  # [[kind, source, target], ...]
    "pauses": b"PAUS",  # [[start_ns, end_ns], ...]
    "drops": b"DROP",  # [[start_ns, end_ns, count], ...]
    "samples": b"SAMP",  # [{...}, ...]
    "sight": b"SIGH",  # [{host, version, sees, misses}, ...]
    "anchor": b"TIME",  # [monotonic ns, wall-clock ns]
    "broken": b"BROK",  # [text, ...]: hooks that were switched off
    "notes": b"NOTE",  # [text, ...]
    "costs": b"COST",  # {kind: [ns inside the span, ns outside of it], ...}
    "end": b"DONE",  # {end_ns}
}
WORDS = {tag: word for word, tag in TAGS.items()}


def head() -> bytes:
    """The first bytes of every file."""
    return HEAD.pack(MAGIC, VERSION, 0)


def frame(word: str, data: Any) -> bytes:
    """One frame; `data` is bytes for "spans", else anything JSON can hold.

    JSON in ASCII keeps every text, lone surrogates and NUL included.
    """
    payload = data if word == "spans" else json.dumps(data, separators=(",", ":")).encode("ascii")
    tag = TAGS[word]
    return FRAME.pack(tag, len(payload), zlib.crc32(payload, zlib.crc32(tag))) + payload


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of the file that could not be read."""

    offset: int
    length: int
    what: str

    def __str__(self) -> str:
        return f"{self.what} at byte {self.offset} ({self.length} bytes lost)"


def frames(data: memoryview) -> Iterator[tuple[str, memoryview] | Damage]:
    """Every whole frame behind the head as (word, payload), and every stretch that is not one.

    After a damaged frame reading goes on at the next place that holds a whole one.
    """
    at = HEAD.size
    places = dict.fromkeys(WORDS, 0)
    while at < len(data):
        found = _frame_at(data, at)
        if found is not None:
            yield found
            at += FRAME.size + len(found[1])
            continue
        resume = _next_frame(data, at + 1, places)
        cut = resume == len(data) and _is_cut(data, at)
        yield Damage(at, resume - at, "the file ends inside a frame" if cut else "a damaged frame")
        at = resume


def _frame_at(data: memoryview, at: int) -> tuple[str, memoryview] | None:
    if at + FRAME.size > len(data):
        return None
    tag, length, crc = FRAME.unpack_from(data, at)
    word = WORDS.get(tag)
    payload = data[at + FRAME.size : at + FRAME.size + length]
    if word is None or len(payload) < length or zlib.crc32(payload, zlib.crc32(tag)) != crc:
        return None
    return word, payload


def _is_cut(data: memoryview, at: int) -> bool:
    """Whether the rest is the beginning of a frame: too short, or shorter than it says."""
    if at + FRAME.size > len(data):
        return True
    tag, length, _ = FRAME.unpack_from(data, at)
    return tag in WORDS and at + FRAME.size + length > len(data)


def _next_frame(data: memoryview, at: int, places: dict[bytes, int]) -> int:
    """The next offset that holds a whole frame, or the end.

    `places` keeps where each tag stands next, so that many damaged frames cost one search in all.
    """
    whole = data.obj if isinstance(data.obj, bytes) else data.tobytes()
    while True:
        for tag, place in places.items():
            if place < at:
                found = whole.find(tag, at)
                places[tag] = found if found >= 0 else len(data)
        place = min(places.values())
        if place == len(data) or _frame_at(data, place) is not None:
            return place
        at = place + 1
