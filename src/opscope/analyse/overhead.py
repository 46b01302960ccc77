"""What did recording itself cost, and what would the calls have taken without it?

From the costs that were measured in the process when recording began, see `Process.costs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import UNKNOWN, Attribution, Parts, among, looking_through
from opscope.attribution.totals import totals
from opscope.model import Flag, Kind, Session

Ints = NDArray[np.int64]

#: Which cost is that of which kind of span; what is on a device is recorded by its makers.
_WORDS = {
    Kind.CALL: "call",
    Kind.OP: "op",
    Kind.TASK: "task",
    Kind.WAIT: "wait",
    Kind.DISPATCH: "dispatch",
    Kind.RUNTIME: "runtime",
    Kind.RANGE: "range",
    Kind.STEP: "range",
}
#: What handing over a span cost the lane it was submitted on.
_HANDED_OVER = {Kind.OP: "push", Kind.TASK: "handover"}
_SUBS = (Kind.CALL, Kind.OP, Kind.TASK, Kind.DEVICE)
_CLEAR = (Kind.RANGE, Kind.STEP)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Own cost of all that was recorded: `share` of the wall time that was recorded (None: there
    was none), `events` and what one cost on average, its way into the file included."""

    events: int
    total_ns: int
    per_event_ns: int
    wall_ns: int
    share: float | None


def overhead(session: Session) -> Overhead | None:
    """The own cost of those of the session's processes where it was measured, together; None where
    it was not measured in any."""
    if not any(process.costs for process in session.processes):
        return None
    cost = _Costs(session)
    events = int(cost.recorded.sum())
    total = int((cost.inside + cost.outside + cost.written)[cost.recorded].sum())
    total += int(cost.handed_over.sum())
    known = [number for number, process in enumerate(session.processes) if process.costs]
    pauses = session.pauses[np.isin(session.pauses["process"], known)]
    ran = (session.processes[number] for number in known)
    wall = sum(max(process.end_ns - process.start_ns, 0) for process in ran)
    wall -= int((pauses["end_ns"] - pauses["start_ns"]).sum())
    return Overhead(
        events=events,
        total_ns=total,
        per_event_ns=round(total / events) if events else 0,
        wall_ns=wall,
        share=total / wall if wall > 0 else None,
    )


def corrected(session: Session) -> Session:
    """The same session, whose tables leave out what recording cost. The parts of a call still add
    up exactly, and none falls below nothing. Where costs were not measured nothing changes."""
    return replace(session, corrected=True)


def without_overhead(attribution: Attribution) -> Attribution:
    """The attribution with the cost of recording taken out of the parts of calls and tasks.

    The inside of a span is taken from what it counts as, the outside from the own time of what is
    around it, and of a sub-operator both of all there is in it.
    """
    session, parts, running = attribution.session, attribution.parts, attribution.running
    spans = session.spans
    if not len(parts.rows):
        return attribution
    cost = _Costs(session)
    extra = _handed_over_by(session, attribution, cost)
    within = _sums_below(attribution, cost.inside + cost.outside, extra)

    clear = among(spans, _CLEAR)
    inner = looking_through(running.parent, clear[running.row])[: len(spans)]
    around = np.where(inner >= 0, running.row[inner], -1)
    around[running.asleep] = running.whose
    group = np.full(len(spans), -1, np.int64)
    group[parts.rows] = np.arange(len(parts.rows))
    # Row -1 stands for none here: what it reads is the last row, and is not used.
    home = np.where(around >= 0, group[around], -1)
    mine = (attribution.owner == around) | (spans["kind"][around] == int(Kind.TASK))
    sub = among(spans, _SUBS) & mine
    count = len(parts.rows)

    def per_call(mask: NDArray[np.bool_], values: Ints) -> Ints:
        chosen = np.flatnonzero(mask & (home >= 0))
        return totals(home[chosen], values[chosen], count)

    whole = cost.inside + within
    layers = {
        "sub": sub,
        "wait": among(spans, (Kind.WAIT,)),
        "dispatch": among(spans, (Kind.DISPATCH,)),
        "runtime": among(spans, (Kind.RUNTIME,)),
    }
    layered = np.logical_or.reduce(list(layers.values()))
    # Of an annotation only itself: what is in it counts for itself.
    own = per_call(layered | clear, cost.outside) + per_call(clear, cost.inside)
    own += per_call(~layered & ~clear, cost.outside + whole)
    own += cost.inside[parts.rows] + extra[parts.rows]
    less = {name: per_call(mask, whole) for name, mask in layers.items()}
    return replace(attribution, parts=_reduced(parts, own, less))


class _Costs:
    """Columns, an entry a span, in ns; nothing where it was not recorded live, or not measured."""

    def __init__(self, session: Session) -> None:
        spans = session.spans
        kinds, flags = spans["kind"], spans["flags"]
        of_lane = np.array([lane.process for lane in session.lanes] or [0])
        process = of_lane[spans["lane"]] if len(session.lanes) else np.zeros(len(spans), np.int64)
        self.inside: Ints = np.zeros(len(spans), np.int64)
        self.outside, self.handed_over, self.written = (self.inside.copy() for _ in range(3))
        self.recorded: NDArray[np.bool_] = np.zeros(len(spans), bool)
        # What a framework recorded was not recorded by us.
        live = (flags & int(Flag.INFERRED)) == 0
        handed = live & (spans["submitted_ns"] > 0)
        for number, found in enumerate(session.processes):
            if not found.costs:
                continue
            here = live & (process == number)
            for kind, word in _WORDS.items():
                rows = here & (kinds == int(kind))
                self.recorded |= rows
                self.inside[rows], self.outside[rows] = found.costs.get(word, (0, 0))
            for kind, word in _HANDED_OVER.items():
                rows = handed & here & (kinds == int(kind))
                self.handed_over[rows] = sum(found.costs.get(word, (0, 0)))
            self.written[here] = sum(found.costs.get("write", (0, 0)))


def _handed_over_by(session: Session, attribution: Attribution, cost: _Costs) -> Ints:
    """By row: what handing over its children cost a call, on its own lane."""
    spans, owner = session.spans, attribution.owner
    at_home = owner >= 0
    at_home &= spans["submitted_lane"] == spans["lane"][owner]
    rows = np.flatnonzero(at_home & (cost.handed_over > 0))
    handed: Ints = totals(owner[rows], cost.handed_over[rows], len(spans))
    return handed


def _sums_below(attribution: Attribution, each: Ints, extra: Ints) -> Ints:
    """By row: the cost of all that ran in a span on its lane, and its own extra."""
    running, count = attribution.running, len(each)
    parent, depth, row = running.parent, running.depth, running.row
    below: Ints = np.append(extra, np.zeros(len(row) - count, np.int64))
    each = np.append(each, np.zeros(len(row) - count, np.int64))  # once, where it began
    np.add.at(below, running.whose, each[running.asleep])
    each[running.asleep] = 0
    order = np.argsort(depth, kind="stable")
    levels = np.searchsorted(depth[order], np.arange(int(depth.max(initial=0)) + 2))
    for level in range(len(levels) - 2, 0, -1):
        rows = order[levels[level] : levels[level + 1]]
        np.add.at(below, parent[rows], each[rows] + below[rows])
    return below if len(row) == count else totals(row, below, count)


def _reduced(parts: Parts, own: Ints, less: dict[str, Ints]) -> Parts:
    """The parts less the costs; own time is Python's where that is known, else what it is."""
    found: dict[str, Ints] = {}
    for name in ("python", "native", "sub", "wait", "dispatch", "runtime", "untracked"):
        column = getattr(parts, name)
        found[name] = np.where(
            column == UNKNOWN, UNKNOWN, np.maximum(column - less.get(name, 0), 0)
        )
    rest = own
    for name in ("python", "native", "untracked"):
        column = found[name]
        taken = np.minimum(np.maximum(column, 0), rest)
        found[name] = np.where(column == UNKNOWN, UNKNOWN, column - taken)
        rest = rest - taken
    wall: Ints = np.sum([np.maximum(column, 0) for column in found.values()], axis=0)
    return replace(
        parts,
        wall=wall,
        python=found["python"],
        native=found["native"],
        sub=found["sub"],
        wait=found["wait"],
        dispatch=found["dispatch"],
        runtime=found["runtime"],
        untracked=found["untracked"],
    )
