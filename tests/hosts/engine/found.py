"""What tests look up in a recorded session, by names; and what must hold for every session."""

from __future__ import annotations

from collections import Counter

import numpy as np

from opscope.analyse import CallRow, calls, span_records
from opscope.model import Kind, Session

PARTS = ("python_ns", "native_ns", "sub_ns", "wait_ns", "dispatch_ns", "runtime_ns", "untracked_ns")


def check(session: Session) -> None:
    """The sum rule to the nanosecond for every call, sane spans, owners that exist."""
    spans = session.spans
    assert len(np.unique(spans["id"])) == len(spans)
    assert (spans["start_ns"] <= spans["end_ns"]).all()
    owners = spans["owner"][spans["owner"] != 0]
    assert np.isin(owners, spans["id"][spans["kind"] == Kind.CALL]).all()
    assert (spans["owner"][spans["kind"] == Kind.RUNTIME] == 0).all()
    for row in calls(session):
        parts = [getattr(row, part) for part in PARTS]
        assert all(part is None or part >= 0 for part in parts), row
        assert row.wall_ns == sum(part or 0 for part in parts), row


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
