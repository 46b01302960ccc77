"""What changed between two sets of runs, beyond what equal runs differ by?

For each operator, path and phase, and each part of its calls' time, the value of a run is the mean
a call: that is what a total is made of, and no rare dear call escapes it. The first call of a run
stays out where all runs have `WARM_CALLS` or more: it also loads and compiles. Runs differ more
than calls within a run do, so the noise is taken from the spread over runs: the t interval of the
difference of the means (`compare_noise`), of each part that matters. With m of them, each interval
is made for an error of `ERROR`/m (Bonferroni; Dunn, JASA 56, 1961): then among equal runs the
chance that the whole table has one mark is at most `ERROR`, however the parts hang together. It
holds for runs made in alternation: drift of the machine widens the intervals then, but moves
neither side.

Only what is a cause is judged. The wall time is the sum of its parts, and `nested` calls have rows
of their own: neither gets a mark, so a slower inner operator is told once, not at all outer ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from opscope.analyse.compare_match import Group, match
from opscope.analyse.compare_noise import interval
from opscope.analyse.compare_notes import notes
from opscope.analyse.compare_runs import PARTS, Mean, Run, RunRow, run_of
from opscope.errors import UsageError
from opscope.model import Session

#: The parts that are judged where nobody says otherwise.
JUDGED = tuple(part for part in PARTS if part not in ("wall", "nested"))
#: The chance of at least one mark in a table of equal runs.
ERROR = 0.05
#: From that many runs a side on, the spread over runs says what is noise.
ENOUGH_RUNS = 5
#: With fewer runs a smaller change is called not comparable: equal runs have differed by 27 %.
FEW_CHANGE = 0.30
#: With fewer runs a change must also be that share of the wall time, and that many of the errors
#: which the spread of calls within the runs explains.
FEW_SHARE, FEW_ERRORS = 0.10, 4.0
#: A part that is less of the wall time is not judged, and a smaller difference is not marked.
SMALL_SHARE = 0.02
#: The first call stays out where every run has at least so many that ended.
WARM_CALLS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One part (or the wall time) of one operator, path and phase. Times are nanoseconds a call.

    `base_ns` and `new_ns` are means over the runs that measured it, `None` where none did;
    `low_ns` and `high_ns` enclose the difference where it was judged over runs. `verdict`:
    "slower" and "faster" beyond the noise, "noise" within it, "not comparable" (too few runs for so
    small a change), "small" (too little of the wall time), "new" and "gone", None: not judged.
    """

    KEYS: ClassVar[tuple[str, ...]] = (
        *("op", "key", "host", "path", "phase", "part", "base_runs", "new_runs"),
        *("base_calls", "new_calls", "base_ns", "new_ns", "diff_ns", "low_ns", "high_ns"),
        *("ratio", "verdict"),
    )

    op: str
    key: str | None
    host: str | None
    path: tuple[str, ...]
    phase: str
    part: str
    base_runs: int  #: how many runs have such calls
    new_runs: int
    base_calls: float  #: calls a run, incomplete ones included; mean over those runs
    new_calls: float
    base_ns: int | None
    new_ns: int | None
    diff_ns: int | None
    low_ns: int | None
    high_ns: int | None
    ratio: float | None  #: new / base; None where either is not measured or the base is 0
    verdict: str | None

    @property
    def marked(self) -> bool:
        """Whether it changed beyond the noise."""
        return self.verdict in ("slower", "faster")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`changes` has one entry for each row and part, the rows with the largest time first.

    `tests`: among how many parts the error was shared out. `notes` are sentences for a reader.
    """

    changes: tuple[Change, ...]
    base_runs: int
    new_runs: int
    tests: int
    notes: tuple[str, ...]

    @property
    def rows(self) -> tuple[tuple[Change, ...], ...]:
        """The changes of one operator, path and phase together, by `PARTS`."""
        size = len(PARTS)
        return tuple(self.changes[at : at + size] for at in range(0, len(self.changes), size))

    @property
    def marked(self) -> tuple[Change, ...]:
        """What changed beyond the noise."""
        return tuple(change for change in self.changes if change.marked)


def compare(
    base: Iterable[Session],
    new: Iterable[Session],
    *,
    op: Collection[str] = (),
    judged: Collection[str] = JUDGED,
    min_effect_ns: int = 0,
) -> Comparison:
    """Compare runs; each session is one. Sessions are read one by one and none is kept.

    `op`: globs, only operators of such a name; `judged`: which of `PARTS` may be marked;
    `min_effect_ns`: a smaller difference a call is never marked. Raises UsageError where a side has
    no run, or for a part there is not.
    """
    if wrong := [part for part in judged if part not in PARTS]:
        raise UsageError(f"no part is called {wrong[0]!r}: there are {', '.join(PARTS)}")
    sides = tuple(tuple(run_of(session) for session in side) for side in (base, new))
    if not all(sides):
        raise UsageError("each side needs at least one run")
    runs = [*sides[0], *sides[1]]
    groups = match([[row.identity for row in run.rows] for run in runs])
    pairs = [_Pair(group, runs, len(sides[0])) for group in groups]
    pairs = [pair for pair in pairs if _named(pair.shown.op, op)]
    pairs.sort(key=lambda pair: -pair.total_ns)
    tests = sum(pair.judgeable(part) for pair in pairs for part in judged if pair.many)
    found = tuple(
        _change(pair, part, part in judged, ERROR / max(tests, 1), min_effect_ns)
        for pair in pairs
        for part in PARTS
    )
    few = min(map(len, sides)) < ENOUGH_RUNS
    return Comparison(
        changes=found,
        base_runs=len(sides[0]),
        new_runs=len(sides[1]),
        tests=tests,
        notes=(*_few(few, sides), *notes(*sides)),
    )


def regressions(
    comparison: Comparison, max_increase: float, *, shifts: bool = True
) -> tuple[Change, ...]:
    """What became slower beyond the noise, by more than that share (0.1: a tenth).

    With `shifts` a part that grew while others of the same calls shrank, beyond the noise and by
    more than half as much, is none: time went from one part to another.
    """
    found = []
    for row in comparison.rows:
        saved = -sum(change.diff_ns or 0 for change in row if change.verdict == "faster")
        for change in row:
            if change.verdict != "slower" or change.diff_ns is None:
                continue
            over = change.ratio is None or change.ratio > 1 + max_increase
            if over and not (shifts and 2 * saved > change.diff_ns):
                found.append(change)
    return tuple(found)


def _few(few: bool, sides: Sequence[Sequence[Run]]) -> tuple[str, ...]:
    if not few:
        return ()
    counts = " and ".join(str(len(side)) for side in sides)
    return (
        f"{counts} runs are too few to tell the noise between runs: changes under "
        f"{FEW_CHANGE:.0%} are not comparable; make {ENOUGH_RUNS} a side, in alternation",
    )


def _named(name: str, globs: Collection[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


class _Pair:
    """The rows of one operator, path and phase on both sides, and their means run by run."""

    def __init__(self, group: Group, runs: Sequence[Run], bases: int) -> None:
        rows = {run: runs[run].rows[number] for run, number in sorted(group.items())}
        self.base = [row for run, row in rows.items() if run < bases]
        self.new = [row for run, row in rows.items() if run >= bases]
        self.shown: RunRow = (self.new or self.base)[0]
        self.many = min(len(self.base), len(self.new)) >= ENOUGH_RUNS
        warm = all(row.every.calls >= WARM_CALLS for row in rows.values())
        self.means = tuple(
            [row.later if warm else row.every for row in side] for side in (self.base, self.new)
        )
        self.total_ns = max(map(self._total, (self.base, self.new), self.means))

    @staticmethod
    def _total(rows: Sequence[RunRow], means: Sequence[Mean]) -> float:
        """The wall time of a run's calls; 0 where no call ended."""
        totals = [row.calls * mean.mean_ns[0] for row, mean in zip(rows, means, strict=True)]
        return _mean([total for total in totals if not math.isnan(total)]) or 0.0

    def values(self, part: str) -> tuple[list[float], list[float]]:
        """The mean a call of each run that measured it, in nanoseconds, for both sides."""
        at = PARTS.index(part)
        base, new = (
            [mean.mean_ns[at] for mean in side if not math.isnan(mean.mean_ns[at])]
            for side in self.means
        )
        return base, new

    def wall_ns(self) -> float:
        """The mean over both sides: what shares refer to. It favours neither side."""
        base, new = self.values("wall")
        return ((_mean(base) or 0.0) + (_mean(new) or 0.0)) / 2

    def matters(self, part: str) -> bool:
        """Whether both sides measured it, and it is more than a speck of the wall time."""
        base, new = (_mean(side) for side in self.values(part))
        if base is None or new is None:
            return False
        return base + new > 0 and (base + new) / 2 >= SMALL_SHARE * self.wall_ns()

    def judgeable(self, part: str) -> bool:
        """Whether its spread over runs is known as well."""
        return self.matters(part) and min(map(len, self.values(part))) >= ENOUGH_RUNS


def _change(pair: _Pair, part: str, judged: bool, error: float, min_effect_ns: int) -> Change:
    values = pair.values(part)
    base, new = (_mean(side) for side in values)
    apart = None if base is None or new is None else new - base
    low: float | None = None
    high: float | None = None
    verdict: str | None = None
    if not pair.base or not pair.new:
        verdict = "gone" if pair.base else "new"
    elif judged and apart is not None and base is not None:
        if not pair.matters(part):
            verdict = "small"
        elif pair.judgeable(part):
            _, low, high = interval(*values, error)
            beyond = (low > 0 or high < 0) and abs(apart) >= SMALL_SHARE * pair.wall_ns()
            verdict = _direction(apart) if beyond else "noise"
        else:
            verdict = _direction(apart) if _plain(pair, part, base, apart) else "not comparable"
        if abs(apart) < min_effect_ns and verdict in ("slower", "faster"):
            verdict = "noise"
    shown = pair.shown
    return Change(
        op=shown.op,
        key=shown.key,
        host=shown.host,
        path=shown.path,
        phase=shown.phase,
        part=part,
        base_runs=len(pair.base),
        new_runs=len(pair.new),
        base_calls=_mean([row.calls for row in pair.base]) or 0.0,
        new_calls=_mean([row.calls for row in pair.new]) or 0.0,
        base_ns=_whole(base),
        new_ns=_whole(new),
        diff_ns=_whole(apart),
        low_ns=_whole(low),
        high_ns=_whole(high),
        ratio=None if not base or new is None else new / base,
        verdict=verdict,
    )


def _plain(pair: _Pair, part: str, base: float, apart: float) -> bool:
    """Whether few runs show it nevertheless: large, in every run, and no matter of single calls."""
    of_base, of_new = pair.values(part)
    separate = max(of_base) < min(of_new) or max(of_new) < min(of_base)
    large = abs(apart) >= FEW_CHANGE * base and abs(apart) >= FEW_SHARE * pair.wall_ns()
    within = math.sqrt(sum(_within(side, PARTS.index(part)) for side in pair.means))
    return separate and large and abs(apart) > FEW_ERRORS * within


def _within(side: Sequence[Mean], at: int) -> float:
    """The variance of a side's mean that the spread of calls within its runs explains."""
    each = [mean.variance[at] / mean.calls for mean in side if not math.isnan(mean.variance[at])]
    return math.fsum(each) / len(side) ** 2


def _direction(apart: float) -> str:
    return "slower" if apart > 0 else "faster"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
