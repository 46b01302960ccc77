"""`opscope run`: what cannot be run or written is said in one line, and nothing was run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opscope.cli import program
from opscope.errors import InputError


@pytest.fixture
def refused(python: Any, folder: Path, script: Any) -> Any:
    """`refused(code, message, *args)`: one line on standard error, no file, nothing run."""
    script("print('it ran')")

    def check(code: int, message: str, *args: str) -> None:
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        done = python("-m", "opscope", "run", *args)
        assert done.returncode == code, done.stderr
        assert message in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()
        assert "recorded" not in done.stderr.decode()
        assert done.stdout == b""
        assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before

    return check


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.py", "cannot run missing.py: No such file or directory"),
        ("folder", "cannot run folder: there is no __main__ in it"),
        ("s.py/x", "cannot run s.py/x: Not a directory"),
        ("no\N{SNAKE}", "No such file or directory"),
    ],
)
def test_a_script_that_is_not_there(refused: Any, folder: Path, name: str, reason: str) -> None:
    (folder / "folder").mkdir()
    refused(3, f"opscope: error: {'' if 'cannot' in reason else 'cannot run '}", name)
    refused(3, reason, "--force", name, "-o", "x")


def test_a_name_that_no_file_can_have() -> None:
    with pytest.raises(InputError, match="cannot run 'nul"):
        program.script("nul\0", ())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "no module of that name is on the path"),
        ("pkg.missing", "no module of that name is on the path"),
        ("pkg", "it is a package, and has no __main__"),
        ("s.inner", "no module of that name is on the path"),
        ("broken.missing", "no module of that name is on the path"),
        ("", "no module of that name is on the path"),
        (".", "no module of that name is on the path"),
        ("pkg..x", "no module of that name is on the path"),
    ],
)
def test_a_module_that_is_not_there(refused: Any, script: Any, name: str, reason: str) -> None:
    script("", "pkg/__init__.py", head="")
    script("import nowhere_at_all", "broken/__init__.py", head="")
    refused(3, f"opscope: error: cannot run -m {name}: {reason}", "-m", name)


def test_an_output_that_is_there(refused: Any, folder: Path, opscope_run: Any) -> None:
    (folder / "out.opscope").write_bytes(b"mine")
    refused(2, "out.opscope exists: choose another name, or overwrite", "-o", "out.opscope", "s.py")
    done = opscope_run("--force", "s.py")
    assert (done.returncode, done.stdout) == (0, b"it ran\n")


def test_an_output_that_is_the_program(refused: Any, folder: Path) -> None:
    (folder / "link").symlink_to("s.py")
    for output in ("s.py", "link"):
        message = f"cannot write {output}: it is the program that is to be run"
        refused(2, message, "--force", "-o", output, "s.py")


def test_an_output_that_cannot_be(refused: Any, folder: Path) -> None:
    (folder / "folder").mkdir()
    refused(2, "cannot write no/x.opscope: No such file", "-o", "no/x.opscope", "s.py")
    refused(2, "cannot write folder: it is a folder", "-o", "folder", "s.py")
    refused(2, "cannot write folder: Is a directory", "--force", "-o", "folder", "s.py")
    refused(2, "cannot write /proc/x.opscope: ", "-o", "/proc/x.opscope", "s.py")


def test_a_host_that_is_unknown(refused: Any) -> None:
    refused(1, "no host is called 'tensorflow'; there are: auto, ", "--host", "tensorflow", "s.py")


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((), "nothing to run: name a script, or a module with -m"),
        (("--force",), "nothing to run"),
        (("-m",), "requires an argument"),
        (("-o",), "requires an argument"),
        (("--fore", "s.py"), "No such option"),
    ],
)
def test_a_command_line_that_is_wrong(refused: Any, args: tuple[str, ...], reason: str) -> None:
    refused(2, reason, *args)
