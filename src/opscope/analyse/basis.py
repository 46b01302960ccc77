"""What every analysis starts from: a session explained, and which operator each span is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.overhead import without_overhead
from opscope.attribution import Attribution, attribute
from opscope.model import Kind, Op, Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """`path` gives for each span, by row, the path of the call it is or else of the call owning it
    (-1: none). The other columns have one entry for each path; `key` is None for a call whose
    operator the session does not know."""

    session: Session
    attribution: Attribution
    path: Ints
    shown: tuple[tuple[str, ...], ...]
    op: tuple[str, ...]
    key: tuple[str | None, ...]
    host: tuple[str | None, ...]
    kind: tuple[str | None, ...]
    site: tuple[str | None, ...]  #: file:line of the definition, where it is known

    def process_ids(self) -> list[int]:
        """The system's process id for each lane."""
        processes = self.session.processes
        return [processes[lane.process].pid for lane in self.session.lanes]


def site(op: Op) -> str | None:
    """Where an operator is defined, as file:line; None where that is not known."""
    return f"{op.file}:{op.line}" if op.file else None


@lru_cache(maxsize=1)
def basis(session: Session) -> Basis:
    """Worked out once for the session last asked about: all tables of one report share it."""
    spans = session.spans
    attribution = attribute(session)
    if session.corrected:
        attribution = without_overhead(attribution)
    paths = attribution.paths
    call = np.where(spans["kind"] == Kind.CALL, np.arange(len(spans)), attribution.owner)
    path = np.where(call >= 0, paths.of_call[call], -1) if len(spans) else call
    owner = {name: op for name, op in zip(session.op_names, session.ops, strict=True)}
    ops = [owner.get(name) for name in paths.name]
    return Basis(
        session=session,
        attribution=attribution,
        path=path,
        shown=tuple(paths.shown(entry, session.names) for entry in range(len(paths.name))),
        op=tuple(
            session.names[name] if op is None else op.name
            for name, op in zip(paths.name, ops, strict=True)
        ),
        key=tuple(None if op is None else op.key for op in ops),
        host=tuple(None if op is None else op.host for op in ops),
        kind=tuple(None if op is None else op.kind for op in ops),
        site=tuple(None if op is None else site(op) for op in ops),
    )
