"""`Session`: everything recorded in one run, and what was not visible. Frozen; no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opscope.model.columns import DROP, LINK, PAUSE, SPAN, Rows, no_rows


@dataclass(frozen=True, slots=True)
class Op:
    """A custom operator. Its identity is `key`; `name` is for show, `file`:`line` where it is."""

    host: str
    kind: str  #: what the host calls such a thing: "function", "CustomOp", "autograd.Function" ...
    name: str
    qualified: str = ""
    overload: str = ""
    registration: int = 1  #: 1 for the first operator of that qualified name, 2 for the next ...
    file: str = ""
    line: int = 0
    native: bool = False  #: its function is not written in Python

    @property
    def key(self) -> str:
        """Unique for (host, qualified name, overload, registration); nothing ever parses it."""
        overload = f"[{self.overload}]" if self.overload else ""
        return f"{self.host}:{self.qualified or self.name}{overload}#{self.registration}"


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread or a device stream of one process. `thread` is the system's id of it, 0 unknown."""

    name: str
    kind: str = "thread"  #: "thread" or "stream"
    process: int = 0  #: index into `Session.processes`
    thread: int = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """What one host could see, and what it could not, with the reason in words.

    `sees` are fixed words (calls, sub-operators, tasks, waits, dispatch, runtime, cpu,
    device, backward). Two of them change what numbers mean: with "device" no device work is 0 and
    not unknown; with "all waits" the gap of a call without CPU time is Python but for its waits.
    """

    host: str
    version: str = ""
    sees: tuple[str, ...] = ()
    misses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a file said that cannot be, or did not say: `what` in a few words, how often, and
    the first places (byte offsets, event numbers) where."""

    what: str
    count: int
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """One recorded process: where it ran, when, and what went wrong with the recording."""

    pid: int = 0
    command: tuple[str, ...] = ()
    machine: str = ""  #: same text: same machine since the same boot, so one monotonic clock
    versions: Mapping[str, str] = field(default_factory=dict)
    start_ns: int = 0
    end_ns: int = 0
    anchors: tuple[tuple[int, int], ...] = ()  #: (monotonic ns, wall-clock ns since 1970)
    complete: bool = False  #: the recording was ended in order
    damage: str = ""  #: what was wrong with the file, in words
    broken: tuple[str, ...] = ()  #: hooks that failed and were switched off
    notes: tuple[str, ...] = ()  #: other facts a reader should know
    #: By kind of span, and "push", "handover" and "write": what recording one cost, measured at the
    #: start, as ns (inside the span, outside of it). Empty: not measured.
    costs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()  #: what was odd about a file that somebody else wrote


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Session:
    """Spans and their tables. Two operators may share a name text but never an entry of `names`.

    `op_names[i]` is the entry of `names` that belongs to `ops[i]` alone, so a call's `name` tells
    its operator without anybody reading text. Rows are NumPy records (`SPAN`, `LINK`, ...); times
    are monotonic ns, and `start_ns` is the moment from which all that is shown counts.
    """

    spans: Rows = field(default_factory=lambda: no_rows(SPAN))
    names: tuple[str, ...] = ()
    lanes: tuple[Lane, ...] = ()
    links: Rows = field(default_factory=lambda: no_rows(LINK))
    ops: tuple[Op, ...] = ()
    op_names: tuple[int, ...] = ()
    pauses: Rows = field(default_factory=lambda: no_rows(PAUSE))
    drops: Rows = field(default_factory=lambda: no_rows(DROP))
    samples: tuple[Mapping[str, Any], ...] = ()
    sight: tuple[Sight, ...] = ()
    processes: tuple[Process, ...] = (Process(),)
    corrected: bool = False  #: what recording cost is to be left out of the parts of calls

    def __repr__(self) -> str:
        """What is in it, in one line; all of it would be pages."""
        return (
            f"<Session: spans {len(self.spans):,}, operators {len(self.ops):,}, "
            f"processes {len(self.processes):,}>"
        )

    @property
    def start_ns(self) -> int:
        """The moment that counts as zero: the earliest start of a process or span."""
        starts = [p.start_ns for p in self.processes if p.start_ns]
        if len(self.spans):
            starts.append(int(self.spans["start_ns"].min()))
        return min(starts, default=0)
