"""The session file: written by appending, read whatever is whole, several merged into one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from opscope.errors import InputError
from opscope.model import Session
from opscope.store.merge import merge
from opscope.store.reader import is_session, parse
from opscope.store.sink import FileSink, MemorySink

__all__ = ["FileSink", "MemorySink", "is_session", "load", "merge", "parse"]


def load(paths: Sequence[str | os.PathLike[str]]) -> Session:
    """Read one or several session files as one session.

    Raises InputError, naming the file, when one cannot be opened or is not a session.
    """
    if not paths:
        raise InputError("no file was named")
    return merge([parse(_bytes(Path(path)), str(path)) for path in paths])


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL, or a surrogate the file system cannot hold
        raise InputError(f"cannot read {str(path)!r}: {error}") from None
