"""A table that fits: columns are left out from the least important on until it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from opscope.present.text import pad, shorten

#: Blanks between columns.
_GAP = 2
#: The first column gets at least this much of a wide table before columns are left out.
_NAME = 16
#: What is drawn at the end of a line has at least and at most this many cells.
BAR_CELLS = (10, 28)
#: Columns of at least this rank are left out before the bar is.
_BAR_RANK = 11


@dataclass(frozen=True, slots=True)
class Column:
    """`cells` are ready to show. Of two columns the one of higher `rank` is left out first."""

    title: str
    cells: tuple[str, ...]
    rank: int = 0
    unit: str = ""
    right: bool = True
    style: str = ""

    @property
    def width(self) -> int:
        """In terminal cells."""
        return max(map(cell_len, (self.title, self.unit, *self.cells)))


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a table fits: widths of the first column and of the bar (0: none), and the rest."""

    name: int
    bar: int
    columns: tuple[Column, ...]
    left_out: tuple[str, ...]


def fit(name: Column, columns: Sequence[Column], width: int, *, bar: bool) -> Fit:
    """Choose what to show in `width` cells. The first column shrinks, but is never left out."""
    longest = name.width
    least = min(longest, max(_NAME, width // 4))
    room = width - least
    reserved = 0
    chosen: list[Column] = []
    for column in sorted(columns, key=lambda column: column.rank):
        if column.rank >= _BAR_RANK and bar and not reserved:
            reserved = BAR_CELLS[0] + _GAP
            room -= reserved
        room -= column.width + _GAP
        if room < 0:
            break
        chosen.append(column)
    shown = tuple(column for column in columns if column in chosen)
    room = width - sum(column.width + _GAP for column in shown)
    if bar and not reserved and room - least >= BAR_CELLS[0] + _GAP:
        reserved = BAR_CELLS[0] + _GAP
    if room - reserved < least:  # not even the bar fits
        reserved = 0
    cells = min(longest, room - reserved)
    return Fit(
        name=max(cells, 1),
        bar=min(room - cells - _GAP, BAR_CELLS[1]) if reserved else 0,
        columns=shown,
        left_out=tuple(column.title for column in columns if column not in shown),
    )


def draw(
    console: Console, name: Column, fitted: Fit, bars: Sequence[Text] | None, *, ascii_only: bool
) -> None:
    """Print the table: titles, units, a rule, and the rows."""
    mark = "~" if ascii_only else "…"
    columns = fitted.columns
    widths = [column.width for column in columns]
    heads = [(name.title, [column.title for column in columns])]
    if any(column.unit for column in columns):
        heads.append(("", [column.unit for column in columns]))
    for first, titles in heads:
        line = pad(shorten(first, fitted.name, mark), fitted.name)
        for title, column, width in zip(titles, columns, widths, strict=True):
            line += " " * _GAP + pad(title, width, right=column.right)
        _line(console, Text(line.rstrip(), style="bold"))
    length = fitted.name + sum(widths) + _GAP * len(widths)
    length += fitted.bar + _GAP if fitted.bar else 0
    _line(console, Text(("-" if ascii_only else "─") * length, style="dim"))
    for index, label in enumerate(name.cells):
        blanks = len(label) - len(label.lstrip(" "))
        short = label[:blanks] + shorten(label[blanks:], fitted.name - blanks, mark)
        row = Text(pad(short, fitted.name))
        for column, width in zip(columns, widths, strict=True):
            cell = pad(column.cells[index], width, right=column.right)
            row.append(" " * _GAP)
            row.append(cell, style=column.style if cell.strip() not in {"-", "0"} else "dim")
        if bars is not None and fitted.bar:
            row.append(" " * _GAP)
            row.append_text(bars[index])
        row.rstrip()
        _line(console, row)


def _line(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
