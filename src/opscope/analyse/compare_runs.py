"""One run as a small table: what its calls took on average, an operator, path and phase a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import Basis, basis
from opscope.analyse.compare_match import Identity
from opscope.analyse.rows import PHASE_WORDS, time_columns
from opscope.attribution import Attribution
from opscope.model import Flag, Kind, Op, Process, Session

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: What a call's wall time is made of. `sub` of a report is `sub + nested` here: calls of custom
#: operators inside a call have rows of their own.
PARTS = (
    "wall",
    "python",
    "native",
    "sub",
    "nested",
    "wait",
    "dispatch",
    "runtime",
    "untracked",
)


@dataclass(frozen=True, slots=True)
class Mean:
    """Of some calls: how many, and for each of `PARTS` the mean and the variance in nanoseconds.

    NaN is what no call has measured. What only some have measured counts as nothing in the others,
    as it does in a report's sums.
    """

    calls: int
    mean_ns: tuple[float, ...]
    variance: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunRow:
    """`calls` counts all of them; the means are of those that ended, and without the first."""

    identity: Identity
    op: str
    key: str | None
    host: str | None
    path: tuple[str, ...]
    phase: str
    calls: int
    every: Mean
    later: Mean


@dataclass(frozen=True, slots=True)
class Run:
    """What a comparison keeps of a session. `began_ns` counts from 1970; None: not known."""

    rows: tuple[RunRow, ...]
    began_ns: int | None
    processes: tuple[Process, ...]
    whole: bool


def run_of(session: Session) -> Run:
    """The table of one run."""
    base = basis(session)
    attribution = base.attribution
    count = len(base.op)
    group = attribution.paths.of_call[attribution.calls]
    number = np.bincount(group, minlength=count).tolist()
    columns = _columns(attribution)
    ended = (attribution.flags & Flag.INCOMPLETE) == 0
    start = session.spans["start_ns"][attribution.calls]
    first = _first(group, start, ended)
    every = _means(columns, group, ended, count)
    later = _means(columns, group, ended & ~first, count)
    identities = _identities(session, base)
    rows = tuple(
        RunRow(
            identity=identities[node],
            op=base.op[node],
            key=base.key[node],
            host=base.host[node],
            path=base.shown[node],
            phase=PHASE_WORDS[attribution.paths.phase[node]],
            calls=number[node],
            every=every[node],
            later=later[node],
        )
        for node in range(count)
    )
    began = [_began(process) for process in session.processes]
    known = [moment for moment in began if moment is not None]
    whole = all(process.complete for process in session.processes if process.pid)
    return Run(
        rows=rows,
        began_ns=min(known) if len(known) == len(began) else None,
        processes=session.processes,
        whole=whole and not session.drops["count"].any(),
    )


def _began(process: Process) -> int | None:
    if not process.anchors:
        return None
    clock, wall = process.anchors[0]
    return wall + (process.start_ns - clock if process.start_ns else 0)


def _columns(attribution: Attribution) -> dict[str, Ints]:
    """`PARTS` of each call, -1: not measured. Nested calls are taken out of the sub-operators."""
    times = time_columns(attribution)
    columns = {part: times[f"{part}_ns"] for part in PARTS if part != "nested"}
    nested = np.minimum(_nested(attribution, columns["wall"]), np.maximum(columns["sub"], 0))
    columns["nested"] = nested
    columns["sub"] = np.where(columns["sub"] < 0, columns["sub"], columns["sub"] - nested)
    return columns


def _nested(attribution: Attribution, wall: Ints) -> Ints:
    """For each call the wall time of the calls that it owns and that ran inside it, on its lane."""
    spans, calls, owner = attribution.session.spans, attribution.calls, attribution.owner
    place = np.full(len(spans), -1, np.int64)
    place[calls] = np.arange(len(calls))
    above = owner[calls]
    outer = np.maximum(above, 0)
    inside = (above >= 0) & (spans["lane"][calls] == spans["lane"][outer])
    inside &= spans["kind"][outer] == int(Kind.CALL)
    inside &= spans["start_ns"][calls] < spans["end_ns"][outer]
    taken = np.zeros(len(calls), np.int64)
    np.add.at(taken, place[above[inside]], wall[inside])
    return taken


def _first(group: Ints, start: Ints, ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which call of each group began first, of those that ended."""
    some = np.flatnonzero(ended)
    order = some[np.lexsort((start[some], group[some]))]
    _, place = np.unique(group[order], return_index=True)
    first = np.zeros(len(group), bool)
    first[order[place]] = True
    return first


def _means(
    columns: dict[str, Ints], group: Ints, chosen: NDArray[np.bool_], count: int
) -> list[Mean]:
    group = group[chosen]
    calls = np.bincount(group, minlength=count)
    least = np.maximum(calls, 1)
    mean, variance = np.full((len(PARTS), count), np.nan), np.full((len(PARTS), count), np.nan)
    for number, part in enumerate(PARTS):
        values = columns[part][chosen]
        known = np.bincount(group[values >= 0], minlength=count) > 0
        values = np.maximum(values, 0)
        middle = np.bincount(group, values, minlength=count) / least
        square = np.bincount(group, (values - middle[group]) ** 2, minlength=count)
        mean[number, known] = middle[known]
        several = known & (calls > 1)
        variance[number, several] = square[several] / (calls[several] - 1)
    return [
        Mean(calls=one, mean_ns=tuple(middle), variance=tuple(spread))
        for one, middle, spread in zip(
            calls.tolist(), mean.T.tolist(), variance.T.tolist(), strict=True
        )
    ]


def _identities(session: Session, base: Basis) -> list[Identity]:
    """Who each row is, exactly and ever more loosely, with everything around it."""
    paths = base.attribution.paths
    ops = dict(zip(session.op_names, session.ops, strict=True))
    found: list[Identity] = []
    for node, name in enumerate(paths.name):
        phase, above = paths.phase[node], paths.parent[node]
        steps = _step(ops.get(name), base.op[node])
        outer = found[above] if above >= 0 else ((), (), ())
        exact, loose, shown = (
            (*around, (step, phase)) for around, step in zip(outer, steps, strict=True)
        )
        found.append((exact, loose, shown))
    return found


def _step(op: Op | None, name: str) -> tuple[object, object, object]:
    """Key; the same without the registration number; the name on show."""
    if op is None:
        return name, name, name
    return op.key, (op.host, op.qualified or op.name, op.overload), op.name
