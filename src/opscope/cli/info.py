"""`opscope info`: what is in each file; without files, what can be seen on this machine."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence

import click
from rich.console import Console
from rich.text import Text

from opscope._version import __version__
from opscope.cli.files import load
from opscope.model import Kind, Process, Session, Sight
from opscope.present.text import visible
from opscope.present.units import show_time
from opscope.record import in_use

#: The first column, and how much the second one has at least.
_MARGIN, _LEAST = 15, 20


@click.command(short_help="Say what is in files, or what can be seen here.")
@click.argument("files", nargs=-1, metavar="[F...]", type=click.Path())
def info(files: tuple[str, ...]) -> None:
    """Say what is in each file; without files: versions, and what each host can see here now."""
    if not files:
        from opscope.hosts import probe_all

        _say(_about_here(probe_all()))
    for number, file in enumerate(files):
        if number:
            click.echo()
        session = load([file])
        click.echo(visible(file, _encoding()))
        _say(_about_file(session))


def _say(facts: Iterator[tuple[str, str]]) -> None:
    """Fits the terminal; a file or a pipe gets each fact on one line."""
    room = shutil.get_terminal_size().columns - _MARGIN if sys.stdout.isatty() else 0
    for word, text in facts:
        text = visible(text, _encoding())
        lines = _wrapped(text, max(room, _LEAST)) if room else [text]
        for line in lines or [""]:
            click.echo(f"  {word:<{_MARGIN - 3}} {line}".rstrip())
            word = ""


def _encoding() -> str:
    """What standard output can hold: on Windows, in a pipe, not every letter."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _wrapped(text: str, cells: int) -> list[str]:
    """In lines of so many cells of a terminal, of which some letters take two."""
    return [line.plain.rstrip() for line in Text(text).wrap(Console(), cells)]


def _about_here(sights: Sequence[Sight]) -> Iterator[tuple[str, str]]:
    yield "opscope", __version__
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield "recorder", "{}: {}".format(*in_use())
    for sight in sights:
        yield from _about_sight(sight, "sees")


def _about_sight(sight: Sight, verb: str) -> Iterator[tuple[str, str]]:
    if sight.sees or sight.version:
        yield sight.host, f"{sight.version}  {verb} {', '.join(sight.sees) or 'nothing'}".strip()
    for number, (what, why) in enumerate(sight.misses.items()):
        word = "" if number or sight.sees or sight.version else sight.host
        yield word, f"not {what}: {why}"


def _about_file(session: Session) -> Iterator[tuple[str, str]]:
    spans = session.spans
    kinds = [
        f"{count:,} {kind.name.lower()}"
        for kind in Kind
        if (count := int((spans["kind"] == kind).sum()))
    ]
    yield "spans", f"{len(spans):,}" + (f" ({', '.join(kinds)})" if kinds else "")
    yield "operators", f"{len(session.ops):,}"
    for op in session.ops:
        yield "", f"{op.name}: {op.kind}" + (f", {op.file}:{op.line}" if op.file else "")
    yield "lanes", f"{len(session.lanes):,}"
    length = int(spans["end_ns"].max()) - session.start_ns if len(spans) else 0
    yield "duration", show_time(max(length, 0))
    yield "complete", _whole(session.processes)
    lost = int(session.drops["count"].sum())
    if lost:
        yield "dropped", f"{lost:,} spans, in {len(session.drops):,} stretches of time"
    for process in session.processes:
        yield from _about_process(process)
    for sight in session.sight:
        yield from _about_sight(sight, "saw")


def _about_process(process: Process) -> Iterator[tuple[str, str]]:
    command = shlex.join(process.command)
    if process.pid or command:
        yield "process", f"{process.pid}  {command}".rstrip()
    if process.versions:
        yield "", ", ".join(f"{name} {version}" for name, version in process.versions.items())
    if process.damage:
        yield "damage", process.damage
    for hook in process.broken:
        yield "", f"the hook {hook} failed and was switched off"
    for number, note in enumerate(process.notes):
        yield "" if number else "note", note


def _whole(processes: Sequence[Process]) -> str:
    cut = [str(process.pid) for process in processes if not process.complete]
    return f"no: the recording of process {', '.join(cut)} was not ended in order" if cut else "yes"
