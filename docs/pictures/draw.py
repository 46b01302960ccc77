"""Draws the events of a trace as SVG: one row a lane, one box a slice, as a trace viewer would."""

from __future__ import annotations

from html import escape
from typing import Any

WIDTH, LEFT, ROW, GAP = 1180, 130, 22, 14
#: What a box shows, its colour, and what the legend says of it.
COLOURS = {
    "call": ("#7aa6d8", "call of a custom operator"),
    "failed": ("#e08a7e", "call that raised"),
    "own": ("#c3d7ee", "its own time"),
    "wait": ("#e3c766", "waiting"),
    "dispatch": ("#c9c9c9", "wrapper"),
    "op": ("#8fc48a", "operator, named after the calls that caused it"),
}
STYLE = "text{font:12px sans-serif} .lane{font-weight:bold} rect{stroke:#fff;stroke-width:.5}"


def draw(events: list[dict[str, Any]]) -> str:
    """The events of a trace as SVG; chores are left out."""
    lanes = {
        event["tid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    slices = [e for e in events if e["ph"] == "X" and e["cat"] != "runtime"]
    first = min(edges(e)[0] for e in slices)
    scale = (WIDTH - LEFT - 10) / max(edges(e)[1] - first for e in slices)
    parts, top = [legend()], ROW + 2 * GAP
    for tid, name in lanes.items():
        mine = [e for e in slices if e["tid"] == tid]
        if not mine:
            continue
        parts.append(f'<text x="4" y="{top + 15}" class="lane">{escape(name)}</text>')
        stack: list[int] = []
        deepest = 0
        for event in mine:
            begin, end = edges(event)
            while stack and stack[-1] <= begin:
                stack.pop()
            deepest = max(deepest, len(stack))
            x, y = LEFT + (begin - first) * scale, top + len(stack) * ROW
            parts.append(box(event, x, y, max((end - begin) * scale, 1.2)))
            stack.append(end)
        top += (deepest + 1) * ROW + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}">'
    paper = f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>'
    return f"{head}<style>{STYLE}</style>{paper}{''.join(parts)}</svg>\n"


def edges(event: dict[str, Any]) -> tuple[int, int]:
    """Start and end in ns. As fractions of a microsecond they would not meet where slices do."""
    begin = round(float(event["ts"]) * 1000)
    return begin, begin + round(float(event["dur"]) * 1000)


def legend() -> str:
    """What the colours stand for, in one line."""
    parts, x = [], LEFT
    for fill, words in COLOURS.values():
        parts.append(f'<rect x="{x}" y="{GAP}" width="14" height="14" fill="{fill}"/>')
        parts.append(f'<text x="{x + 19}" y="{GAP + 11}">{words}</text>')
        x += 40 + round(6.5 * len(words))
    return "".join(parts)


def box(event: dict[str, Any], x: float, y: float, width: float) -> str:
    """One slice, with its name where there is room, and all of it in its tooltip."""
    kind = "failed" if "failed" in event["args"].get("flags", ()) else event["args"]["kind"]
    fill, _ = COLOURS[kind]
    name, took = escape(event["name"]), float(event["dur"])
    label = ""
    if width > 7 * len(event["name"]) + 6:
        label = f'<text x="{x + 3:.1f}" y="{y + 15}">{name}</text>'
    return (
        f'<g><title>{name} ({took:.1f} us)</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{ROW - 2}" fill="{fill}"/>{label}</g>'
    )
