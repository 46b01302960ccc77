"""Which operator costs most and why, in words; and the figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opscope.analyse import PART_KEYS, OpRow, SubRow, subs, summary
from opscope.model import Session
from opscope.present.page.operators import outermost, total
from opscope.present.units import show_time

#: What most of an operator's time was, after "79 % of that".
_WHY = {
    "python_ns": "is its own Python",
    "native_ns": "is its own native code",
    "sub_ns": "is in its sub-operators",
    "wait_ns": "it only waited",
    "dispatch_ns": "is the framework's wrapper around it",
    "runtime_ns": "is chores of the runtime and garbage collection",
    "untracked_ns": "is its own time, of which Python and waiting cannot be told apart",
}


@dataclass(frozen=True, slots=True)
class Headline:
    """`op` is the name of the costliest outermost operator, None where there is no call at all.

    `costs` and `why` complete a sentence that begins with it; `sub` is the sub-operator that
    explains most, where sub-operators explain most. Names are as the user's program wrote them.
    """

    op: str | None
    costs: str
    why: str
    sub: str | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its unit and what it is; `hint` says more."""

    value: str
    unit: str
    what: str
    hint: str = ""


def headline(session: Session) -> Headline:
    """The sentence. Shares are of the wall time of all outermost calls."""
    rows = outermost(summary(session))
    if not rows:
        return Headline(None, *_nothing(session))
    families: dict[str, list[OpRow]] = {}
    for row in rows:
        families.setdefault(row.key or f"\0{row.op}", []).append(row)
    costliest = max(families.values(), key=lambda family: sum(row.wall_ns for row in family))
    wall = sum(row.wall_ns for row in costliest)
    whole = sum(row.wall_ns for row in rows)
    calls = sum(row.calls for row in costliest)
    costs = f"{_time(wall)} in {calls:,} call{'s' * (calls != 1)}"
    if len(families) > 1:
        costs += f", {_percent(wall, whole)} of the time in custom operators"
    why, sub = _reason(costliest, subs(session), wall)
    return Headline(costliest[0].op, costs, why, sub)


def _reason(family: Sequence[OpRow], inside: Sequence[SubRow], wall: int) -> tuple[str, str | None]:
    times = total(family)
    key = max(PART_KEYS[1:], key=lambda key: times[key] or 0)
    share = times[key] or 0
    if not share:
        return "", None
    why = f"{'All' if share == wall else _percent(share, wall)} of that {_WHY[key]}"
    if key != "sub_ns":
        return why, None
    nodes = {row.node for row in family}
    largest: dict[str, int] = {}
    for sub in inside:
        if sub.above in nodes and sub.kind != "device":
            largest[sub.name] = largest.get(sub.name, 0) + sub.total_ns
    return why, max(largest, key=lambda name: largest[name], default=None)


def _nothing(session: Session) -> tuple[str, str]:
    if not len(session.spans):
        return "Nothing was recorded", "The file holds no spans"
    if session.ops:
        return "No custom operator was called", f"The file knows {len(session.ops):,}"
    return "No custom operator is in this recording", f"It holds {len(session.spans):,} other spans"


def figures(session: Session) -> tuple[Figure, ...]:
    """The sizes of what was recorded."""
    spans = session.spans
    length = int(spans["end_ns"].max()) - session.start_ns if len(spans) else 0
    rows = summary(session)
    outer = outermost(rows)
    recorded, inside = show_time(max(length, 0)), show_time(sum(row.wall_ns for row in outer))
    used = len({row.key or row.op for row in rows})
    return (
        _timed(recorded, "recorded", "from the first moment to the last"),
        _timed(inside, "in custom operators", "outermost calls, summed over all lanes"),
        Figure(f"{used:,}", "", "custom operator" + "s" * (used != 1)),
        Figure(f"{sum(row.calls for row in rows):,}", "", "calls", "nested ones included"),
        Figure(f"{len(spans):,}", "", "spans", "everything that took time on a lane"),
        Figure(f"{len(session.lanes):,}", "", "lanes", "threads and device streams"),
    )


def _timed(text: str, what: str, hint: str) -> Figure:
    value, unit = text.split(" ")
    return Figure(value, unit.replace("us", "µs"), what, hint)


def _time(value_ns: int) -> str:
    return show_time(value_ns).replace("us", "µs")


def _percent(part: int, whole: int) -> str:
    """A share in whole percents; never 0 or 100 for what is neither."""
    if not whole:
        return "0 %"
    if 0 < 200 * part < whole:
        return "under 1 %"
    if part < whole and 200 * part >= 199 * whole:
        return "over 99 %"
    return f"{(200 * part + whole) // (2 * whole)} %"
