"""What must a reader of the numbers know? Plain sentences about what was lost, cut or not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opscope.analyse.basis import basis
from opscope.analyse.overhead import overhead
from opscope.analyse.summary import OpRow, summary
from opscope.attribution.folds import DEEPEST, LONGEST
from opscope.model import Op, Process, Session

#: A first call is worth a word when it took more than this many times the median.
FIRST_CALL_TIMES = 3

#: How many names a sentence lists before it says how many more there are.
_NAMED = 3

#: Of a longer name only the two ends are told.
_LONGEST = 48

_FLAGS = (
    ("failed", "raised", "raised"),
    ("incomplete", "did not end while recorded: its time so far counts, not its mean",
     "did not end while recorded: their time so far counts, not their mean"),
    ("clamped", "began before recording did: its time counts from there",
     "began before recording did: their time counts from there"),
    ("lossy", "ran while spans were lost: its own time is untracked",
     "ran while spans were lost: their own time is untracked"),
    ("paused", "ran through a pause, which is left out",
     "ran through a pause, which is left out"),
    ("estimated", "split into python and wait with CPU time partly unknown: an estimate",
     "split into python and wait with CPU time partly unknown: an estimate"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """`topic` is one word for what it is about; `text` may hold names as the user's program wrote
    them: escape at the border."""

    topic: str
    text: str


def notes(session: Session) -> tuple[Note, ...]:
    """The notes, what was lost first."""
    rows = summary(session)
    return (
        *_about_overhead(session),
        *_about_processes(session),
        *_about_calls(rows),
        *_about_depth(rows, basis(session).attribution.paths.cut),
        *_about_first_calls(rows),
        *_about_sight(session),
        *_about_unused(session.ops, rows),
        *_about_sites(rows),
    )


def _about_overhead(session: Session) -> Iterator[Note]:
    cost = overhead(session)
    if cost is None or cost.share is None:
        return
    text = f"{_percent(cost.share)} of wall, {_time(cost.per_event_ns)} per event"
    known = sum(bool(process.costs) for process in session.processes)
    if known < len(session.processes):
        text += f", in {known:,} of {len(session.processes):,} processes; of others it is not known"
    if session.corrected:
        text += "; taken out of the parts above"
    if any(sight.host == "torch" for sight in session.sight):
        text += " (what torch's profiler costs is not in it)"
    yield Note("own overhead", text)


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %") if share >= 0.0005 else "<0.1 %"


def _about_processes(session: Session) -> Iterator[Note]:
    for number, process in enumerate(session.processes):
        name = f"process {process.pid}" if process.pid else "the recording"
        mine = session.drops[session.drops["process"] == number]
        if mine["count"].any():
            yield Note(
                "dropped",
                f"{_count(int(mine['count'].sum()), 'span')} of {name} lost for want of room",
            )
        if process.damage:
            yield Note("damaged", f"{name}: {process.damage}")
        elif not process.complete and _recorded(process):
            yield Note("cut short", f"{name}: the recording was not ended in order, or goes on")
        for finding in process.findings:
            first = f" (first at {_short(finding.places[0])})" if finding.places else ""
            yield Note("quality", f"{finding.count:,} {finding.what}{first}")
        for hook in process.broken:
            yield Note("switched off", f"{name}: the hook {hook} failed and was switched off")
        for text in process.notes:
            yield Note("note", f"{name}: {text}" if len(session.processes) > 1 else text)


def _recorded(process: Process) -> bool:
    return process.pid != 0 or process.start_ns != 0


def _about_calls(rows: Sequence[OpRow]) -> Iterator[Note]:
    for flag, one, many in _FLAGS:
        touched: dict[str, int] = {}
        for row in rows:
            if count := int(getattr(row, flag)):
                touched[row.op] = touched.get(row.op, 0) + count
        if touched:
            count = sum(touched.values())
            text = one if count == 1 else many
            yield Note(flag, f"{_count(count, 'call')} of {_listed(list(touched))} {text}")


def _about_depth(rows: Sequence[OpRow], cut: int) -> Iterator[Note]:
    for row in rows:
        if row.folded:
            name, some = _short("::".join(row.path)), _count(row.folded, "call")
            text = (
                f"{name}: {some} of {row.calls:,} lie in others of it, more than {DEEPEST} calls"
                " deep. One row holds them all: what they share counts once, and to the first of"
                " them the later ones are elsewhere"
            )
            yield Note("folded", text)
    if cut:
        yield Note(
            "cut off",
            f"{_count(cut, 'call')} would have more than {LONGEST} names in a path, and begin one"
            " of their own",
        )


def _about_first_calls(rows: Sequence[OpRow]) -> Iterator[Note]:
    for row in sorted(rows, key=lambda row: -(row.first_ns or 0)):
        if row.first_ns is not None and row.p50_ns and row.first_ns > FIRST_CALL_TIMES * row.p50_ns:
            name, times = _short("::".join(row.path)), row.first_ns / row.p50_ns
            took, median = _time(row.first_ns), _time(row.p50_ns)
            text = f"{name}: {took} against a median of {median} ({times:.0f} times)"
            yield Note("first call", text)


def _about_sight(session: Session) -> Iterator[Note]:
    blind = [f"{s.host}: {', '.join(s.misses)}" for s in session.sight if s.misses]
    if blind:
        # Their reasons take lines; `info` has the room.
        yield Note("not seen", f"{'; '.join(blind)} (why: opscope info FILE)")


def _about_unused(ops: Sequence[Op], rows: Sequence[OpRow]) -> Iterator[Note]:
    called = {row.key for row in rows}
    unused = [op.name for op in ops if op.key not in called]
    if unused:
        yield Note("no calls", f"{_listed(unused)}: no call was recorded")


def _about_sites(rows: Sequence[OpRow]) -> Iterator[Note]:
    told: set[str | None] = set()
    for row in rows:
        if row.site is not None and row.key not in told:
            told.add(row.key)
            yield Note("defined", f"{_short(row.op)}: {row.kind}, {row.site}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = ", ".join(map(_short, names[:_NAMED]))
    return f"{shown} and {more} more" if more > 0 else shown


def _short(name: str) -> str:
    """A name that leaves room for the rest of the sentence."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}...{name[-_LONGEST // 2 :]}"


def _time(value_ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value_ns >= size:
            return (
                f"{value_ns / size:.3g} {unit}"
                if value_ns < 1000 * size
                else f"{value_ns // size} {unit}"
            )
    return f"{value_ns} ns"
