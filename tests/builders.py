"""Sessions from terse lines, for tests: `session([span("A", CALL, 0, 100), ...])`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opscope.model import (
    DROP,
    LINK,
    PAUSE,
    SPAN,
    Kind,
    Lane,
    LinkKind,
    Op,
    Phase,
    Process,
    Session,
    Sight,
)


@dataclass(frozen=True)
class Line:
    """One span before its name and lane are numbers. `name` may be an `Op`."""

    id: int
    name: str | Op
    kind: Kind
    start_ns: int
    end_ns: int
    owner: int = 0
    lane: str = "main"
    phase: Phase = Phase.NONE
    flags: int = 0
    submitted_ns: int = 0
    submitted_lane: str | None = None
    cpu_ns: int = -1


def span(id: int, name: str | Op, kind: Kind, start_ns: int, end_ns: int, **more: Any) -> Line:
    """A line; `more` are its other fields."""
    return Line(id, name, kind, start_ns, end_ns, **more)


def op(name: str, **more: Any) -> Op:
    """A custom operator of the host "python"."""
    return Op(**{"host": "python", "kind": "function", "name": name, **more})


def session(
    lines: Iterable[Line],
    *,
    ops: Sequence[Op] = (),
    lanes: Sequence[Lane | str] = (),
    links: Sequence[tuple[LinkKind, int, int]] = (),
    pauses: Sequence[tuple[int, int, int]] = (),
    drops: Sequence[tuple[int, int, int, int]] = (),
    sight: Sequence[Sight] | None = None,
    processes: Sequence[Process] = (Process(pid=41, complete=True),),
) -> Session:
    """A session of these spans. Operators, names and lanes they mention are added as they come.

    Calls named by a text become calls of the operator `op(text)`. Without `sight`, waits and
    devices count as seen by the host "python".
    """
    lines = list(lines)
    every = list(ops)
    for line in lines:
        if line.kind == Kind.CALL:
            made = line.name if isinstance(line.name, Op) else op(line.name)
            if made not in every:
                every.append(made)
    names = [made.name for made in every]
    plain: dict[str, int] = {}
    tables = [lane if isinstance(lane, Lane) else Lane(lane) for lane in lanes]
    places = {lane.name: number for number, lane in enumerate(tables)}

    def name_of(line: Line) -> int:
        if line.kind == Kind.CALL:
            return every.index(line.name if isinstance(line.name, Op) else op(line.name))
        text = line.name if isinstance(line.name, str) else line.name.name
        if text not in plain:
            plain[text] = len(names)
            names.append(text)
        return plain[text]

    def lane_of(name: str) -> int:
        if name not in places:
            places[name] = len(tables)
            tables.append(Lane(name, thread=1000 + len(tables)))
        return places[name]

    rows = [
        (
            *(line.id, line.owner, name_of(line), line.kind, line.phase, line.flags),
            *(lane_of(line.lane), lane_of(line.submitted_lane or line.lane)),
            *(line.start_ns, line.end_ns, line.submitted_ns, line.cpu_ns),
        )
        for line in lines
    ]
    return Session(
        spans=np.array(rows, SPAN),
        names=tuple(names),
        lanes=tuple(tables),
        links=np.array([tuple(map(int, link)) for link in links], LINK),
        ops=tuple(every),
        op_names=tuple(range(len(every))),
        pauses=np.array(list(pauses), PAUSE),
        drops=np.array(list(drops), DROP),
        sight=(Sight("python", sees=("all waits", "device")),) if sight is None else tuple(sight),
        processes=tuple(processes),
    )
