"""`opscope run`: every way a program can end is its own, and what was recorded is kept."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any

import pytest

SAID = re.compile(rb"opscope: recorded to out\.opscope \(opscope report out\.opscope\)\r?\n")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")


def compare(plain: Any, ours: Any) -> None:
    """The same exit code, output and errors; and one line of ours, once."""
    assert ours.returncode == plain.returncode
    assert ours.stdout == plain.stdout
    assert len(SAID.findall(ours.stderr)) == 1
    address = re.compile(rb"0x[0-9a-fA-F]+")
    assert address.sub(b"", SAID.sub(b"", ours.stderr)) == address.sub(b"", plain.stderr)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit()", 0),
        ("sys.exit(3)", 3),
        ("sys.exit('a message')", 1),
        ("sys.exit(True)", 1),
        ("raise SystemExit(258)", 2),
        ("os._exit(5)", 5),
        ("1 / 0", 1),
        ("inside()", 1),
        ("chained()", 1),
        ("time.sleep('no')", 1),
        ("raise KeyboardInterrupt", None),
        ("sys.stdout.close(); sys.exit(4)", 4),
        ("sys.excepthook = lambda *error: print('mine', error[0], file=sys.stderr); 1 / 0", 1),
        ("atexit.register(lambda: os._exit(6)); atexit.register(work)", 6),
        ("atexit.register(lambda: 1 / 0)", 0),
        ("last = type('Last', (), {'__del__': lambda self, leave=os._exit: leave(8)})()", 8),
    ],
)
def test_the_end_is_the_programs(
    python: Any, opscope_run: Any, script: Any, calls: Any, end: str, code: int | None
) -> None:
    script(f"""
    import atexit, os, sys, time

    def inside():
        raise ValueError("no")

    def chained():
        try:
            inside()
        except ValueError as error:
            raise KeyError("later") from error

    print("printed", flush=True)
    work()
    {end}
    """)
    plain, ours = python("s.py"), opscope_run("s.py")
    assert code is None or plain.returncode == code
    compare(plain, ours)
    assert calls() == (2 if "work)" in end else 1)


@pytest.mark.parametrize(
    ("raising", "frames"),
    [
        ("work('text')", 2),
        ("raise KeyError('later') from failed()", 1 + 2),
        ("raise ExceptionGroup('several', [failed(), failed()])", 1 + 2 + 2),
    ],
)
def test_what_is_printed_shows_no_frame_of_ours(
    opscope_run: Any, script: Any, raising: str, frames: int
) -> None:
    """Under plain Python the operator's wrapper would stand in between."""
    if "Group" in raising and sys.version_info < (3, 11):
        pytest.skip("groups came with 3.11")
    script(f"""
    def failed():
        try:
            work('text')
        except TypeError as error:
            return error

    {raising}
    """)
    done = opscope_run("s.py")
    assert done.returncode == 1
    assert len(re.findall(rb' File ".*[\\/]s\.py", line', done.stderr)) == frames
    assert done.stderr.count(b' File "') == frames


@pytest.mark.parametrize("text", ["def f(:\n", "\t x\n  y\n", "x = 'é", "\n\n1 = x\n"])
def test_a_syntax_error_is_shown_as_python_shows_it(
    python: Any, opscope_run: Any, script: Any, text: str
) -> None:
    script(text, head="")
    compare(python("s.py"), opscope_run("s.py"))


@pytest.mark.parametrize("text", ["1 / 0", "1 = x"])
def test_a_module_that_fails_shows_its_own_lines(opscope_run: Any, script: Any, text: str) -> None:
    script(text, "pkg/inner.py", head="")
    script("", "pkg/__init__.py", head="")
    ours = opscope_run("-m", "pkg.inner")
    assert ours.returncode == 1
    assert ours.stderr.count(b' File "') == 1, ours.stderr
    assert b"Error: " in ours.stderr


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("handled", [False, True])
def test_a_signal_ends_it_as_it_ends_python(
    started: Any, script: Any, calls: Any, number: int, handled: bool
) -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))" if handled else "pass"
    script(f"""
    import signal, sys, time
    # Where the tests run in the background of a shell, SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    {handler}
    work()
    print("up", flush=True)
    while True:
        time.sleep(0.02)
    """)
    found = []
    for command in (["s.py"], ["-m", "opscope", "run", "-o", "out.opscope", "s.py"]):
        process = started(*command)
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        lines = SAID.sub(b"", errors).splitlines()
        # Which line it met is chance.
        frames = [line.partition(b",")[0] for line in lines if line.startswith(b"  File")]
        found.append((process.returncode, frames, lines[-1:]))
    assert found[0] == found[1]
    assert found[0][0] == (9 if handled and number == signal.SIGTERM else -number)
    if number == signal.SIGINT or (handled and number == signal.SIGTERM):
        assert calls() == 1
