"""The quality report: what was odd about the files, all of it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from opscope.analyse.quality import OddRow, quality
from opscope.model import Session
from opscope.present.text import visible


def print_quality(session: Session, console: Console) -> None:
    """One line a kind of oddity, with the first places."""
    rows = quality(session)
    encoding = console.encoding
    for number, process in enumerate(session.processes):
        if len(session.processes) > 1:
            console.print(Text(f"process {number}", style="bold"))
        if process.damage:
            console.print(Text(visible(f"damaged: {process.damage}", encoding)))
        mine = [row for row in rows if row.process == number]
        for row in mine:
            console.print(Text(visible(line(row), encoding)))
        if not mine and not process.damage:
            console.print(Text("nothing odd was found"))


def line(row: OddRow) -> str:
    """A row in words."""
    text = f"{row.count:,} {row.what}"
    if row.places:
        more = ", ..." if row.count > len(row.places) else ""
        text += f"; at {', '.join(row.places)}{more}"
    return text
