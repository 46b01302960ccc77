"""The phases of an operator stand together, in the place of their sum; its site is told."""

from __future__ import annotations

from tests.builders import op, session, span

from opscope.analyse import notes, summary
from opscope.model import Kind, Phase, Session


def trained() -> Session:
    """One operator that costs most forward, another that costs most in all."""
    back, forth = Phase.BACKWARD, Phase.FORWARD
    split = op("split", kind="custom_op", file="ops.py", line=12)
    return session(
        [
            span(1, "once", Kind.CALL, 0, 50, phase=forth),
            span(2, split, Kind.CALL, 100, 140, phase=forth),
            span(3, split, Kind.CALL, 200, 245, phase=back),
            span(4, split, Kind.CALL, 210, 212, owner=3, phase=Phase.RECOMPUTE),
        ]
    )


def test_by_operator_then_by_phase() -> None:
    rows = [(row.op, row.phase, row.wall_ns) for row in summary(trained()) if row.above < 0]
    assert rows == [("split", "backward", 45), ("split", "forward", 40), ("once", "forward", 50)]


def test_kind_and_site() -> None:
    rows = {row.op: (row.kind, row.site) for row in summary(trained())}
    assert rows == {"split": ("custom_op", "ops.py:12"), "once": ("function", None)}
    told = [note.text for note in notes(trained()) if note.topic == "defined"]
    assert told == ["split: custom_op, ops.py:12"]
