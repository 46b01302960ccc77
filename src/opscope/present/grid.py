"""A table that fits: columns are left out from the least important on until it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from opscope.present.text import Label, pad, shorten

#: Blanks between columns; in a table narrower than `_TIGHT` they stand closer.
_GAP, _TIGHT_GAP, _TIGHT = 2, 1, 100
#: The first column gets at least this much before columns are left out, or that share of the width.
_NAME, _NAME_SHARE = 22, 0.28
#: What is drawn at the end of a line has at least and at most this many cells.
BAR_CELLS = (8, 28)
#: Columns of at least this rank are left out before the bar is.
_BAR_RANK = 7
#: Columns of at least this rank are there only where the first one need not be cut for them.
_SPARE_RANK = 10
#: Columns in which nothing was measured go this much earlier than they else would.
_EMPTY_RANK = 20


@dataclass(frozen=True, slots=True)
class Column:
    """`cells` are ready to show. Of two columns the one of higher `rank` is left out first, one
    with nothing in it (`empty`) before all others.

    The first column of a table may have `labels` instead, which know how to be shortened.
    """

    title: str
    cells: tuple[str, ...]
    rank: int = 0
    unit: str = ""
    right: bool = True
    style: str = ""
    empty: bool = False
    labels: tuple[Label, ...] = ()

    @property
    def width(self) -> int:
        """In terminal cells."""
        texts = (*self.cells, *(label.whole for label in self.labels))
        return max(map(cell_len, (self.title, self.unit, *texts)))

    @property
    def order(self) -> int:
        """What is left out first has the highest."""
        return self.rank + (_EMPTY_RANK if self.empty else 0)

    def shown(self, index: int, cells: int, mark: str) -> str:
        """One cell in at most that many cells."""
        if self.labels:
            return self.labels[index].fit(cells, mark)
        return shorten(self.cells[index], cells, mark)


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a table fits: widths of the first column and of the bar (0: none), the rest, and how
    many blanks stand between. What is left out is named, but for columns with nothing in them."""

    name: int
    bar: int
    columns: tuple[Column, ...]
    left_out: tuple[str, ...]
    gap: int = _GAP


def fit(name: Column, columns: Sequence[Column], width: int, *, bar: bool) -> Fit:
    """Choose what to show in `width` cells. The first column shrinks, but is never left out."""
    gap = _GAP if width >= _TIGHT else _TIGHT_GAP
    longest = name.width
    least = min(longest, max(_NAME, int(width * _NAME_SHARE)))
    room = width - least
    reserved = spared = 0
    chosen: list[Column] = []
    for column in sorted(columns, key=lambda column: column.order):
        if column.order >= _BAR_RANK and bar and not reserved:
            reserved = BAR_CELLS[0] + _GAP
            room -= reserved
        if column.order >= _SPARE_RANK and not spared:
            spared = max(min(longest, width // 2) - least, 0)
            room -= spared
        room -= column.width + gap
        if room < 0:
            break
        chosen.append(column)
    shown = tuple(column for column in columns if column in chosen)
    room = width - sum(column.width + gap for column in shown)
    if bar and not reserved and room - least >= BAR_CELLS[0] + _GAP:
        reserved = BAR_CELLS[0] + _GAP
    if room - reserved < least:  # not even the bar fits
        reserved = 0
    cells = min(longest, room - reserved)
    return Fit(
        name=max(cells, 1),
        bar=min(room - cells - _GAP, BAR_CELLS[1]) if reserved else 0,
        columns=shown,
        left_out=tuple(
            column.title for column in columns if column not in shown and not column.empty
        ),
        gap=gap,
    )


def draw(
    console: Console, name: Column, fitted: Fit, bars: Sequence[Text] | None, *, ascii_only: bool
) -> None:
    """Print the table: titles, units, a rule, and the rows."""
    mark = "~" if ascii_only else "…"
    columns = fitted.columns
    widths = [column.width for column in columns]
    gap = " " * fitted.gap
    heads = [(name.title, [column.title for column in columns])]
    if any(column.unit for column in columns):
        heads.append(("", [column.unit for column in columns]))
    for first, titles in heads:
        line = pad(shorten(first, fitted.name, mark), fitted.name)
        for title, column, width in zip(titles, columns, widths, strict=True):
            line += gap + pad(title, width, right=column.right)
        _line(console, Text(line.rstrip(), style="bold"))
    length = fitted.name + sum(widths) + fitted.gap * len(widths)
    length += fitted.bar + _GAP if fitted.bar else 0
    _line(console, Text(("-" if ascii_only else "─") * length, style="dim"))
    for index in range(len(name.labels or name.cells)):
        row = Text(pad(name.shown(index, fitted.name, mark), fitted.name))
        for column, width in zip(columns, widths, strict=True):
            cell = pad(column.cells[index], width, right=column.right)
            row.append(gap)
            row.append(cell, style=column.style if cell.strip() not in {"-", "0"} else "dim")
        if bars is not None and fitted.bar:
            row.append(" " * _GAP)
            row.append_text(bars[index])
        row.rstrip()
        _line(console, row)


def _line(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
