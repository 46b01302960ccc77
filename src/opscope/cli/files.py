"""What commands that read recordings share: the argument, and loading."""

from __future__ import annotations

from collections.abc import Sequence

import click

from opscope.cli.waiting import waiting
from opscope.model import Session

#: Paths as texts. Whether they can be read is for the loader to say: exit code 3, not 2.
FILES = click.argument("files", nargs=-1, required=True, metavar="F...", type=click.Path())


#: Names that are custom operators where a trace does not say so.
CUSTOM = click.option(
    "--custom",
    multiple=True,
    metavar="GLOB",
    help="In a foreign trace: names that are custom operators; may be repeated.",
)


def load(files: Sequence[str], custom: Sequence[str] = ()) -> Session:
    """All files as one session, as `opscope.load` reads them."""
    from opscope import sessions

    what = f"reading {files[0]}" if len(files) == 1 else f"reading {len(files)} files"
    with waiting(what):
        return sessions.load(*files, custom=custom)
