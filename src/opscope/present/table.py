"""Reports as tables for a terminal, at any width, with what a reader must know under them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from opscope.analyse import (
    CallRow,
    LaneRow,
    Note,
    OpRow,
    StepRow,
    SubRow,
    calls,
    lanes,
    notes,
    steps,
    subs,
    summary,
)
from opscope.analyse.candidates import candidates
from opscope.errors import UsageError
from opscope.model import Session
from opscope.present import columns as shown
from opscope.present.bars import bar, legend
from opscope.present.grid import Column, Fit, draw, fit
from opscope.present.plain import as_text
from opscope.present.text import Label, shorten, visible
from opscope.present.tree import labelled
from opscope.present.units import show_time

#: What a table has where nobody says how wide it may be.
WIDTH = 120

_ELSEWHERE = "elsewhere: sub-operators and tasks on other threads; not part of the total"

#: So much of a name is told in a sentence.
_NAME_CELLS = 40

#: Notes on one topic beyond this many are counted, not printed.
_NOTES_A_TOPIC = 5


@dataclass(frozen=True, slots=True)
class Report:
    """One kind of report: where rows come from, their keys in JSON, and the columns of a table."""

    rows: Callable[[Session], Sequence[Any]]
    keys: tuple[str, ...]
    title: str
    columns: tuple[shown.Spec, ...]
    order: str  #: in words
    nothing: str  #: said where there are no rows


_NO_CALLS = "No call of a custom operator was recorded, or none was chosen."

#: By what a report can be broken down.
REPORTS = {
    "op": Report(
        *(summary, OpRow.KEYS, "operator", shown.OP),
        *("largest total first, the phases of an operator together", _NO_CALLS),
    ),
    "sub": Report(
        *(subs, SubRow.KEYS, "sub-operator", shown.SUB, "largest total first"),
        "No sub-operator of a custom operator was recorded, or none was chosen.",
    ),
    "call": Report(
        *(calls, CallRow.KEYS, "call of", shown.CALL),
        *("in order of start (slowest first: --sort wall_ns)", _NO_CALLS),
    ),
    "lane": Report(
        *(lanes, LaneRow.KEYS, "lane", shown.LANE, "in the order they were seen"),
        "No thread was recorded.",
    ),
    "step": Report(
        *(steps, StepRow.KEYS, "step", shown.STEP, "in order of start"),
        "No step was recorded: profile.step() or the training loop's own profiler marks them.",
    ),
}


def report_rows(session: Session, by: str = "op") -> tuple[Any, ...]:
    """The rows of one kind of report. Raises UsageError for a kind there is not."""
    if by not in REPORTS:
        raise UsageError(f"no report by {by!r}: choose one of {', '.join(REPORTS)}")
    return tuple(REPORTS[by].rows(session))


def print_report(
    session: Session,
    console: Console,
    *,
    by: str = "op",
    rows: Sequence[Any] | None = None,
    of: int | None = None,
    sort: str | None = None,
) -> None:
    """Print one kind of report; `rows` are those chosen of `report_rows`, all where not given.

    `of` is how many rows there were before a limit was set, `sort` the key they were sorted by.
    Fits the width of the console and takes no name for markup. Notes stand under the table by
    operator.
    """
    rows = report_rows(session, by) if rows is None else rows
    encoding = _encoding(console)
    plain = encoding == "ascii"
    _print(console, Text(_headline(session), style="dim"))
    if not rows:
        _print(console, Text())
        _print(console, Text(_nothing(session, by, encoding)))
    else:
        if by == "op":
            rows, labels = labelled(rows, encoding, ascii_only=plain)
        else:
            labels = tuple(_label(row, encoding) for row in rows)
        name = Column(REPORTS[by].title, (), right=False, labels=labels)
        bars_fit = by in {"op", "call"}
        cells, unmeasured = shown.columns(REPORTS[by].columns, rows, encoding)
        fitted = fit(name, cells, console.width, bar=bars_fit)
        bars = None
        if fitted.bar:
            bars = [bar(row, fitted.bar, ascii_only=plain) for row in rows]
        _print(console, Text())
        draw(console, name, fitted, bars, ascii_only=plain)
        _print(console, Text())
        order = f"sorted by {sort}" if sort else REPORTS[by].order
        if of is not None and of > len(rows):
            order = f"{len(rows):,} of {of:,} rows (--limit {of} shows all), {order}"
        _print(console, Text(order, style="dim"))
        _under(console, fitted, rows, unmeasured, plain)
        if any(getattr(row, "elsewhere_ns", None) for row in rows):
            _print(console, Text(_ELSEWHERE, style="dim"))
    if by == "op":
        _print_notes(console, notes(session), encoding)


def render_report(
    session: Session,
    *,
    by: str = "op",
    rows: Sequence[Any] | None = None,
    width: int = WIDTH,
) -> str:
    """The same as text without colour, ending with a newline."""
    return as_text(lambda console: print_report(session, console, by=by, rows=rows), width)


def print_summary(session: Session, console: Console | None = None) -> None:
    """The default table, on standard output where no console is given."""
    print_report(session, console if console is not None else Console())


def render_summary(session: Session, *, width: int = WIDTH) -> str:
    """The default table as text."""
    return render_report(session, width=width)


def _under(
    console: Console, fitted: Fit, rows: Sequence[Any], unmeasured: Sequence[str], plain: bool
) -> None:
    if fitted.bar:
        _print(console, legend(rows, ascii_only=plain))
    if fitted.left_out:
        what = ", ".join(fitted.left_out)
        _print(console, Text(f"left out at this width: {what}", style="dim"))
    if unmeasured:
        _print(console, Text(f"not measured: {', '.join(unmeasured)}", style="dim"))


def _headline(session: Session) -> str:
    rows: Sequence[OpRow] = summary(session)
    spans = session.spans
    length = int(spans["end_ns"].max()) - session.start_ns if len(spans) else 0
    ops, count = len({row.key or row.op for row in rows}), sum(row.calls for row in rows)
    text = f"{_many(ops, 'custom operator')}, {_many(count, 'call')}, {_many(len(spans), 'span')}"
    if len(session.processes) > 1:
        text += f", {len(session.processes)} processes"
    return f"{text} in {show_time(max(length, 0))}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _nothing(session: Session, by: str, encoding: str) -> str:
    text = REPORTS[by].nothing
    foreign = not any(process.pid for process in session.processes)
    if by in {"op", "sub", "call"} and len(session.spans) and foreign:
        text += " Which names are custom operators can be said with --custom GLOB."
        longest = [shorten(visible(name), _NAME_CELLS) for name in candidates(session)]
        if longest:
            text += f" The longest here: {', '.join(longest)}."
    return visible(text, encoding)


def _label(row: Any, encoding: str) -> Label:
    path = getattr(row, "path", None)
    if path is None:
        path = (str(row.lane if hasattr(row, "busy_ns") else row.step),)
    *around, name = (visible(text, encoding) for text in path)
    return Label(name, tuple(around))


def _print_notes(console: Console, found: Sequence[Note], encoding: str) -> None:
    if not found:
        return
    topics = Counter(note.topic for note in found)
    seen: Counter[str] = Counter()
    margin = max(map(len, topics)) + 2
    _print(console, Text())
    for note in found:
        seen[note.topic] += 1
        more = topics[note.topic] - _NOTES_A_TOPIC
        if seen[note.topic] > _NOTES_A_TOPIC + 1:
            continue
        said = f"and {more} more" if seen[note.topic] > _NOTES_A_TOPIC else note.text
        topic = note.topic if seen[note.topic] == 1 else ""
        room = max(console.width - margin, 20)
        for line in Text(visible(said, encoding)).wrap(console, room, overflow="fold"):
            line.rstrip()
            console.print(Text.assemble((topic.ljust(margin), "yellow"), line))
            topic = ""


def _encoding(console: Console) -> str:
    """What the console can take; anything that has no box characters counts as ascii."""
    try:
        "─█…".encode(console.encoding)
    except (LookupError, UnicodeEncodeError):
        return "ascii"
    return console.encoding


def _print(console: Console, text: Text) -> None:
    for line in text.wrap(console, console.width, overflow="fold") if text else [text]:
        line.rstrip()
        console.print(line)
