"""Hot lines for a terminal: shares beside the source, as it stands in the file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from opscope.analyse import LineRow, lines
from opscope.model import Session
from opscope.present.plain import as_text
from opscope.present.sources import Source, sources
from opscope.present.text import visible
from opscope.present.units import Unit, unit_for

#: Between two lines shown, so many that were not sampled are shown too, rather than left out.
_GAP = 2
#: Shares from here on are worth a colour.
_WARM, _HOT = 0.05, 0.2
_NONE = (
    "No hot lines: none were asked for (opscope run --lines, or profile(lines=True)), "
    "or no operator ran on the main thread for long enough."
)


def print_lines(
    session: Session, console: Console, *, rows: Sequence[LineRow] | None = None
) -> None:
    """Print the rows (all of `analyse.lines` where none are given), one operator after the other.

    A line of a file that is not here, or not the same, is shown as its number in that file.
    """
    rows = lines(session) if rows is None else rows
    if not rows:
        _print(console, Text(_NONE))
        return
    known = sources(session)
    unit = unit_for(row.ns for row in rows)
    for number, (_, group) in enumerate(groupby(rows, lambda row: (row.key, row.phase))):
        found = list(group)
        if number:
            _print(console, Text())
        _print(console, _title(found[0], console))
        _print_places(console, found, known, unit)


def render_lines(
    session: Session, *, rows: Sequence[LineRow] | None = None, width: int = 120
) -> str:
    """The same as text without colour."""
    return as_text(lambda console: print_lines(session, console, rows=rows), width)


def _title(row: LineRow, console: Console) -> Text:
    unit = unit_for([row.op_ns])
    phase = "" if row.phase == "none" else f" {row.phase}"
    samples = f"{row.op_samples:,} sample" + ("" if row.op_samples == 1 else "s")
    title = Text(visible(row.op, console.encoding) + phase, style="bold")
    title.append(f"  about {unit.show(row.op_ns)} {unit.name} in its own lines, {samples}", "dim")
    return title


def _print_places(
    console: Console, rows: Sequence[LineRow], known: dict[str, Source], unit: Unit
) -> None:
    """The lines by function, the costliest first, each in the order of the file."""
    functions: dict[tuple[str, str], list[LineRow]] = {}
    for row in rows:
        functions.setdefault((row.file, row.function), []).append(row)
    width = len(str(max(row.line for row in rows)))
    head = f"{'share':>8}  {'+-':>5}  {unit.name:>7}  {'line':>{max(width, 4)}}"
    _print(console, Text(head, style="dim"))
    for (file, function), found in functions.items():
        source = known.get(file, Source(()))
        where = f"{visible(function, console.encoding)}  {visible(file, console.encoding)}"
        if not source.lines and source.why:
            where += f" ({source.why})"
        indent = " " * (len(head) + 2)
        _print(console, Text(indent + where, style="cyan"), fold=False)
        _print_function(console, found, source, unit, max(width, 4))


def _print_function(
    console: Console, rows: Sequence[LineRow], source: Source, unit: Unit, width: int
) -> None:
    at = {row.line: row for row in rows}
    before = 0
    for line in sorted(at):
        if source.lines and before:
            between = range(before + 1, line)
            if len(between) > _GAP:
                _print(console, Text(" " * 26 + f"{'...':>{width}}", style="dim"))
            else:
                for quiet in between:
                    _print_line(console, None, quiet, source, unit, width)
        _print_line(console, at[line], line, source, unit, width)
        before = line


def _print_line(
    console: Console, row: LineRow | None, line: int, source: Source, unit: Unit, width: int
) -> None:
    if row is None:
        text, style = Text(" " * 26), "dim"
    else:
        style = "bold red" if row.share >= _HOT else "yellow" if row.share >= _WARM else ""
        share, margin = f"{row.share:.1%}", f"{row.margin:.1%}"
        text = Text(f"{share:>8}  {margin:>5}  {unit.show(row.ns):>7}  ", style=style)
    text.append(f"{line:>{width}}", style="dim")
    code = source.text(line)
    if code is not None:
        text.append("  " + visible(code.expandtabs(4), console.encoding), style=style)
    elif row is not None and row.body_lines and row.body_lines != (line,):
        text.append(f"  from line {', '.join(map(str, row.body_lines))}", style="dim")
    _print(console, text, fold=False)


def _print(console: Console, text: Text, *, fold: bool = True) -> None:
    if not fold:  # source is cut at the edge, never wrapped
        text.truncate(max(console.width, 20), overflow="ellipsis" if _wide(console) else "crop")
    console.print(text, overflow="fold", no_wrap=not fold, crop=False, soft_wrap=not fold)


def _wide(console: Console) -> bool:
    return "utf" in console.encoding.lower()
