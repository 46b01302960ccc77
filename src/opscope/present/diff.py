"""A comparison of runs as a table for a terminal, at any width, and what was marked in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from opscope.analyse.compare import ERROR, Change, Comparison
from opscope.present.grid import Column, draw, fit
from opscope.present.plain import as_text
from opscope.present.text import shorten, visible
from opscope.present.units import show_time, unit_for

#: Words for the parts, as in the tables of a report.
PART_WORDS = {"wall": "wall", "sub": "sub-ops"}
#: Characters and plain ones for a change, and its colour.
_ARROWS = {"slower": ("▲", "^"), "faster": ("▼", "v")}
_STYLES = {"slower": "red", "faster": "green", "new": "yellow", "gone": "yellow"}
#: What is shown of the parts, the most telling first.
_RANKS = {"python": 8, "native": 8, "sub": 9, "wait": 9, "untracked": 10, "dispatch": 11}
_LEAST_RANK = 12

Row = tuple[Change, ...]


def print_diff(comparison: Comparison, console: Console) -> None:
    """Print the table, what changed beyond the noise, and what a reader must know.

    Fits the width of the console, takes no name for markup, and says nothing in colour alone.
    """
    plain = _plain(console)
    rows = comparison.rows
    _print(console, Text(_headline(comparison), style="dim"))
    if rows:
        name = Column("operator", _labels(rows, console.encoding), right=False)
        fitted = fit(name, _columns(rows), console.width, bar=True)
        bars = [_verdict(row, fitted.bar, plain) for row in rows] if fitted.bar else None
        _print(console, Text())
        draw(console, name, fitted, bars, ascii_only=plain)
        _print(console, Text())
        _print(console, Text(_legend(comparison, plain), style="dim"))
        if fitted.left_out:
            left_out = ", ".join(fitted.left_out)
            _print(console, Text(f"left out at this width: {left_out}", style="dim"))
    else:
        _print(console, Text("No operator to compare: nothing was recorded, or none was chosen."))
    _print_list(console, comparison)
    for note in comparison.notes:
        line = Text("note  ", style="yellow")
        _print(console, line.append(visible(note, console.encoding), style="default"))


def render_diff(comparison: Comparison, *, width: int = 120) -> str:
    """The same as text without colour, ending with a newline."""
    return as_text(lambda console: print_diff(comparison, console), width)


def sentence(change: Change, encoding: str = "utf-8") -> str:
    """One change in one line: where, which part, by how much, and how sure that is."""
    text = f"{_where(change, encoding)}: {_word(change.part)} {change.verdict}"
    if change.ratio is not None:
        text += f" by {_percent(change.ratio).lstrip('+-')}"
    assert change.diff_ns is not None
    text += f", {_signed_time(change.diff_ns)} a call"
    if change.low_ns is not None and change.high_ns is not None:
        text += f" ({_signed_time(change.low_ns)} to {_signed_time(change.high_ns)})"
    if change.base_ns is not None and change.new_ns is not None:
        text += f", from {show_time(change.base_ns)} to {show_time(change.new_ns)}"
    return text


def _headline(comparison: Comparison) -> str:
    bases, news = comparison.base_runs, comparison.new_runs
    runs = f"{bases} base run{'s' * (bases > 1)} against {news} new"
    if not comparison.rows:
        return runs
    marks = len(comparison.marked)
    many = comparison.tests > 0
    beyond = "beyond the noise" if many else "that few runs can show"
    return f"{runs}: {marks or 'no'} change{'s' * (marks != 1)} {beyond}"


def _legend(comparison: Comparison, plain: bool) -> str:
    up, down = (_ARROWS[word][plain] for word in ("slower", "faster"))
    text = "Times are a call's, means over runs; a column named for a part shows by how much it "
    text += f"grew. {up} slower, {down} faster"
    if comparison.tests:
        text += (
            f", beyond what equal runs differ by: {comparison.tests} parts were judged together, "
            f"for at most {ERROR:.0%} chance of one false mark"
        )
    return text + "."


def _print_list(console: Console, comparison: Comparison) -> None:
    encoding = console.encoding
    heads = [row[0] for row in comparison.rows]
    lines = [
        (sentence(change, encoding), _STYLES[change.verdict or ""]) for change in comparison.marked
    ]
    lines += [
        (f"{_where(head, encoding)}: {_GONE[head.verdict]}", "yellow")
        for head in heads
        if head.verdict in _GONE
    ]
    lines += [
        (f"{_where(head, encoding)}: {_calls(head)} calls", "yellow")
        for head in heads
        if head.verdict not in _GONE and head.base_calls != head.new_calls
    ]
    if lines:
        _print(console, Text())
    for line, style in lines:
        _print(console, Text(line, style=style))


def _where(change: Change, encoding: str) -> str:
    """The path; a backward call's says so itself."""
    again = " (recompute)" if change.phase == "recompute" else ""
    return visible("::".join(change.path), encoding) + again


_GONE = {"new": "only in the new runs", "gone": "only in the base runs"}


def _labels(rows: Sequence[Row], encoding: str) -> tuple[str, ...]:
    texts = ["::".join(row[0].path) for row in rows]
    seen = Counter((text, row[0].phase) for text, row in zip(texts, rows, strict=True))
    told = [
        f"{text} ({row[0].key})" if seen[text, row[0].phase] > 1 else text
        for text, row in zip(texts, rows, strict=True)
    ]
    return tuple(visible(text, encoding) for text in told)


def _columns(rows: Sequence[Row]) -> list[Column]:
    walls = [row[0] for row in rows]
    unit = unit_for([time for wall in walls for time in (wall.base_ns, wall.new_ns)])
    phases = tuple("-" if wall.phase == "none" else wall.phase for wall in walls)
    columns = [
        Column("phase", phases, 6, right=False),
        Column("calls", tuple(_calls(wall) for wall in walls), 5),
        Column("base", tuple(unit.show(wall.base_ns) for wall in walls), 1, unit.name),
        Column("new", tuple(unit.show(wall.new_ns) for wall in walls), 1, unit.name),
        Column("change", tuple(_percent(wall.ratio) for wall in walls), 2),
        Column("by", tuple(_signed(wall.diff_ns, unit.show) for wall in walls), 7, unit.name),
    ]
    if all(phase == "-" for phase in phases):
        del columns[0]
    for at, head in enumerate(rows[0]):
        cells = [row[at] for row in rows]
        if at and any(cell.base_ns or cell.new_ns for cell in cells):
            shown = tuple(_signed(cell.diff_ns, unit.show) for cell in cells)
            rank = _RANKS.get(head.part, _LEAST_RANK)
            columns.append(Column(_word(head.part), shown, rank, unit.name))
    return columns


def _verdict(row: Row, cells: int, plain: bool) -> Text:
    """What is marked, as far as there is room; nothing where all is within the noise."""
    text = Text()
    if row[0].verdict in _GONE:
        return text.append(row[0].verdict, style=_STYLES[row[0].verdict])
    for change in row:
        if change.verdict not in _ARROWS:
            continue
        words = f"{_ARROWS[change.verdict][plain]} {_word(change.part)}"
        longer = f"{words} {_percent(change.ratio)}"
        gap = "  " if text else ""
        room = cells - text.cell_len - len(gap)
        if cell_len(words) > room and text:
            break
        words = longer if cell_len(longer) <= room else shorten(words, room, "~" if plain else "…")
        text.append(gap).append(words, style=_STYLES[change.verdict])
    if not text and any(change.verdict == "not comparable" for change in row):
        text.append("not comparable"[:cells] if cells >= 14 else "too few", style="dim")
    return text


def _calls(change: Change) -> str:
    base, new = (_number(calls) for calls in (change.base_calls, change.new_calls))
    if change.verdict in _GONE:
        return new if change.verdict == "new" else base
    return base if base == new else f"{base} to {new}"


def _number(calls: float) -> str:
    return f"{calls:,.0f}" if calls == int(calls) or calls >= 100 else f"{calls:.1f}"


def _percent(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    if ratio >= 10:
        return f"x{ratio:,.0f}"
    text = f"{ratio - 1:+.0%}"
    return "0%" if text in ("+0%", "-0%") else text


def _signed(value_ns: int | None, show: Callable[[int], str]) -> str:
    if not value_ns:
        return "-" if value_ns is None else "0"
    text = show(abs(value_ns))
    return "~0" if text.startswith("<") else ("+" if value_ns > 0 else "-") + text


def _signed_time(value_ns: int) -> str:
    return _signed(value_ns, show_time)


def _word(part: str) -> str:
    return PART_WORDS.get(part, part)


def _plain(console: Console) -> bool:
    """Whether the console lacks the characters of the table."""
    try:
        "─▲▼…".encode(console.encoding)
    except (LookupError, UnicodeEncodeError):
        return True
    return False


def _print(console: Console, text: Text) -> None:
    console.print(text, overflow="fold")
