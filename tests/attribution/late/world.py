"""Events and recorded rows from terse lines, and what `join` made of them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from opscope.attribution.late import Context, Customs, Events, Forward, Joined, Role, join
from opscope.model import SPAN, Flag, Kind, LinkKind, Phase, Rows

_NAMES: dict[str, int] = {}

DISPATCH = "dispatch"
#: New ids start here; tests give recorded rows lower ones.
FIRST_ID = 1000


def entry(text: str) -> int:
    """The number of a name."""
    return _NAMES.setdefault(text, len(_NAMES))


def text_of(number: int) -> str:
    """The name of that number."""
    return list(_NAMES)[number]


@dataclass(frozen=True)
class Line:
    """One event before its name is a number."""

    name: str
    start_ns: int
    end_ns: int
    role: Role = Role.OP
    lane: int = 0
    thread: int = 1
    forward_thread: int = 0
    sequence: int = -1
    correlation: int = 0
    external: int = 0


def event(name: str, start_ns: int, end_ns: int, role: Role = Role.OP, **more: Any) -> Line:
    """An event; `more` are its other fields."""
    return Line(name, start_ns, end_ns, role, **more)


def node(name: str, start_ns: int, end_ns: int, sequence: int = -1, **more: Any) -> Line:
    """A node of the backward graph, of an operator on thread 1."""
    return Line(
        name, start_ns, end_ns, Role.NODE, sequence=sequence, **{"forward_thread": 1, **more}
    )


def columns(lines: Sequence[Line]) -> Events:
    """The lines as columns."""
    named = {"name": [entry(line.name) for line in lines]}
    return Events(
        *(
            np.array(
                named.get(column.name, [getattr(line, column.name, 0) for line in lines]), np.int64
            )
            for column in fields(Events)
        )
    )


def row(
    id: int,
    name: str,
    kind: Kind,
    start_ns: int,
    end_ns: int,
    *,
    owner: int = 0,
    phase: Phase = Phase.NONE,
    flags: int = 0,
    lane: int = 0,
    submitted_lane: int | None = None,
    submitted_ns: int = 0,
    cpu_ns: int = -1,
) -> tuple[int, ...]:
    """A recorded row."""
    where = lane if submitted_lane is None else submitted_lane
    return (
        *(id, owner, entry(name), kind, phase, flags, lane, where),
        *(start_ns, end_ns, submitted_ns, cpu_ns),
    )


def call(id: int, op: str, start_ns: int, end_ns: int, **more: Any) -> tuple[int, ...]:
    """A recorded call, forward if nothing else is said."""
    return row(id, op, Kind.CALL, start_ns, end_ns, **{"phase": Phase.FORWARD, **more})


@dataclass
class World:
    """What is known of operators. A hooked operator "A" has events `ns::A` around its bracket and
    `ABackward` around its backward; a hooked function's forward event `A` lies inside the bracket.
    An operator without hooks has events `ns::A` and, told by name, `ABackward`."""

    hooked: str = ""
    functions: str = ""
    unhooked: str = ""
    again: tuple[str, ...] = ()
    linked: frozenset[int] = frozenset()
    earlier: Forward = field(default_factory=Forward)

    def customs(self) -> Customs:
        """These operators as `join` takes them."""
        free = {entry(f"ns::{op}"): entry(op) for op in self.unhooked.split()}
        back = {entry(f"{op}Backward"): entry(op) for op in self.unhooked.split()}
        around = {(entry(op), 0): entry(f"ns::{op}") for op in self.hooked.split()}
        for op in (self.hooked + " " + self.functions).split():
            around[entry(op), 1] = entry(f"{op}Backward")
        inside = {(entry(op), 0): entry(op) for op in self.functions.split()}
        again = frozenset(entry(name) for name in self.again)
        return Customs(free, back, around, inside, again=again)

    def join(self, events: Sequence[Line], rows: Iterable[tuple[int, ...]] = ()) -> Found:
        """What comes of these events and rows."""
        known = {"linked": self.linked, "earlier": self.earlier}
        return joined(events, rows, self.customs(), **known)


def joined(
    events: Sequence[Line], rows: Iterable[tuple[int, ...]], customs: Customs, **known: Any
) -> Found:
    """`join` of the lines."""
    recorded = np.array(list(rows), SPAN)
    context = Context(customs, _ids(), entry(DISPATCH), **known)
    return Found(recorded, join(columns(events), recorded, context))


def _ids() -> Callable[[int], Any]:
    given = [FIRST_ID]

    def new_ids(count: int) -> Any:
        given[0] += count
        return np.arange(given[0] - count, given[0])

    return new_ids


@dataclass
class Found:
    """`rows` are all that a session would hold: recorded ones as they were last told."""

    recorded: Rows
    joined: Joined

    def __post_init__(self) -> None:
        told = {int(line["id"]): line for line in self.recorded}
        told.update((int(line["id"]), line) for line in self.joined.rows)
        self.told = told

    def spans(self, name: str) -> list[Any]:
        """Spans of that name by start."""
        found = [line for line in self.told.values() if line["name"] == entry(name)]
        return sorted(found, key=lambda line: int(line["start_ns"]))

    def span(self, name: str) -> Any:
        """The only span of that name."""
        (found,) = self.spans(name)
        return found

    def owner(self, name: str) -> str:
        """The name of the owner of the only span of that name; "" for none."""
        owner = int(self.span(name)["owner"])
        return text_of(int(self.told[owner]["name"])) if owner else ""

    def kind(self, name: str) -> Kind:
        """The kind of the only span of that name."""
        return Kind(int(self.span(name)["kind"]))

    def phase(self, name: str) -> Phase:
        """The phase of the only span of that name."""
        return Phase(int(self.span(name)["phase"]))

    def times(self, name: str) -> list[tuple[int, int]]:
        """(start, end) of the spans of that name."""
        return [(int(line["start_ns"]), int(line["end_ns"])) for line in self.spans(name)]

    def inferred(self, name: str) -> bool:
        """Whether the only span of that name has an owner, or is a call, by inference."""
        return bool(self.span(name)["flags"] & Flag.INFERRED)

    def links(self, kind: LinkKind) -> list[tuple[int, int]]:
        """(source, target) of the links of a kind."""
        return [(source, target) for each, source, target in self.joined.links if each == kind]
