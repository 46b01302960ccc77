"""`opscope diff`: what changed between two sets of runs, beyond the noise between runs."""

from __future__ import annotations

import os
import sys

import click
from rich.console import Console

from opscope.analyse.compare import compare
from opscope.cli.files import CUSTOM
from opscope.cli.sides import BETWEEN, TwoSided, duration, runs
from opscope.errors import UsageError
from opscope.present import write_rows
from opscope.present.diff import print_diff
from opscope.present.table import WIDTH


@click.command(cls=TwoSided, short_help="Compare two sets of runs.")
@click.argument("paths", nargs=-1, required=True, metavar="BASE... -- NEW...",
                type=click.UNPROCESSED)  # fmt: skip
@click.option("--op", "ops", multiple=True, metavar="GLOB",
              help="Only operators of such a name; may be repeated.")  # fmt: skip
@click.option("--min-effect", metavar="TIME", default="0ns", show_default=True,
              help="Mark no smaller difference a call; such as 50us.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object a part, not a table.")
@CUSTOM
@click.option("--width", type=click.IntRange(min=20), metavar="N",
              help="Columns of the table; that of the terminal if not given.")  # fmt: skip
def diff(
    paths: tuple[str, ...],
    ops: tuple[str, ...],
    min_effect: str,
    as_json: bool,
    custom: tuple[str, ...],
    width: int | None,
) -> None:
    """Compare runs: recordings, foreign traces, or folders of them. With one run a side `--` may be
    left out.

    Equal runs differ too. With five runs a side, made in alternation, what changed by more than
    that is marked; with fewer, changes under 30 % are not comparable.
    """
    base, new = _sides(paths)
    floor = duration(min_effect)
    comparison = compare(runs(base, custom), runs(new, custom), op=ops, min_effect_ns=floor)
    if as_json:
        write_rows(comparison.changes, sys.stdout)
        for note in comparison.notes:
            click.echo(f"opscope: {note}", err=True)
        return
    if width is None and not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        width = WIDTH  # a file or a pipe wraps nothing
    print_diff(comparison, Console(width=width, highlight=False, markup=False, emoji=False))


def _sides(paths: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if BETWEEN in paths:
        at = paths.index(BETWEEN)
        base, new = paths[:at], paths[at + 1 :]
    elif len(paths) == 2:
        base, new = paths[:1], paths[1:]
    else:
        raise UsageError("put -- between the runs of both sides: opscope diff BASE... -- NEW...")
    if not base or not new:
        raise UsageError(f"no {'new' if base else 'base'} run is named: BASE... -- NEW...")
    return base, new
