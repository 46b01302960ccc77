"""What was each single call? One row a call, in the order they began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opscope.analyse.basis import basis
from opscope.analyse.rows import PHASE_WORDS, TIME_KEYS, Timed, single, sub_counts, time_columns
from opscope.model import LinkKind, Session, flag_names


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow(Timed):
    """One call. `start_ns` counts from the start of the session; `process` is the system's id."""

    KEYS: ClassVar[tuple[str, ...]] = (
        *("call", "op", "key", "path", "phase", "parent", "forward_call", "process", "lane"),
        *("start_ns", "subs", "flags"),
        *TIME_KEYS,
    )

    call: int
    op: str
    key: str | None
    path: tuple[str, ...]
    phase: str
    parent: int | None  #: the call that owns this one
    forward_call: int | None  #: of a backward call, where it is known
    process: int
    lane: str
    start_ns: int
    subs: int | None
    flags: tuple[str, ...]


def calls(session: Session) -> tuple[CallRow, ...]:
    """One row for each call, by start."""
    base = basis(session)
    attribution, spans = base.attribution, session.spans
    rows = attribution.calls
    order = np.lexsort((spans["id"][rows], spans["start_ns"][rows]))
    rows = rows[order]
    columns = time_columns(attribution) | {"subs": sub_counts(attribution)}
    times = single({key: column[order] for key, column in columns.items()})
    above = attribution.owner[rows]
    parents = np.where(above >= 0, spans["id"][above], 0).tolist()
    joined = session.links[session.links["kind"] == LinkKind.BACKWARD]
    forward = dict(zip(joined["source"].tolist(), joined["target"].tolist(), strict=True))
    process = base.process_ids()
    words = {flags: tuple(flag_names(flags)) for flags in set(attribution.flags.tolist())}
    begun = (spans["start_ns"][rows] - session.start_ns).tolist()
    answers = []
    for index, (call, path, phase, lane, parent, start_ns, flags) in enumerate(
        zip(
            spans["id"][rows].tolist(),
            base.path[rows].tolist(),
            spans["phase"][rows].tolist(),
            spans["lane"][rows].tolist(),
            parents,
            begun,
            attribution.flags[order].tolist(),
            strict=True,
        )
    ):
        answers.append(
            CallRow(
                call=call,
                op=base.op[path],
                key=base.key[path],
                path=base.shown[path],
                phase=PHASE_WORDS[phase],
                parent=parent or None,
                forward_call=forward.get(call),
                process=process[lane],
                lane=session.lanes[lane].name,
                start_ns=start_ns,
                flags=words[flags],
                **times[index],
            )
        )
    return tuple(answers)
