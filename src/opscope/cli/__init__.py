"""The command `opscope`: one command, one small file, each loaded only when it is called for."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

import click

from opscope.cli.commands import Commands
from opscope.errors import OpscopeError

#: When the reader of our output went away (as click has it), and after Ctrl-C (as shells have it).
_BROKEN_PIPE, _INTERRUPTED = 1, 130


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line (that of the process if none is given) and return its exit code.

    0: well; 1 and up as `errors` says; 2: the command line itself is wrong.
    """
    code, program = _command(args)
    if program is not None:
        # The program of `run`: nothing of ours stands around it, its exit and errors are its own.
        program()
    return code


def _command(args: Sequence[str] | None) -> tuple[int, Callable[[], None] | None]:
    """The exit code, and what is left to run: a command may return a program to be run bare."""
    try:
        result = _commands()(args=args, prog_name="opscope", standalone_mode=False)
        if callable(result):
            return 0, result
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code, None
    except click.Abort:
        return _INTERRUPTED, None
    except OpscopeError as error:
        print(f"opscope: error: {error}", file=sys.stderr)
        return error.exit_code, None
    except BrokenPipeError:
        # The interpreter flushes standard output once more at its end: let that go nowhere.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE, None
    return (result if isinstance(result, int) else 0), None


def _commands() -> click.Command:
    return Commands(
        "opscope",
        help="Shows what happens inside custom operators: what was Python, what sub-operators,"
        " what only waited.",
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True,
                             callback=_version, help="Show the version and exit.")],
    )  # fmt: skip


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from opscope._version import __version__

        click.echo(f"opscope {__version__}")
        context.exit()
