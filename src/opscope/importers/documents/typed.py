"""JSON text to structs: at once where every field has its type, else event by event."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from opscope.importers.quality import Quality

T = TypeVar("T", bound=msgspec.Struct)

ODD = "fields of another type than they should have (left at their default)"
NO_EVENT = "things among the events that are no events"

_BROKEN = (msgspec.DecodeError, RecursionError)


class Typed(Generic[T]):
    """Reads lists of one kind of struct. Every field of it, and of structs in it, has a default."""

    def __init__(self, kind: type[T], quality: Quality) -> None:
        self._kind = kind
        self._quality = quality
        many: Any = list[kind]  # type: ignore[valid-type]
        self._strict = msgspec.json.Decoder(many)
        self._lax = msgspec.json.Decoder(many, strict=False)
        self._pieces = msgspec.json.Decoder(list[msgspec.Raw])
        self._one = msgspec.json.Decoder(kind)

    def read(self, text: bytes, offset: int) -> list[T] | None:
        """All of a list; None where the text is not JSON, or holds a list, which may be one of
        events. `offset` is its place in the file."""
        for decoder in (self._strict, self._lax):
            try:
                found: list[T] = decoder.decode(text)
                return found
            except msgspec.ValidationError:
                continue
            except _BROKEN:
                return None
        try:
            return self._each(self._pieces.decode(text), text, offset)
        except _BROKEN:
            return None

    def _each(self, pieces: list[msgspec.Raw], text: bytes, offset: int) -> list[T] | None:
        events: list[T] = []
        told: list[tuple[str, int, int]] = []
        place = 0
        for piece in pieces:
            try:
                events.append(self._one.decode(piece))
                place += len(memoryview(piece))
                continue
            except msgspec.ValidationError:
                pass
            view = bytes(piece)
            place = text.find(view, place)
            fields = msgspec.json.decode(view)
            if isinstance(fields, dict):
                event, odd = fitted(fields, self._kind)
                events.append(event)
            elif isinstance(fields, list):
                return None
            else:
                odd = 0
                told.append((NO_EVENT, 1, offset + place))
            if odd:
                told.append((ODD, odd, offset + place))
            place += len(view)
        for what, number, where in told:
            self._quality.count(what, number, (where,))
        return events


def fitted(fields: dict[str, Any], kind: type[T]) -> tuple[T, int]:
    """A struct of these fields, and how many of them did not fit and were left at their default."""
    try:
        return msgspec.convert(fields, kind, strict=False), 0
    except (msgspec.ValidationError, RecursionError):
        pass
    fitting: dict[str, Any] = {}
    odd = 0
    for field in _fields(kind):
        if field.encode_name not in fields:
            continue
        value = fields[field.encode_name]
        if value is None:
            continue
        try:
            fitting[field.name] = msgspec.convert(value, field.type, strict=False)
            continue
        except (msgspec.ValidationError, RecursionError):
            pass
        inner = _struct(field.type)
        if inner is not None and isinstance(value, dict):
            fitting[field.name], more = fitted(value, inner)
            odd += more
        else:
            odd += 1
    return kind(**fitting), odd


@lru_cache(maxsize=32)
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds, also if it may be None."""
    for one in (kind, *getattr(kind, "__args__", ())):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            return one
    return None
