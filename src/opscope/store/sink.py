"""Where a recording goes: a file that only ever grows, or memory, behind one narrow face."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from opscope.errors import UsageError
from opscope.model import Session
from opscope.store.frames import frame, head
from opscope.store.reader import parse


class FileSink:
    """Appends frames to a new file. One thread at a time may use it.

    Frames wait in memory until `flush`, which hands them to the system in one write, so a killed
    process loses nothing that was flushed. A failed write (a full disk) raises OSError and leaves
    the file as it was at the last whole frame.
    """

    def __init__(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Create the file; with `force` an existing one is replaced.

        Raises UsageError when the file exists or its folder cannot be written.
        """
        # Absolute: the program may go to another folder while it is recorded.
        self.path = Path(path).absolute()
        try:
            self._file = open(self.path, "wb" if force else "xb", buffering=0)  # noqa: SIM115
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
            self._file.close()
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
        self._file.close()

    def close(self) -> None:
        """Flush and close. Nothing may be put afterwards."""
        try:
            self.flush()
        finally:
            self._file.close()

    def session(self) -> Session:
        """What has been written so far, read back."""
        return parse(self.path.read_bytes(), str(self.path))


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
