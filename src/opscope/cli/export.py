"""`opscope export`: recordings in a format that other programs read."""

from __future__ import annotations

import click

from opscope.cli.files import CUSTOM, FILES, load
from opscope.cli.waiting import waiting
from opscope.present import FORMATS, format_of
from opscope.present import export as write


@click.command(
    short_help="Write another format.",
    epilog="\b\nFormats by ending:\n"
    + "\n".join(f"  {entry.ending:<20} {entry.about}" for entry in FORMATS),
)
@FILES
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT",
    type=click.Path(dir_okay=False),
    help="The file to write; its ending says the format.",
)
@CUSTOM
@click.option(
    "--redact", is_flag=True, help="Put stand-ins for the names of users, hosts and folders."
)
@click.option("--force", is_flag=True, help="Overwrite the file if it is there already.")
def export(
    files: tuple[str, ...], output: str, custom: tuple[str, ...], redact: bool, force: bool
) -> None:
    """Write what was recorded in another format. Several files are read as one recording."""
    format_of(output)  # a wrong ending is no reason to read gigabytes first
    session = load(files, custom)
    with waiting(f"writing {output}"):
        write(session, output, force=force, redact=redact)
