"""Which names might be custom operators, where a trace does not say so?"""

from __future__ import annotations

import numpy as np

from opscope.attribution import among
from opscope.attribution.totals import totals
from opscope.model import Kind, Session


def candidates(session: Session, count: int = 3) -> tuple[str, ...]:
    """The names of operators and annotations that took most time in all, the most first."""
    rows = session.spans[among(session.spans, (Kind.OP, Kind.RANGE))]
    took = np.maximum(rows["end_ns"] - rows["start_ns"], 0)
    total = totals(rows["name"].astype(np.int64), took, len(session.names))
    order = np.argsort(-total, kind="stable")[:count].tolist()
    return tuple(session.names[name] for name in order if total[name] > 0)
