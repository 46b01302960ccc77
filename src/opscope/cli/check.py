"""`opscope check`: has an operator become slower, beyond the noise between runs?"""

from __future__ import annotations

import sys

import click

from opscope.analyse.compare import JUDGED, compare, regressions
from opscope.analyse.compare_runs import PARTS
from opscope.cli.files import CUSTOM
from opscope.cli.sides import duration, percentage, runs
from opscope.errors import UsageError
from opscope.present import write_rows
from opscope.present.diff import sentence

_REGRESSION = 1


class _ManyBaselines(click.Command):
    """`--baseline` takes all that follows it, up to the next option or a `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the option before each of its values, as click has it."""
        written: list[str] = []
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                written += ["--", *rest]
                break
            written.append(word)
            if word == "--baseline" and rest and not rest[0].startswith("-"):
                written.append(rest.pop(0))
                while rest and not rest[0].startswith("-"):
                    written += ["--baseline", rest.pop(0)]
        return super().parse_args(ctx, written)


@click.command(cls=_ManyBaselines, short_help="Fail when an operator became slower.")
@click.argument("new", nargs=-1, required=True, metavar="NEW...", type=click.Path())
@click.option("--baseline", "base", multiple=True, required=True, metavar="BASE...",
              help="What to compare with: all up to the next option, or to --.")  # fmt: skip
@click.option("--max-increase", metavar="SHARE", default="10%", show_default=True,
              help="How much more time a call is let pass.")  # fmt: skip
@click.option("--op", "ops", multiple=True, metavar="GLOB",
              help="Only operators of such a name; may be repeated.")  # fmt: skip
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS),
              help="Only this part of a call's time; may be repeated.")  # fmt: skip
@click.option("--min-effect", metavar="TIME", default="0ns", show_default=True,
              help="Let smaller differences a call pass; such as 50us.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object a regression.")
@CUSTOM
def check(
    new: tuple[str, ...],
    base: tuple[str, ...],
    max_increase: str,
    ops: tuple[str, ...],
    parts: tuple[str, ...],
    min_effect: str,
    as_json: bool,
    custom: tuple[str, ...],
) -> int:
    """Exit with 1, and a line for each regression, when NEW is slower than the baseline.

    A regression is an increase beyond the noise between runs and above the share let pass. Runs,
    files and folders are read as by `opscope diff`.
    """
    limit, floor = percentage(max_increase), duration(min_effect)
    comparison = compare(
        runs(base, custom),
        runs(new, custom),
        op=ops,
        judged=parts or JUDGED,
        min_effect_ns=floor,
    )
    found = regressions(comparison, limit, shifts=not parts)
    for note in comparison.notes:
        click.echo(f"opscope: {note}", err=True)
    if not any(row[0].base_runs and row[0].new_runs for row in comparison.rows):
        chosen = f" of such a name: {', '.join(ops)}" if ops else ""
        raise UsageError(f"nothing was checked: base and new have no operator in common{chosen}")
    if as_json:
        write_rows(found, sys.stdout)
    else:
        for change in found:
            click.echo(sentence(change, sys.stdout.encoding or "utf-8"))
    return _REGRESSION if found else 0
