"""What tests look up in a recorded session, by names."""

from __future__ import annotations

from collections import Counter

import numpy as np

from opscope.analyse import CallRow, calls, span_records
from opscope.model import Kind, Session


def rows(session: Session, op: str, phase: str | None = None) -> list[CallRow]:
    """The calls of an operator, by their start."""
    return [r for r in calls(session) if r.op == op and phase in (None, r.phase)]


def owned(session: Session, call: CallRow) -> Counter[str]:
    """Names and counts of what one call itself owns: operators and calls."""
    spans = session.spans
    mine = spans[(spans["owner"] == call.call) & np.isin(spans["kind"], (Kind.OP, Kind.CALL))]
    return Counter(session.names[name] for name in mine["name"])


def free(session: Session) -> Counter[str]:
    """Names and counts of the operators that belong to no call."""
    return Counter(
        record["name"]
        for record in span_records(session)
        if not record["owner"] and record["kind"] == "op"
    )


def kinds(session: Session) -> Counter[str]:
    """How many spans there are of each kind."""
    return Counter(record["kind"] for record in span_records(session))


def flags(session: Session, op: str) -> list[tuple[str, ...]]:
    """The flags of each call of an operator."""
    return [row.flags for row in rows(session, op)]
