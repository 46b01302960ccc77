"""What a file is, by its content, and its session."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

from opscope.errors import InputError
from opscope.importers.building import Builder, Options
from opscope.importers.opening import Member, rest_of
from opscope.model import Session


def _opscope(stream: BinaryIO, builder: Builder, head: bytes) -> Session:
    from opscope.importers.ours import read

    return read(stream, builder)


def _kineto(stream: BinaryIO, builder: Builder, head: bytes) -> Session:
    from opscope.importers.kineto import read

    return read(stream, builder, head)


def _mxnet(stream: BinaryIO, builder: Builder, head: bytes) -> Session:
    from opscope.importers.mxnet import read

    return read(stream, builder)


def _chrome(stream: BinaryIO, builder: Builder, head: bytes) -> Session:
    from opscope.importers.chrome import read

    return read(stream, builder)


def _xplane(stream: BinaryIO, builder: Builder, head: bytes) -> Session:
    from opscope.importers.xplane import read

    data, cut = rest_of(stream)
    session = read(data, builder)
    if not cut:
        return session
    (process,) = session.processes
    told = f"the compressed data are damaged or end early ({cut})"
    damage = "; ".join(filter(None, (told, process.damage)))
    return replace(session, processes=(replace(process, damage=damage),))


#: By name: what reads it.
FORMATS: dict[str, Callable[[BinaryIO, Builder, bytes], Session]] = {
    "opscope": _opscope,
    "kineto": _kineto,
    "mxnet": _mxnet,
    "viztracer": _chrome,
    "chrome": _chrome,
    "xplane": _xplane,
}

_KINETO_CATS = (
    rb"cpu_op|cuda_runtime|cuda_driver|hip_runtime|kernel|gpu_memcpy|Operator|Runtime|Kernel"
    rb"|python_function|cpu_instant_event|fwdbwd"
)
#: What tells a format by the beginning of a JSON file; the first that fits.
_MARKS = (
    # First: a slice that opscope wrote has the categories of MXNet's.
    ("opscope", rb'"producer"\s*:\s*"opscope"'),
    ("opscope", rb'"args"\s*:\s*\{\s*"id"\s*:\s*\d+\s*,\s*"owner"'),
    ("kineto", rb'"(schemaVersion|deviceProperties|baseTimeNanoseconds|distributedInfo)"\s*:'),
    ("kineto", rb'"cat"\s*:\s*"(' + _KINETO_CATS + rb')"'),
    ("kineto", rb'"(External id|Ev Idx|Fwd thread id)"\s*:'),
    ("mxnet", rb'"cat"\s*:\s*"(MXNET_C_API|Custom Operator|operator|Device Storage)"'),
    ("viztracer", rb'"viztracer_metadata"|"cat"\s*:\s*"FEE"'),
)
#: The first field of a plane: its id, name, lines, tables or stats.
_PLANE = frozenset(b"\x08\x12\x1a\x22\x2a\x32")


def read(member: Member, options: Options | None = None) -> Session:
    """The session of one file of somebody else's.

    InputError, naming the file, when nothing we know begins like that. Whatever else is wrong with
    it is told in the session: in words in `damage`, and counted in `findings`.
    """
    head = member.head()
    kind = kind_of(head)
    if kind is None:
        if not head:
            raise InputError(f"{member.name} is empty")
        raise InputError(
            f"{member.name} is neither an opscope session nor a trace that opscope reads "
            f"({', '.join(FORMATS)}): it begins with {head[:16]!r}; unpack archives: "
            "only .gz and .zip are opened as they are"
        )
    builder = Builder(kind, options or Options())
    with member.opened() as stream:
        return FORMATS[kind](stream, builder, head)


def kind_of(head: bytes) -> str | None:
    """The name of the format of a file that begins so; None where nothing fits."""
    if _is_plane(head):
        return "xplane"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\x00")
    if text[:1] and (text[:1] in b"{[" or b'"ph"' in head):
        for kind, mark in _MARKS:
            if re.search(mark, head):
                return kind
        return "chrome"
    return None


def _is_plane(head: bytes) -> bool:
    """Whether a message begins whose first field, of number 1, is itself a message: a plane."""
    if head[:1] != b"\x0a":
        return False
    size = at = 0
    for at, byte in enumerate(head[1:11], 1):
        size |= (byte & 0x7F) << 7 * (at - 1)
        if byte < 0x80:
            break
    else:
        return False
    inner = head[at + 1 : at + 2]
    return size > 0 and inner != b"" and inner[0] in _PLANE
