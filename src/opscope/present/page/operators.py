"""The table of operators as data: one entry for each operator at one place, its phases inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opscope.analyse import TIME_KEYS, OpRow, SubRow, subs, summary
from opscope.analyse.spread import CallSpread, call_spreads
from opscope.model import Session

#: Operators beyond the costliest so many are counted and left out.
LIMIT = 1_000
#: Sub-operators of one phase that are listed; the others are summed up.
SUBS = 12

Row = dict[str, Any]


def operators(session: Session, limit: int = LIMIT) -> Row:
    """`rows`, the costliest first, and how many were `left_out` with what wall time.

    Times are nanoseconds in the order of `keys`; None is what was not measured.
    """
    families = _families(summary(session))
    inside: dict[int, list[SubRow]] = {}
    for row in subs(session):
        inside.setdefault(row.above, []).append(row)
    spreads = call_spreads(session)
    rest = families[limit:]
    return {
        "keys": list(TIME_KEYS),
        "rows": [_entry(family, inside, spreads) for family in families[:limit]],
        "left_out": len(rest),
        "left_out_ns": sum(row.wall_ns for family in rest for row in family),
    }


def outermost(rows: Iterable[OpRow]) -> list[OpRow]:
    """The rows whose times are in no other row."""
    return [row for row in rows if row.above < 0]


def total(rows: Sequence[OpRow]) -> dict[str, int | None]:
    """The times of all rows together; None where none of them was measured."""
    answer: dict[str, int | None] = {}
    for key in TIME_KEYS:
        known = [value for row in rows if (value := getattr(row, key)) is not None]
        answer[key] = sum(known) if known else None
    return answer


def _families(rows: Sequence[OpRow]) -> list[list[OpRow]]:
    """The phases of one operator at one place, the costliest operator first."""
    by_node = {row.node: row for row in rows}
    families: dict[tuple[str, ...], list[OpRow]] = {}
    for row in rows:
        families.setdefault(_place(row, by_node), []).append(row)
    return sorted(families.values(), key=lambda family: -sum(row.wall_ns for row in family))


def _place(row: OpRow, by_node: dict[int, OpRow]) -> tuple[str, ...]:
    """The identities of the operators around it and its own, whatever their phases."""
    chain: list[str] = []
    at: OpRow | None = row
    while at is not None:
        chain.append(at.key or f"\0{at.op}")
        at = by_node.get(at.above)
    return tuple(reversed(chain))


def _entry(
    family: Sequence[OpRow], inside: dict[int, list[SubRow]], spreads: Sequence[CallSpread]
) -> Row:
    first = min(family, key=lambda row: _ORDER.get(row.phase, 9))
    times = total(family)
    ended = [(row.mean_ns, row.calls - row.incomplete) for row in family if row.mean_ns is not None]
    number = sum(count for _, count in ended)
    return {
        "name": first.op,
        "path": list(first.path[:-1]),
        "host": first.host,
        "kind": first.kind,
        "site": first.site,
        "calls": sum(row.calls for row in family),
        "failed": sum(row.failed for row in family),
        "incomplete": sum(row.incomplete for row in family),
        "times": [times[key] for key in TIME_KEYS],
        "mean": round(sum(mean * count for mean, count in ended) / number) if number else None,
        "max": max((row.max_ns for row in family if row.max_ns is not None), default=None),
        "phases": [
            _phase(row, inside.get(row.node, []), spreads[row.node])
            for row in sorted(family, key=lambda row: _ORDER.get(row.phase, 9))
        ],
    }


_ORDER = {"none": 0, "forward": 1, "recompute": 2, "backward": 3}


def _phase(row: OpRow, inside: Sequence[SubRow], spread: CallSpread) -> Row:
    return {
        "phase": row.phase,
        "key": row.key,
        "name": row.path[-1],
        "calls": row.calls,
        "subs": row.subs,
        "failed": row.failed,
        "incomplete": row.incomplete,
        "estimated": row.estimated,
        "times": [getattr(row, key) for key in TIME_KEYS],
        "mean": row.mean_ns,
        "p50": row.p50_ns,
        "p95": row.p95_ns,
        "max": row.max_ns,
        "first": row.first_ns,
        "edges": list(spread.edges_ns),
        "counts": list(spread.counts),
        "slowest": [[s.call, s.start_ns, s.wall_ns, s.lane] for s in spread.slowest],
        "inside": [
            [sub.name, sub.kind, sub.count, sub.total_ns, sub.self_ns, sub.mean_ns, sub.max_ns]
            for sub in inside[:SUBS]
        ],
        "inside_left_out": max(len(inside) - SUBS, 0),
        "inside_left_out_ns": sum(sub.total_ns for sub in inside[SUBS:]),
    }
