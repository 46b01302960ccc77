"""Files, archives and folders as a row of byte streams."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from opscope.errors import InputError

#: How much of the beginning of a file is looked at to tell what it is.
LOOK = 1 << 16
_BLOCK = 1 << 20
_GZIP, _ZIP = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
#: What is looked for in a folder.
_ENDINGS = (".json", ".json.gz", ".pb", ".pb.gz", ".opscope", ".trace", ".trace.gz", ".zip")
#: JAX writes its trace into a folder once more as JSON that is cut, and what it made of it.
_WHOLE, _BESIDE = (".xplane.pb", ".xplane.pb.gz"), (".json", ".json.gz", ".pb", ".pb.gz")
#: What unpacking raises; NotImplementedError (a RuntimeError) is a way of packing we do not know.
_BROKEN = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class Member:
    """One file, in an archive or by itself, and how to open it, unpacked.

    Reading from the stream raises OSError, and nothing else, where the data are damaged.
    """

    name: str
    opened: Callable[[], BinaryIO]

    def head(self) -> bytes:
        """Its beginning, as far as it can be read. InputError where nothing of it can."""
        data, why = self._upto(LOOK)
        if why and not data:
            raise InputError(
                f"cannot read {self.name}: {why}; if it is packed, try a new copy, or unpack it"
            )
        return data

    def whole(self) -> tuple[bytes, str]:
        """All of it that can be read, and why the rest cannot; "" where that is all. Never raises
        for content."""
        return self._upto(None)

    def _upto(self, size: int | None) -> tuple[bytes, str]:
        try:
            stream = self.opened()
        except (OSError, *_BROKEN) as error:
            return b"", _reason(error)
        with stream:
            return rest_of(stream, size)


def rest_of(stream: BinaryIO, size: int | None = None) -> tuple[bytes, str]:
    """What can still be read of a stream, or the next `size` bytes of that, and why there is no
    more; "" at its end. Never raises for content."""
    parts: list[bytes] = []
    missing = _BLOCK if size is None else size
    read = getattr(stream, "read1", stream.read)
    try:
        while missing > 0 and (part := read(missing)):
            parts.append(part)
            missing -= 0 if size is None else len(part)
    except (OSError, *_BROKEN) as error:
        return b"".join(parts), _reason(error)
    return b"".join(parts), ""


def members(path: Path) -> Iterator[Member]:
    """The files at a path: itself, those of a folder (by name), or of a zip archive.

    InputError, naming the place, for what cannot be opened or holds nothing.
    """
    try:
        folder = path.is_dir()
        found = list(_inside(path)) if folder else []
        source = None if folder else _source(path)
        head = b"" if source is None else _begin(source)
    except (OSError, ValueError) as error:
        place = getattr(error, "filename", None) or path
        raise InputError(f"cannot read {place}: {_reason(error)}") from None
    if source is None:
        if not found:
            raise InputError(f"{path} holds no trace: none of its files ends in {_listed()}")
        for inner in found:
            yield from members(inner)
    elif head.startswith(_ZIP):
        yield from _of_zip(path, source)
    else:
        yield Member(str(path), lambda: _unpacked(source()))


def _source(path: Path) -> Callable[[], BinaryIO]:
    """How to open a file, again and again. What can be read only once (a pipe) is read here."""
    if stat.S_ISREG(path.stat().st_mode):
        return lambda: path.open("rb")
    data = path.read_bytes()
    return lambda: io.BytesIO(data)


def _begin(source: Callable[[], BinaryIO]) -> bytes:
    with source() as file:
        return file.read(4)


def _inside(folder: Path) -> Iterator[Path]:
    """The traces in a folder and the folders in it, by name. OSError where one cannot be listed."""

    def refused(error: OSError) -> None:
        raise error

    for root, folders, files in os.walk(folder, onerror=refused):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in _chosen(files):
            if (Path(root) / name).is_file():
                yield Path(root) / name


def _chosen(names: Iterable[str]) -> list[str]:
    """Which of the files of one folder are traces, by their names, in order."""
    plain = sorted(name for name in names if not name.startswith("."))
    if any(name.endswith(_WHOLE) for name in plain):
        plain = [name for name in plain if name.endswith(_WHOLE) or not name.endswith(_BESIDE)]
    return [name for name in plain if name.endswith(_ENDINGS)]


def _of_zip(path: Path, source: Callable[[], BinaryIO]) -> Iterator[Member]:
    try:
        with source() as file, zipfile.ZipFile(file) as archive:
            every = [info for info in archive.infolist() if not info.is_dir()]
    except (OSError, *_BROKEN) as error:
        raise InputError(
            f"cannot read {path}: the archive is cut or damaged ({_reason(error)}); "
            "try a new copy, or `zip -FF` to save what is whole"
        ) from None
    if not every:
        raise InputError(f"{path} is an empty archive")
    folders: dict[str, list[str]] = {}
    for info in every:
        inside = PurePosixPath(info.filename)
        if not any(part.startswith((".", "__MACOSX")) for part in inside.parts):
            folders.setdefault(str(inside.parent), []).append(inside.name)
    traces = {(folder, name) for folder in folders for name in _chosen(folders[folder])}
    for info in sorted(every, key=lambda info: info.filename):
        inside = PurePosixPath(info.filename)
        # Where no name tells, each may be one.
        if not traces or (str(inside.parent), inside.name) in traces:
            yield Member(f"{path}/{info.filename}", _opener(source, info))


def _opener(source: Callable[[], BinaryIO], info: zipfile.ZipInfo) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        file = source()
        try:
            archive = zipfile.ZipFile(file)
            inner = cast(BinaryIO, archive.open(info))
            # It would keep the last bytes for itself where the sum is wrong.
            inner._expected_crc = None  # type: ignore[attr-defined]
        except BaseException:
            file.close()
            raise
        return _unpacked(cast(BinaryIO, _Layers(inner, archive, file, crc=info.CRC)))

    return opened


def _unpacked(stream: BinaryIO) -> BinaryIO:
    """The stream, or what it is when gzip is undone. Whatever is opened is closed with it."""
    ahead = io.BufferedReader(cast(io.RawIOBase, stream), _BLOCK)
    try:
        packed = ahead.peek(2).startswith(_GZIP)
    except BaseException:
        ahead.close()
        raise
    if packed:
        return cast(BinaryIO, _Layers(cast(BinaryIO, gzip.GzipFile(fileobj=ahead)), ahead))
    return cast(BinaryIO, ahead)


class _Layers(io.RawIOBase):
    """A stream on top of what it reads from: damage is an OSError, and all are closed together.

    A wrong sum of all bytes, where `crc` is known, is told behind the last of them.
    """

    def __init__(self, top: BinaryIO, *below: object, crc: int | None = None) -> None:
        self._top = top
        self._below = below
        self._crc = crc
        self._sum = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read1(self, size: int = -1) -> bytes:
        """Some bytes, at most `size`; none at the end."""
        try:
            some: bytes = self._top.read1(size)  # type: ignore[attr-defined]
        except _BROKEN as error:
            raise OSError(_reason(error)) from None
        if self._crc is not None:
            self._sum = zlib.crc32(some, self._sum)
            if not some and size and self._sum != self._crc:
                raise OSError("the check sum is wrong")
        return some

    def close(self) -> None:
        for layer in () if self.closed else (self._top, *self._below):
            layer.close()  # type: ignore[attr-defined]
        super().close()


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _listed() -> str:
    return ", ".join(_ENDINGS)
