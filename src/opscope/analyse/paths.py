"""Which operators called which, as a tree of paths with their times."""

from __future__ import annotations

from dataclasses import dataclass

from opscope.analyse.subs import SubRow, subs
from opscope.analyse.summary import OpRow, summary
from opscope.model import Session


@dataclass(frozen=True, slots=True)
class PathNode:
    """One path, with what it calls below it, the largest first. Nanoseconds, summed over its calls.

    `own_ns` is what is not in sub-operators on the same lane. Where sub-operators run on other
    lanes the children may add up to more than their parent. A sub-operator inside another one
    stands beside it, so of leaves `own_ns` is what adds up.
    """

    name: str
    key: str | None
    kind: str
    phase: str
    calls: int
    inclusive_ns: int
    own_ns: int
    children: tuple[PathNode, ...] = ()


def paths(session: Session) -> tuple[PathNode, ...]:
    """The outermost operators; below each its nested calls and, as leaves, other sub-operators."""
    below: dict[int, list[PathNode]] = {}
    for leaf in subs(session):
        if leaf.kind != "call":
            below.setdefault(leaf.above, []).append(_leaf(leaf))
    # A path is always numbered after the one around it, so going backwards meets children first.
    for row in sorted(summary(session), key=lambda row: -row.node):
        below.setdefault(row.above, []).append(_call(row, below.pop(row.node, [])))
    return _largest_first(below.get(-1, []))


def _leaf(row: SubRow) -> PathNode:
    return PathNode(row.name, None, row.kind, row.phase, row.count, row.total_ns, row.self_ns)


def _call(row: OpRow, children: list[PathNode]) -> PathNode:
    return PathNode(
        name=row.path[-1],
        key=row.key,
        kind="call",
        phase=row.phase,
        calls=row.calls,
        inclusive_ns=row.wall_ns,
        own_ns=row.wall_ns - (row.sub_ns or 0),
        children=_largest_first(children),
    )


def _largest_first(nodes: list[PathNode]) -> tuple[PathNode, ...]:
    return tuple(sorted(nodes, key=lambda node: (-node.inclusive_ns, node.name, node.kind)))
