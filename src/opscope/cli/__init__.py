"""The command `opscope`: one command, one small file, each loaded only when it is called for."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from opscope.cli.commands import Commands
from opscope.errors import OpscopeError

#: When the reader of our output went away (as click has it), and after Ctrl-C (as shells have it).
_BROKEN_PIPE, _INTERRUPTED = 1, 130
#: Where our output cannot be written to its end: a full disk.
_NO_ROOM = frozenset(getattr(errno, name, 0) for name in ("ENOSPC", "EDQUOT", "EFBIG"))


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
        with _streams():
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
        _complain(str(error))
        return error.exit_code, None
    except BrokenPipeError:
        _let_go()
        return _BROKEN_PIPE, None
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _let_go()
        _complain(f"cannot write the output: {error.strerror}")
        return 1, None
    return (result if isinstance(result, int) else 0), None


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """While it lasts, what is said to a standard output or error that is closed goes nowhere."""
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                setattr(sys, name, nowhere)
                stack.callback(setattr, sys, name, None)
        yield


def _complain(message: str) -> None:
    """One line, whatever is in the names of files that it tells."""
    from opscope.present.text import visible

    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            print(f"opscope: error: {visible(message)}", file=sys.stderr)


def _let_go() -> None:
    """The interpreter flushes standard output once more at its end: let that go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
