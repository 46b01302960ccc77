"""Where a recording goes: a file that only ever grows, or memory, behind one narrow face."""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from opscope.errors import UsageError
from opscope.model import Session
from opscope.store.frames import frame, head
from opscope.store.reader import parse

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate newlines
#: Standard input, output and error of the program.
_STANDARD = (0, 1, 2)


class FileSink:
    """Appends frames to a new file. One thread at a time may use it.

    Frames wait in memory until `flush`, which hands them to the system in one write, so a killed
    process loses nothing that was flushed. A failed write (a full disk) raises OSError and leaves
    the file as it was at the last whole frame.

    The recorded program may close our descriptor, as one that becomes a daemon does, and get its
    number for a file of its own: nothing is ever written to that one, nor is it closed.
    """

    def __init__(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Create the file; with `force` an existing one is replaced.

        Raises UsageError when the file exists or its folder cannot be written.
        """
        # Absolute: the program may go to another folder while it is recorded.
        self.path = Path(path).absolute()
        try:
            flags = os.O_TRUNC if force else os.O_EXCL
            self._open(os.O_CREAT | flags)
        except FileExistsError:
            if self.path.is_dir():
                raise UsageError(f"cannot write {path}: it is a folder") from None
            raise UsageError(
                f"{path} exists: choose another name, or overwrite it with --force"
            ) from None
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        except ValueError as error:  # a NUL, or a surrogate the file system cannot hold
            raise UsageError(f"cannot write {str(path)!r}: {error}") from None
        self._waiting: list[bytes] = [head()]
        self._size = 0
        try:
            self.flush()
        except OSError as error:
            self._release()
            if self._is_regular():  # a device or a pipe was there before us, and stays
                with suppress(OSError):
                    self.path.unlink()
            raise UsageError(f"cannot write {path}: {error.strerror}") from None

    def put(self, word: str, data: Any) -> None:
        """Take one fact, as `frames.TAGS` describes it; nothing is written yet."""
        self._waiting.append(frame(word, data))

    def flush(self) -> None:
        """Hand everything taken so far to the system."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        if not data:
            return
        self._hold()
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            # Where even this fails (a pipe), the reader tells the half frame apart.
            with suppress(OSError):
                self._file.truncate(self._size)
                self._file.seek(self._size)
            raise
        self._size += len(data)

    def abandon(self) -> None:
        """Close without writing: for a forked child, whose parent goes on with the file."""
        self._waiting.clear()
        self._release()

    def close(self) -> None:
        """Flush and close. Nothing may be put afterwards."""
        try:
            self.flush()
        finally:
            self._release()

    def session(self) -> Session:
        """What has been written so far, read back."""
        return parse(self.path.read_bytes(), str(self.path))

    def _open(self, flags: int) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | _BINARY | flags, 0o666)
        if descriptor in _STANDARD and fcntl is not None:
            # One was closed when the program began: what is written to it must not end in here.
            low, descriptor = descriptor, fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(low)
        self._descriptor, self._status = descriptor, os.fstat(descriptor)
        # It closes nothing by itself: by then the number may be somebody else's.
        self._file = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115

    def _is_ours(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._status)
        except OSError:
            return False

    def _hold(self) -> None:
        """See that the descriptor is ours, or open the file again. OSError where neither can be."""
        if self._is_ours():
            return
        if not (self._is_regular() and self._still_there()):
            raise OSError(errno.EBADF, "the program closed it")
        self._open(0)
        self._file.seek(self._size)

    def _is_regular(self) -> bool:
        return stat.S_ISREG(self._status.st_mode)

    def _still_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), self._status)
        except OSError:
            return False

    def _release(self) -> None:
        if self._is_ours():
            os.close(self._descriptor)


class MemorySink:
    """The same frames in memory; `session()` may be asked at any time after a flush."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self._bytes.write(head())

    def put(self, word: str, data: Any) -> None:
        """Take one fact, as `frames.TAGS` describes it."""
        self._bytes.write(frame(word, data))

    def flush(self) -> None:
        """Nothing to do: memory holds it already."""

    def abandon(self) -> None:
        """Forget everything: for a forked child."""
        self._bytes = io.BytesIO(head())

    def close(self) -> None:
        """Nothing to do: the session stays readable."""

    def session(self) -> Session:
        """What has been put so far, read back."""
        return parse(self._bytes.getvalue(), "memory")
