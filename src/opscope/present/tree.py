"""Rows by path as an indented tree."""

from __future__ import annotations

from collections.abc import Sequence

from opscope.analyse import OpRow
from opscope.present.text import visible

#: Deeper paths are not indented further.
_DEEPEST = 8


def labelled(rows: Sequence[OpRow], encoding: str) -> tuple[list[OpRow], tuple[str, ...]]:
    """The rows so that each follows the one around it, siblings as they come, and their labels.

    A row whose surroundings are not among the rows stands at the top with its whole path. Operators
    that read the same are told apart by their key.
    """
    chosen = {row.node for row in rows}
    below: dict[int, list[OpRow]] = {}
    for row in rows:
        below.setdefault(row.above if row.above in chosen else -1, []).append(row)
    named: dict[str, set[str | None]] = {}
    for row in rows:
        named.setdefault(row.op, set()).add(row.key)
    ordered: list[OpRow] = []
    labels: list[str] = []
    stack = [(row, 0) for row in reversed(below.get(-1, []))]
    while stack:
        row, depth = stack.pop()
        text = row.path[-1] if row.above in chosen else "::".join(row.path)
        if row.phase == "recompute":
            text += " (recompute)"
        if len(named[row.op]) > 1:
            text += f" ({row.key})"
        ordered.append(row)
        labels.append("  " * min(depth, _DEEPEST) + visible(text, encoding))
        stack.extend((child, depth + 1) for child in reversed(below.get(row.node, [])))
    return ordered, tuple(labels)
