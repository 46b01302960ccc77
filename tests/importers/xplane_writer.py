"""A tiny writer of `*.xplane.pb` files, message by message."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


def varint(value: int) -> bytes:
    """A varint; negative numbers as 64 bits."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def whole(number: int, value: int) -> bytes:
    """A field that is a whole number."""
    return varint(number << 3) + varint(value)


def block(number: int, value: bytes | str) -> bytes:
    """A field that is text, bytes or a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def double(number: int, value: float) -> bytes:
    """A field that is a double."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


@dataclass(frozen=True)
class Ref:
    """A text that stands in the table of stats."""

    text: str


Value = int | float | str | bytes | Ref


@dataclass
class Plane:
    """A plane in the making: `lines` are (id, name, timestamp_ns, events)."""

    name: str
    stats: Mapping[str, Value] = field(default_factory=dict)
    lines: list[tuple[int, str, int, list[bytes]]] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)
    kind_bytes: dict[int, bytes] = field(default_factory=dict)
    stat_names: dict[str, int] = field(default_factory=dict)

    def line(self, number: int, name: str, timestamp_ns: int = 0) -> list[bytes]:
        """A new line: append events to it."""
        events: list[bytes] = []
        self.lines.append((number, name, timestamp_ns, events))
        return events

    def kind(self, name: str, display: str = "", stats: Mapping[str, Value] | None = None) -> int:
        """The number of that kind of event."""
        if name not in self.kinds:
            number = self.kinds[name] = len(self.kinds) + 1
            shown = block(4, display) if display else b""
            of_kind = b"".join(block(5, self.stat(*one)) for one in (stats or {}).items())
            self.kind_bytes[number] = whole(1, number) + block(2, name) + shown + of_kind
        return self.kinds[name]

    def stat(self, name: str, value: Value) -> bytes:
        """A stat."""
        start = whole(1, self._stat_name(name))
        if isinstance(value, Ref):
            return start + whole(7, self._stat_name(value.text))
        if isinstance(value, float):
            return start + double(2, value)
        if isinstance(value, int):
            return start + whole(4 if value < 0 else 3, value)
        return start + block(5 if isinstance(value, str) else 6, value)

    def event(self, name: str, start_ps: int, end_ps: int, **stats: Value) -> bytes:
        """An event, with stats of any name."""
        told = b"".join(block(4, self.stat(*one)) for one in stats.items())
        return whole(1, self.kind(name)) + whole(2, start_ps) + whole(3, end_ps - start_ps) + told

    def done(self) -> bytes:
        """The plane's bytes."""
        own = b"".join(block(6, self.stat(*one)) for one in self.stats.items())
        lines = b"".join(
            block(
                3,
                whole(1, number)
                + block(2, name)
                + whole(3, stamp)
                + b"".join(block(4, event) for event in events),
            )
            for number, name, stamp, events in self.lines
        )
        kinds = b"".join(
            block(4, whole(1, number) + block(2, data)) for number, data in self.kind_bytes.items()
        )
        names = b"".join(
            block(5, whole(1, number) + block(2, whole(1, number) + block(2, name)))
            for name, number in self.stat_names.items()
        )
        return whole(1, 7) + block(2, self.name) + lines + kinds + names + own

    def _stat_name(self, name: str) -> int:
        return self.stat_names.setdefault(name, len(self.stat_names) + 1)


def space(*planes: Plane, host: str = "") -> bytes:
    """The file."""
    return b"".join(block(1, plane.done()) for plane in planes) + (block(4, host) if host else b"")


@dataclass(frozen=True)
class Call:
    """A custom call of a program; `line` is where in model.py it stands."""

    name: str
    target: str
    op_name: str
    line: int = 0


def metadata(programs: Mapping[int, Sequence[Call]]) -> Plane:
    """The plane that holds the programs."""
    plane = Plane("/host:metadata", {"jax_version": "0.10.2"})
    for program, calls in programs.items():
        module = block(1, f"jit_f_{program}") + block(3, _computation(calls))
        frames = block(1, "model.py") + block(2, "f")
        for number, call in enumerate(calls, 1):
            frames += block(3, whole(1, 1) + whole(2, 1) + whole(3, call.line))
            frames += block(4, whole(1, number))
        proto = block(1, module + block(17, frames))
        plane.kind(f"jit_f({program})", stats={"Hlo Proto": proto, "program_id": program})
    return plane


def _computation(calls: Sequence[Call]) -> bytes:
    plain = block(1, "add.1") + block(2, "add") + block(7, block(2, "jit(f)/add"))
    out = block(1, "main") + block(2, plain)
    for number, call in enumerate(calls, 1):
        told = block(2, call.op_name) + whole(15, number)
        out += block(
            2,
            block(1, call.name) + block(2, "custom-call") + block(7, told) + block(28, call.target),
        )
    return out
