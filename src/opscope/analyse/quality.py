"""What was odd about the files? One row for each kind of oddity in each process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opscope.model import Session


@dataclass(frozen=True, slots=True)
class OddRow:
    """`places` are the first ones: byte offsets, event numbers or names."""

    KEYS: ClassVar[tuple[str, ...]] = ("process", "what", "count", "places")

    process: int  #: place in `Session.processes`
    what: str
    count: int
    places: tuple[str, ...]


def quality(session: Session) -> tuple[OddRow, ...]:
    """In the order in which they were found; empty for files of our own that are whole."""
    return tuple(
        OddRow(number, finding.what, finding.count, finding.places)
        for number, process in enumerate(session.processes)
        for finding in process.findings
    )
