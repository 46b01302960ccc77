"""Rows by path as a tree: each below the one around it, with lines that show the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opscope.analyse import OpRow
from opscope.present.text import Label, visible

#: Deeper paths are not indented further.
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class _Lines:
    """How a tree is drawn: to a row with others after it, to the last one, and past both."""

    between: str
    last: str
    on: str
    off: str = "  "


_DRAWN = _Lines("├ ", "└ ", "│ ")
_PLAIN = _Lines("|-", "`-", "| ")


def labelled(
    rows: Sequence[OpRow], encoding: str, *, ascii_only: bool = False
) -> tuple[list[OpRow], tuple[Label, ...]]:
    """The rows so that each follows the one around it, siblings as they come, and their labels.

    A row whose surroundings are not among the rows stands at the top with its whole path. Operators
    that read the same are told apart by their key.
    """
    lines = _PLAIN if ascii_only else _DRAWN
    chosen = {row.node for row in rows}
    below: dict[int, list[OpRow]] = {}
    for row in rows:
        below.setdefault(row.above if row.above in chosen else -1, []).append(row)
    named: dict[str, set[str | None]] = {}
    for row in rows:
        named.setdefault(row.op, set()).add(row.key)
    ordered: list[OpRow] = []
    labels: list[Label] = []
    stack = [(row, "", "") for row in reversed(below.get(-1, []))]
    while stack:
        row, lead, margin = stack.pop()
        text = row.path[-1]
        if row.phase == "recompute":
            text += " (recompute)"
        if len(named[row.op]) > 1:
            text += f" ({row.key})"
        around = () if row.above in chosen else row.path[:-1]
        ordered.append(row)
        labels.append(
            Label(visible(text, encoding), tuple(visible(n, encoding) for n in around), lead)
        )
        children = below.get(row.node, [])
        for place, child in enumerate(reversed(children)):
            if len(margin) >= 2 * _DEEPEST:
                stack.append((child, margin, margin))
            elif place == 0:
                stack.append((child, margin + lines.last, margin + lines.off))
            else:
                stack.append((child, margin + lines.between, margin + lines.on))
    return ordered, tuple(labels)
