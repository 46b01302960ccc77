"""What an exported trace says beside its events: processes, operators, pauses, sight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from opscope.importers.documents.typed import fitted
from opscope.importers.quality import Quality
from opscope.model import DROP, PAUSE, Finding, Op, Process, Rows, Sight

T = TypeVar("T", bound=msgspec.Struct)

ODD = "things beside the events that are not as opscope writes them (in part or wholly left out)"

_Int = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]


class _Op(msgspec.Struct):
    key: str = ""
    host: str = ""
    kind: str = ""
    name: str = ""
    qualified: str = ""
    overload: str = ""
    registration: _Int = 1
    file: str = ""
    line: _Int = 0
    native: bool = False


class _Finding(msgspec.Struct):
    what: str = ""
    count: _Int = 0
    places: tuple[str, ...] = ()


class _Process(msgspec.Struct):
    pid: _Int = 0
    system_pid: _Int = 0
    command: tuple[str, ...] = ()
    machine: str = ""
    versions: dict[str, str] = {}
    start_ns: _Int = 0
    end_ns: _Int = 0
    anchors: tuple[tuple[_Int, _Int], ...] = ()
    complete: bool = False
    damage: str = ""
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    costs: dict[str, tuple[_Int, _Int]] = {}
    findings: tuple[_Finding, ...] = ()


class _Stretch(msgspec.Struct):
    pid: _Int = 0
    start_ns: _Int = 0
    end_ns: _Int = 0
    count: _Int = 0


class _Sight(msgspec.Struct):
    host: str = ""
    version: str = ""
    sees: tuple[str, ...] = ()
    misses: dict[str, str] = {}


class Tables:
    """The tables, each as far as the file has it. `start_ns` is None where it does not say it."""

    def __init__(self, other: Mapping[str, Any], quality: Quality) -> None:
        told = other.get("otherData")
        self._told: Mapping[str, Any] = told if isinstance(told, dict) else {}
        self._quality = quality
        version, start, lines = (self._told.get(word) for word in ("version", "start_ns", "lines"))
        self.version = version if isinstance(version, str) else ""
        whole = isinstance(start, int) and 0 <= start <= 2**62
        self.start_ns: int | None = start if whole else None
        self.lines = lines if isinstance(lines, int) else 0
        self.corrected = self._told.get("corrected") is True

    def has(self, word: str) -> bool:
        """Whether there is such a table at all."""
        return isinstance(self._told.get(word), list)

    def processes(self) -> dict[int, Process]:
        """By their number in the trace."""
        return {one.pid: _process(one) for one in self._each("processes", _Process)}

    def ops(self) -> list[tuple[str, Op]]:
        """With the key that slices have."""
        found = []
        for one in self._each("ops", _Op):
            fields = msgspec.structs.asdict(one)
            key = fields.pop("key")
            op = Op(**fields)
            found.append((key or op.key, op))
        return found

    def pauses(self, processes: Mapping[int, int]) -> Rows:
        """Rows of `PAUSE`; `processes` are entries by number in the trace."""
        every = [
            (processes[one.pid], one.start_ns, one.end_ns)
            for one in self._each("pauses", _Stretch)
            if one.pid in processes
        ]
        return np.array(every, PAUSE)

    def drops(self, processes: Mapping[int, int]) -> Rows:
        """Rows of `DROP`, likewise."""
        every = [
            (processes[one.pid], one.start_ns, one.end_ns, one.count)
            for one in self._each("drops", _Stretch)
            if one.pid in processes
        ]
        return np.array(every, DROP)

    def sight(self) -> list[Sight]:
        """What hosts saw."""
        return [
            Sight(one.host, one.version, one.sees, one.misses)
            for one in self._each("sight", _Sight)
        ]

    def _each(self, word: str, kind: type[T]) -> Iterator[T]:
        told = self._told.get(word, [])
        if not isinstance(told, list):
            self._quality.count(ODD, 1, (f"otherData.{word}",))
            return
        for number, entry in enumerate(told):
            one, odd = fitted(entry, kind) if isinstance(entry, dict) else (None, 1)
            self._quality.count(ODD, odd, (f"otherData.{word}[{number}]",))
            if one is not None:
                yield one


def _process(told: _Process) -> Process:
    fields = msgspec.structs.asdict(told)
    fields["pid"] = fields.pop("system_pid")
    findings = tuple(Finding(one.what, one.count, one.places) for one in told.findings)
    return Process(**(fields | {"findings": findings}))
