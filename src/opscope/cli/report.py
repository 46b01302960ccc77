"""`opscope report`: recordings as a table, or as JSON lines."""

from __future__ import annotations

import os
import sys

import click
from rich.console import Console

from opscope.analyse import LineRow, corrected, lines, overhead, quality, select
from opscope.cli.files import CUSTOM, FILES, load
from opscope.errors import UsageError
from opscope.model import Session
from opscope.present import (
    REPORTS,
    print_lines,
    print_quality,
    print_report,
    report_rows,
    write_rows,
)
from opscope.present.table import WIDTH

#: Of what there may be thousands, a terminal gets so many rows where nobody says how many.
_MANY, _SCREENFUL = ("call", "sub"), 40


@click.command(short_help="Print what was recorded.")
@FILES
@click.option(
    "--by",
    type=click.Choice(list(REPORTS)),
    default="op",
    show_default=True,
    help="What a row stands for.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row, not a table.")
@click.option("--sort", metavar="KEY", help="Sort by a key of the JSON rows, such as python_ns.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Only the first N rows.")
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="Only operators of such a name; may be repeated.",
)
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="No operators of such a name; may be repeated."
)
@CUSTOM
@click.option(
    "--quality", "odd", is_flag=True, help="What was odd about the files, instead of the table."
)
@click.option(
    "--lines", "hot", is_flag=True, help="The hot lines of each operator, instead of the table."
)
@click.option(
    "--op",
    "ops",
    multiple=True,
    metavar="GLOB",
    help="With --lines: only operators of such a name; may be repeated.",
)
@click.option(
    "--subtract-overhead", is_flag=True, help="Take out of the times what recording them cost."
)
@click.option(
    "--width",
    type=click.IntRange(min=20),
    metavar="N",
    help="Columns of the table; that of the terminal if not given.",
)
def report(
    files: tuple[str, ...],
    by: str,
    as_json: bool,
    sort: str | None,
    limit: int | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    custom: tuple[str, ...],
    odd: bool,
    hot: bool,
    ops: tuple[str, ...],
    subtract_overhead: bool,
    width: int | None,
) -> None:
    """Print what was recorded. Several files are read as one recording.

    Times in JSON are nanoseconds, and null is what was not measured.
    """
    if hot and (odd or by != "op" or subtract_overhead):
        other = "--quality" if odd else "--subtract-overhead" if subtract_overhead else "--by"
        raise UsageError(f"--lines stands instead of the table: it does not go with {other}")
    if ops and not hot:
        raise UsageError("--op goes with --lines: for the table, choose with --include")
    session = load(files, custom)
    if subtract_overhead:
        session = _corrected(session)
    if odd:
        if as_json:
            write_rows(quality(session), sys.stdout)
        else:
            print_quality(session, _console(width))
        return
    if hot:
        sampled = lines(session)
        found = select(
            sampled, LineRow.KEYS, sort=sort, limit=limit,
            include=(*include, *ops), exclude=exclude,
        )  # fmt: skip
        if as_json:
            write_rows(found, sys.stdout)
        elif sampled and not found:
            click.echo("No operator of such a name has hot lines.")
        else:
            print_lines(session, _console(width), rows=found)
        return
    rows = report_rows(session, by)
    if limit is None and by in _MANY and not as_json and sys.stdout.isatty():
        limit = _SCREENFUL
    found = select(rows, REPORTS[by].keys, sort=sort, include=include, exclude=exclude)
    chosen = found[:limit]
    if as_json:
        write_rows(chosen, sys.stdout)
    else:
        print_report(session, _console(width), by=by, rows=chosen, of=len(found), sort=sort)


def _corrected(session: Session) -> Session:
    if overhead(session) is None:
        raise UsageError(
            "cannot subtract the overhead: what recording cost is not in these files (only "
            "recordings of opscope have it)"
        )
    return corrected(session)


def _console(width: int | None) -> Console:
    """Standard output; a file or a pipe, which wraps nothing, gets a wide table."""
    if width is None and not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        width = WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)
