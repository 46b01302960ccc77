"""What a reader should know beside the numbers: what was odd, not seen, and where it ran."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from opscope.analyse import Note, OddRow, notes, quality
from opscope.model import Process, Session
from opscope.present.units import show_time

#: Notes and oddities beyond so many are counted and left out.
LIMIT = 200

#: Options of `opscope run` behind which a value stands.
RUN_TAKES_A_VALUE = ("-o", "--output", "--host", "--mode", "--repeat")

#: Topics that have a section of their own on the page.
_ELSEWHERE = ("quality", "defined", "not seen")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One process in words; `odd` is what was odd about its file, `whole` whether it ended in
    order, and `costs_known` whether a note may say what recording it cost."""

    title: str
    facts: tuple[tuple[str, str], ...]
    whole: bool
    damage: str
    odd: tuple[OddRow, ...]
    odd_left_out: int
    costs_known: bool


@dataclass(frozen=True, slots=True)
class Remarks:
    """The notes on show, and how many more there are."""

    shown: tuple[Note, ...]
    left_out: int


def remarks(session: Session) -> Remarks:
    """The notes that no other section of the page holds."""
    chosen = tuple(note for note in notes(session) if note.topic not in _ELSEWHERE)
    return Remarks(chosen[:LIMIT], max(len(chosen) - LIMIT, 0))


def recorded(session: Session) -> tuple[Recorded, ...]:
    """One for each process, in the order of the session."""
    rows = quality(session)
    answers = []
    for number, process in enumerate(session.processes):
        mine = [row for row in rows if row.process == number]
        answers.append(_recorded(process, mine))
    return tuple(answers)


def title(session: Session) -> str:
    """A few words for the window: what ran."""
    for process in session.processes:
        if words := _program(process.command):
            return words
    return "recording"


def _program(command: Sequence[str]) -> str:
    """The script or module of a command line, without the interpreter and its folder, and without
    `opscope run` before it."""
    words = list(command)
    if words and "python" in _base(words[0]):
        words = words[1:]
    by_name = words[:2] == ["-m", "opscope"]
    ours = words[1:] if by_name else words
    if ours[1:2] == ["run"] and (by_name or _base(ours[0]) in ("opscope", "opscope.exe")):
        words = _behind_options(ours[2:])
    if words[:1] == ["-m"]:
        return " ".join(words[1:3])
    words = [word for word in words if not word.startswith("-")]
    return _base(words[0]) if words else ""


def _behind_options(words: list[str]) -> list[str]:
    """What stands behind the options of `opscope run`, with the `-m` of a module."""
    while words and words[0].startswith("-") and words[0] not in ("-", "-m"):
        if words[0] == "--":
            return words[1:]
        words = words[2 if words[0] in RUN_TAKES_A_VALUE else 1 :]
    return words


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _recorded(process: Process, odd: Sequence[OddRow]) -> Recorded:
    facts: list[tuple[str, str]] = []
    if process.command:
        facts.append(("command", shlex.join(process.command)))
    if process.start_ns and process.end_ns > process.start_ns:
        facts.append(("recorded", show_time(process.end_ns - process.start_ns).replace("us", "µs")))
    if process.anchors and process.anchors[0][1] > 0:
        facts.append(("began", _when(process)))
    if process.versions:
        facts.append(("versions", ", ".join(f"{n} {v}" for n, v in process.versions.items())))
    return Recorded(
        title=f"process {process.pid}" if process.pid else "the recording",
        facts=tuple(facts),
        whole=process.complete,
        damage=process.damage,
        odd=tuple(odd[:LIMIT]),
        odd_left_out=max(len(odd) - LIMIT, 0),
        costs_known=bool(process.costs),
    )


def _when(process: Process) -> str:
    monotonic, wall = process.anchors[0]
    moment = (wall + (process.start_ns or monotonic) - monotonic) // 10**9
    try:
        return f"{datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return "at a time no calendar has"
