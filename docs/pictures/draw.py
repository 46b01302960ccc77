"""Draws the events of a trace as SVG: one row a lane, one box a slice, as a trace viewer would."""

from __future__ import annotations

from html import escape
from typing import Any

WIDTH, LEFT, ROW, GAP = 1180, 130, 22, 14
COLOURS = {
    "call": "#7aa6d8",
    "op": "#8fc48a",
    "wait": "#e3c766",
    "own": "#c3d7ee",
    "failed": "#e08a7e",
}
GREY = "#c9c9c9"


def draw(events: list[dict[str, Any]]) -> str:
    """The events of a trace as SVG; chores are left out."""
    lanes = {
        event["tid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    slices = [e for e in events if e["ph"] == "X" and e["cat"] != "runtime"]
    first = min(float(e["ts"]) for e in slices)
    scale = (WIDTH - LEFT - 10) / max(float(e["ts"]) + float(e["dur"]) - first for e in slices)
    parts, top = [], GAP
    for tid, name in lanes.items():
        mine = [e for e in slices if e["tid"] == tid]
        if not mine:
            continue
        parts.append(f'<text x="4" y="{top + 15}" class="lane">{escape(name)}</text>')
        stack: list[float] = []
        deepest = 0
        for event in mine:
            begin = float(event["ts"])
            while stack and stack[-1] <= begin:
                stack.pop()
            deepest = max(deepest, len(stack))
            x, y = LEFT + (begin - first) * scale, top + len(stack) * ROW
            parts.append(box(event, x, y, max(float(event["dur"]) * scale, 1.2)))
            stack.append(begin + float(event["dur"]))
        top += (deepest + 1) * ROW + GAP
    style = "text{font:12px sans-serif} .lane{font-weight:bold} rect{stroke:#fff;stroke-width:.5}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}">'
    paper = f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>'
    return f"{head}<style>{style}</style>{paper}{''.join(parts)}</svg>\n"


def box(event: dict[str, Any], x: float, y: float, width: float) -> str:
    """One slice, with its name where there is room, and all of it in its tooltip."""
    kind = "failed" if "failed" in event["args"].get("flags", ()) else event["args"].get("kind", "")
    fill = COLOURS.get(kind, GREY)
    name, took = escape(event["name"]), float(event["dur"])
    label = ""
    if width > 7 * len(event["name"]) + 6:
        label = f'<text x="{x + 3:.1f}" y="{y + 15}">{name}</text>'
    return (
        f'<g><title>{name} ({took:.1f} us)</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{ROW - 2}" fill="{fill}"/>{label}</g>'
    )
