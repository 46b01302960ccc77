"""`opscope export`: recordings in a format that other programs read."""

from __future__ import annotations

import click

from opscope.cli.files import FILES, load
from opscope.cli.waiting import waiting
from opscope.present import FORMATS, format_of
from opscope.present import export as write


@click.command(
    short_help="Write another format.",
    epilog="\b\nFormats by ending:\n"
    + "\n".join(f"  {entry.ending:<13} {entry.about}" for entry in FORMATS),
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
@click.option("--force", is_flag=True, help="Overwrite the file if it is there already.")
def export(files: tuple[str, ...], output: str, force: bool) -> None:  # fmt: skip
    """Write what was recorded in another format. Several files are read as one recording."""
    format_of(output)  # a wrong ending is no reason to read gigabytes first
    session = load(files)
    with waiting(f"writing {output}"):
        write(session, output, force=force)
