"""The table of commands. Its help texts stand here, so that `opscope --help` loads none of them."""

from __future__ import annotations

from collections.abc import Callable

import click


def _run() -> click.Command:
    from opscope.cli.run import run

    return run


def _report() -> click.Command:
    from opscope.cli.report import report

    return report


def _export() -> click.Command:
    from opscope.cli.export import export

    return export


def _diff() -> click.Command:
    from opscope.cli.diff import diff

    return diff


def _check() -> click.Command:
    from opscope.cli.check import check

    return check


def _html() -> click.Command:
    from opscope.cli.html import html

    return html


def _info() -> click.Command:
    from opscope.cli.info import info

    return info


def _demo() -> click.Command:
    from opscope.cli.demo import demo

    return demo


#: Name, what loads it, one line of help.
TABLE: dict[str, tuple[Callable[[], click.Command], str]] = {
    "run": (_run, "Run a Python program and record its custom operators."),
    "report": (_report, "Print what was recorded as a table, or as JSON lines."),
    "html": (_html, "Write a page to look at: one file, no network."),
    "export": (_export, "Write what was recorded as a trace, JSON lines or CSV."),
    "diff": (_diff, "Compare two sets of runs: what changed, beyond the noise."),
    "check": (_check, "Exit with 1 when an operator became slower than a baseline."),
    "info": (_info, "Say what is in files, or what can be seen on this machine."),
    "demo": (_demo, "Record a small example and show its report."),
}


class Commands(click.Group):
    """A group that loads a command when it is run, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return list(TABLE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded now; None where there is none."""
        entry = TABLE.get(cmd_name)
        return entry[0]() if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown name is answered with the names there are."""
        if args and args[0] not in TABLE and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}: there are {', '.join(TABLE)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in TABLE.items()])
