"""`opscope run`: a Python program, recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import click

from opscope.cli import program
from opscope.cli.running import bare, begin
from opscope.errors import UsageError
from opscope.profiler import MODES, default_output, profile

_TAKE_A_VALUE = ("-o", "--output", "--host", "--mode", "--repeat")


class _LikePython(click.Command):
    """As for `python`: what stands behind the script, or behind `-m MODULE`, is the program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `--` where the program's own arguments begin."""
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            if args[at].startswith("-m"):
                at += 2 if args[at] == "-m" else 1
                break
            at += 2 if args[at] in _TAKE_A_VALUE else 1
        else:
            if args[at : at + 1] == ["--"]:
                return super().parse_args(ctx, args)
        # An option that lacks its value must not find the `--`.
        own = ["--"] if at <= len(args) else []
        return super().parse_args(ctx, [*args[:at], *own, *args[at:]])


@click.command(cls=_LikePython, short_help="Run a Python program and record its custom operators.")
@click.option("-o", "--output", metavar="F.opscope", help="Default: SCRIPT.PID.opscope.")
@click.option("--host", "hosts", multiple=True, default=["auto"], help="Which frameworks to watch.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=MODES[0],
    show_default=True,
    help="light: calls and waits only, at less cost.",
)
@click.option("--force", is_flag=True, help="Replace the output file if it is there.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run it N times, each in a fresh process with a numbered file.",
)
@click.option(
    "--lines",
    is_flag=True,
    help="Sample the main thread: which lines of the operators' Python cost what (report --lines).",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def run(
    output: str | None,
    hosts: tuple[str, ...],
    mode: str,
    force: bool,
    repeat: int | None,
    lines: bool,
    module: str | None,
    arguments: tuple[str, ...],
) -> Callable[[], None] | int:
    """Run SCRIPT (or -m MODULE) with its ARGS and record what its custom operators do.

    The program sees its own arguments, standard input and `__main__`, and its exit code is this
    command's. Whatever ends it, what was recorded is kept. With --repeat the file of run 3 is
    F.3.opscope, all N are run, and the exit code is the first that is not 0.
    """
    if module is not None:
        start, name = program.module(module, arguments), f"{module}.py"
    elif arguments:
        start, name = program.script(arguments[0], arguments[1:]), arguments[0]
    else:
        raise UsageError("nothing to run: name a script, or a module with -m")
    output = output or default_output(name)
    if force and _are_one(output, name):
        raise UsageError(f"cannot write {output}: it is the program that is to be run")
    if repeat is not None:
        from opscope.cli.repeat import numbered, repeated

        # As this process was told, but for the file: each run is a process of its own.
        told = [word for host in hosts for word in ("--host", host)] + ["--mode", mode]
        told += ["--lines"] * lines
        told += ["--"] if module is None else ["-m", module]
        return repeated(numbered(output, repeat), [*told, *arguments], force=force)
    begin(profile(host=hosts, output=output, force=force, mode=mode, lines=lines))
    # Handed back, so that the program runs outside click, which would take its exceptions.
    return partial(bare, start)


def _are_one(output: str, script: str) -> bool:
    try:
        return os.path.samefile(output, script)
    except (OSError, ValueError):
        return False
