"""The tree of paths as data for the icicle, with what each call's own time was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opscope.analyse import PART_KEYS, OpRow, PathNode, paths, summary
from opscope.model import Session

#: Tiles beyond the largest so many are counted and left out.
LIMIT = 4_000

#: The parts of a call that are not below it as tiles of their own.
OWN_KEYS = tuple(key for key in PART_KEYS[1:] if key != "sub_ns")

Tile = dict[str, Any]


def icicle(session: Session, limit: int = LIMIT) -> Tile:
    """`roots` as nested tiles, the keys of their `own` parts, and how many were `left_out`.

    A tile's `width` is its inclusive time, or what is below it where that is more, as sub-operators
    on other lanes can be. Nanoseconds; None is what was not measured.
    """
    below: dict[int, list[OpRow]] = {}
    for row in summary(session):
        below.setdefault(row.above, []).append(row)
    roots = [_tile(node, None, below) for node in paths(session)]
    every = list(_all(roots))
    # In the order of the tree, so of equals the outer one stays and its content goes first.
    kept = {id(tile) for tile in sorted(every, key=lambda tile: -tile["width"])[:limit]}
    return {
        "own": list(OWN_KEYS),
        "roots": _prune(roots, kept),
        "left_out": max(len(every) - limit, 0),
    }


def _tile(node: PathNode, around: OpRow | None, below: dict[int, list[OpRow]]) -> Tile:
    tile: Tile = {
        "name": node.name,
        "kind": node.kind,
        "part": _part(node, around),
        "phase": node.phase,
        "calls": node.calls,
        "inclusive": node.inclusive_ns,
        "own_ns": node.own_ns,
        "width": node.own_ns,
        "own": None,
        "below": [],
    }
    if node.kind != "call":
        return tile
    row = _row_of(node, below.get(around.node if around else -1, []))
    tile["own"] = [getattr(row, key) for key in OWN_KEYS]
    tile["below"] = [_tile(child, row, below) for child in node.children]
    inside = sum(child["width"] for child in tile["below"])
    tile["width"] = max(node.inclusive_ns, node.own_ns + inside)
    return tile


def _part(node: PathNode, around: OpRow | None) -> str | None:
    """Which part of the time around it a tile stands for; None for a call, which is many."""
    if node.kind == "call":
        return None
    if node.kind == "device":
        return "device"
    beside = around is not None and not around.sub_ns and bool(around.elsewhere_ns)
    return "elsewhere" if beside or node.kind == "task" else "sub"


def _row_of(node: PathNode, rows: list[OpRow]) -> OpRow:
    """The row a node was made of, taken out so that an equal twin gets the next."""
    for place, row in enumerate(rows):
        if (row.path[-1], row.key, row.phase, row.calls, row.wall_ns) == (
            *(node.name, node.key, node.phase, node.calls, node.inclusive_ns),
        ):
            return rows.pop(place)
    raise LookupError(f"no row for the path {node.name!r}")


def _all(tiles: Sequence[Tile]) -> Iterator[Tile]:
    for tile in tiles:
        yield tile
        yield from _all(tile["below"])


def _prune(tiles: Sequence[Tile], kept: set[int]) -> list[Tile]:
    return [{**tile, "below": _prune(tile["below"], kept)} for tile in tiles if id(tile) in kept]
