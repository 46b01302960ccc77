"""`opscope html`: recordings as one page to look at."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

import click

from opscope.cli.files import CUSTOM, FILES, load
from opscope.cli.waiting import waiting
from opscope.errors import UsageError
from opscope.present import export

#: Endings that browsers open as a page.
ENDINGS = (".html", ".htm")


@click.command(short_help="Write a page to look at.")
@FILES
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="OUT.html",
    type=click.Path(dir_okay=False),
    help="The file to write.",
)
@click.option("--open", "show", is_flag=True, help="Open it in the browser when it is written.")
@CUSTOM
@click.option(
    "--redact", is_flag=True, help="Put stand-ins for the names of users, hosts and folders."
)
@click.option("--force", is_flag=True, help="Overwrite the file if it is there already.")
def html(
    files: tuple[str, ...],
    output: str,
    show: bool,
    custom: tuple[str, ...],
    redact: bool,
    force: bool,
) -> None:
    """Write a page to look at: one file that needs no network.

    Several files are read as one recording.
    """
    if not output.lower().endswith(ENDINGS):
        raise UsageError(f"{output!r} does not end in .html: a browser would not show it as a page")
    if os.path.lexists(output) and not force:
        # Said before gigabytes are read.
        raise UsageError(f"{output!r} is there already: choose another name, or use --force")
    session = load(files, custom)
    with waiting(f"writing {output}"):
        export(session, output, force=force, redact=redact)
    if show and not webbrowser.open(Path(output).resolve().as_uri()):
        click.echo(f"no browser could be started: open {output} by hand", err=True)
