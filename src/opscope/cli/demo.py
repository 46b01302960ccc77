"""`opscope demo`: a small real training run, recorded and explained."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from pathlib import Path

import click

from opscope.errors import InputError, UsageError
from opscope.profiler import profile
from opscope.record import watch
from opscope.sessions import load

#: How many kinds of sub-operators are listed.
_SHOWN = 8


@click.command(short_help="Record a small example and show its report.")
@click.option("-o", "--output", default=".", metavar="FOLDER", help="Where the two files go.")
@click.option("--epochs", default=3, type=click.IntRange(min=1), show_default=True,
              help="How long to train.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the files if they are there.")
def demo(output: str, epochs: int, force: bool) -> None:
    """Train a two-layer classifier with two custom operators on the built-in engine.

    Prints where the time of its operators went, and leaves the recording and a Chrome trace.
    """
    from rich.console import Console

    from opscope.present import export, print_report, print_summary, report_rows

    example = runpy.run_path(str(_example()))
    recorded, trace = _files(Path(output), force)
    click.echo(f"training on handwritten digits, {epochs} epoch{'s' * (epochs > 1)}:")
    with profile(output=recorded, force=force):
        if watch.recorder is None:
            raise UsageError("nothing can be recorded while OPSCOPE_DISABLE is set")
        example["main"](epochs)
    session = load(recorded)
    console = Console(highlight=False, markup=False, emoji=False)
    click.echo()
    print_summary(session, console)
    rows, program = report_rows(session, "sub"), _program()
    click.echo(f"\nwhat they launched, by path, the longest {_SHOWN} of {len(rows)}:")
    print_report(session, console, by="sub", rows=rows[:_SHOWN])
    export(session, trace, force=force)
    click.echo(f"\nrecording     {recorded}")
    click.echo(f"Chrome trace  {trace}   (open it in ui.perfetto.dev or chrome://tracing)")
    page = recorded.with_suffix(".html")
    click.echo(f"look at it    {program} html {recorded} -o {page} --open")
    click.echo(f"see all       {program} report {recorded} --by sub   (--by call; --help)")


def _program() -> str:
    """What a reader types to run opscope again: `make demo` has it in no folder of programs."""
    if shutil.which("opscope") or Path(sys.argv[0]).name != "opscope":
        return "opscope"
    return os.path.relpath(sys.argv[0])


def _files(folder: Path, force: bool) -> tuple[Path, Path]:
    """The two files, neither of which is there, in a folder that is. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from None
    files = folder / "demo.opscope", folder / "demo.trace.json.gz"
    for path in files:
        if path.exists() and not force:
            raise UsageError(f"{path} exists: choose another folder, or overwrite it with --force")
    return files


def _example() -> Path:
    """The example: beside the package in a wheel, in the repository's examples/ in a checkout."""
    for folder in (Path(__file__).with_name("demo_files"), Path(__file__).parents[3] / "examples"):
        script = folder / "digits_loss.py"
        if script.is_file():
            return script
    raise InputError("the example is missing from this installation: reinstall opscope")
