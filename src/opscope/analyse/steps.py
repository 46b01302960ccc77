"""What did custom operators cost in each step of the user's loop?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import basis
from opscope.analyse.rows import TIME_KEYS, Timed, add_up, time_columns
from opscope.model import Kind, Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow(Timed):
    """One step. `step_ns` is its own duration and `start_ns` counts from the start of the session.

    `calls` began in it, on any lane of its process; the times are sums over the outermost of them.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        *("step", "index", "process", "lane", "start_ns", "step_ns", "calls"),
        *TIME_KEYS,
    )

    step: str
    index: int
    process: int
    lane: str
    start_ns: int
    step_ns: int
    calls: int


def steps(session: Session) -> tuple[StepRow, ...]:
    """One row for each step, by start."""
    base = basis(session)
    attribution, spans = base.attribution, session.spans
    rows = np.flatnonzero(spans["kind"] == Kind.STEP)
    rows = rows[np.lexsort((spans["id"][rows], spans["start_ns"][rows]))]
    columns = time_columns(attribution)
    outermost = attribution.owner[attribution.calls] < 0
    home = _process_of(session)
    process = base.process_ids()
    begun = spans["start_ns"][attribution.calls]
    at = home[spans["lane"][attribution.calls]] if len(home) else begun
    answers = []
    for index, row in enumerate(rows.tolist()):
        span = spans[row]
        start, end, lane = int(span["start_ns"]), int(span["end_ns"]), int(span["lane"])
        inside = (begun >= start) & (begun < end) & (at == home[lane])
        times = add_up(columns, np.where(inside & outermost, 0, -1), 1)[0]
        answers.append(
            StepRow(
                step=session.names[span["name"]],
                index=index,
                process=process[lane],
                lane=session.lanes[lane].name,
                start_ns=start - session.start_ns,
                step_ns=max(end - start, 0),
                calls=int(inside.sum()),
                **times,
            )
        )
    return tuple(answers)


def _process_of(session: Session) -> Ints:
    return np.array([lane.process for lane in session.lanes], np.int64)
