"""The text of the lines that ran, read from where the program was, if it is still the same."""

from __future__ import annotations

import os
import stat
import tokenize
import zlib
from dataclasses import dataclass

from opscope.analyse import SourceFile, source_files
from opscope.model import Session

#: No file larger than this is read.
_LARGEST = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Source:
    """The lines of a file, or none and `why` in a few words."""

    lines: tuple[str, ...]
    why: str = ""

    def text(self, line: int) -> str | None:
        """Line number `line`, counted from 1; None where it is not known."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else None


def sources(session: Session) -> dict[str, Source]:
    """By path, for every file of which lines were sampled."""
    return {path: _read(file) for path, file in source_files(session).items()}


def _read(file: SourceFile) -> Source:
    if not file.seen:
        return Source((), "no such file when it was recorded")
    try:
        found = os.stat(file.path)
        # A recording may come from anywhere: nothing is opened that could make us wait.
        if not stat.S_ISREG(found.st_mode):
            return Source((), "the source is not here")
        with open(file.path, "rb") as opened:
            data = opened.read(_LARGEST)
    except (OSError, ValueError):
        return Source((), "the source is not here")
    if {(len(data), zlib.crc32(data))} != file.seen:
        return Source((), "the source has changed since it was recorded")
    try:
        with tokenize.open(file.path) as text:
            return Source(tuple(line.rstrip("\r\n") for line in text))
    except (OSError, SyntaxError, ValueError):
        return Source((), "the source is not readable as Python")
