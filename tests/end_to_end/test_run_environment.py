"""The environment variables, and where a recording goes when nobody says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from opscope.profiler import default_output

SCRIPT = "work(); print('ran')"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.opscope"))


def test_by_default_a_recording_is_named_after_script_and_process(
    python: Any, script: Any, folder: Path, calls: Any
) -> None:
    script("import os; print(os.getpid()); work()", "sub/train.v2.py")
    script("import os; print(os.getpid()); work()", "pkg/inner.py")
    for args, stem in ((["sub/train.v2.py"], "train.v2"), (["-m", "pkg.inner"], "pkg.inner")):
        done = python("-m", "opscope", "run", *args)
        name = f"{stem}.{int(done.stdout)}.opscope"
        assert name in files(folder)
        assert f"recorded to {name}" in done.stderr.decode()
        assert calls(name) == 1


def test_the_output_can_be_named_by_the_environment(
    python: Any, script: Any, folder: Path, calls: Any
) -> None:
    script(SCRIPT)
    env = {"OPSCOPE_OUTPUT": "named {pid}.opscope"}
    assert python("-m", "opscope", "run", "s.py", env=env).returncode == 0
    (name,) = files(folder)
    assert name.removeprefix("named ").removesuffix(".opscope").isdigit()
    assert calls(name) == 1
    assert python("-m", "opscope", "run", "-o", "o.opscope", "s.py", env=env).returncode == 0
    assert files(folder) == [name, "o.opscope"]


def test_enabled_by_the_environment_a_plain_run_is_recorded(
    python: Any, script: Any, folder: Path, calls: Any
) -> None:
    script(SCRIPT)
    done = python("s.py", env={"OPSCOPE_ENABLE": "1", "OPSCOPE_OUTPUT": "e.opscope"})
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done.stderr
    assert calls("e.opscope") == 1
    python("s.py", env={"OPSCOPE_ENABLE": "1"})
    assert len(files(folder)) == 2
    assert any(name.startswith("s.") for name in files(folder))


@pytest.mark.parametrize("value", ["", "0", "no", "off", "False"])
def test_enabled_with_a_no_is_not_enabled(
    python: Any, script: Any, folder: Path, value: str
) -> None:
    script(SCRIPT)
    assert python("s.py", env={"OPSCOPE_ENABLE": value}).stdout == b"ran\n"
    assert files(folder) == []


def test_disabled_nothing_is_recorded_and_the_program_runs(
    python: Any, opscope_run: Any, script: Any, folder: Path
) -> None:
    script(SCRIPT + "; import sys; sys.exit(3)")
    done = opscope_run("s.py", env={"OPSCOPE_DISABLE": "1"})
    assert (done.returncode, done.stdout) == (3, b"ran\n")
    assert done.stderr.decode().strip() == (
        "opscope: nothing is recorded while OPSCOPE_DISABLE is set"
    )
    assert python("s.py", env={"OPSCOPE_DISABLE": "1", "OPSCOPE_ENABLE": "1"}).stdout == b"ran\n"
    assert files(folder) == []


@pytest.mark.parametrize(
    ("given", "stem"),
    [
        ("-c", "python"), ("-", "python"), ("", "python"), ("-odd.py", "odd"), ("a/b.py", "b"),
        ("--", "python"), ("a-b.py", "a-b"),
    ],
)  # fmt: skip
def test_no_recording_is_named_like_an_option(given: str, stem: str) -> None:
    assert default_output(given) == f"{stem}.{os.getpid()}.opscope"
