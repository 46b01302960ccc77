"""`opscope run --repeat`: fresh processes, numbered files, exit codes, standard input, signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.cli.repeat import numbered

Done = subprocess.CompletedProcess[bytes]
WORK = """
import os, sys, time
import opscope

@opscope.custom_op
def work():
    return 1

work()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(opscope.__file__).parents[1]))
    for name in [name for name in os.environ if name.startswith("OPSCOPE_")]:
        monkeypatch.delenv(name)
    return tmp_path


def script(text: str, name: str = "p.py") -> str:
    Path(name).write_text(WORK + text)
    return name


def opscope_run(*args: str, **more: Any) -> Done:
    command = [sys.executable, "-m", "opscope", "run", *args]
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(command, capture_output=True, check=False, timeout=120, **more)


@pytest.fixture
def started() -> Any:
    """A command that still runs, and is killed in the end."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*args: str, **more: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "opscope", "run", *args]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True, **more))  # fmt: skip
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)


def hears_ctrl_c() -> None:
    """Where the tests run in the background of a shell, SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def files() -> list[str]:
    return sorted(path.name for path in Path().glob("*.opscope"))


def test_each_run_is_a_process_with_a_file() -> None:
    done = opscope_run("--repeat", "2", "-o", "r.opscope", script("print(os.getpid())"))
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.split())) == 2
    assert files() == ["r.1.opscope", "r.2.opscope"]
    pids = [opscope.load(name).processes[0].pid for name in files()]
    assert pids == [int(pid) for pid in done.stdout.split()]
    assert all(opscope.summary(opscope.load(name))[0]["calls"] == 1 for name in files())


def test_without_a_name_files_carry_the_id_of_the_command() -> None:
    assert opscope_run("--repeat=2", script("")).returncode == 0
    first, second = files()
    pid = re.fullmatch(r"p\.(\d+)\.1\.opscope", first)
    assert pid is not None
    assert second == f"p.{pid[1]}.2.opscope"


def test_names_sort_by_number() -> None:
    assert numbered("a/r.opscope", 10)[::9] == [os.path.join("a", "r.01.opscope"),
                                               os.path.join("a", "r.10.opscope")]  # fmt: skip
    assert numbered("r", 1) == ["r.1"]
    assert numbered("r.x.opscope", 2) == ["r.x.1.opscope", "r.x.2.opscope"]


def test_options_arguments_and_modules_are_handed_on() -> None:
    script("print(sys.argv[1:])")
    done = opscope_run("--repeat", "2", "--mode", "light", "--host", "python", "-o", "r.opscope",
                       "-m", "p", "--mode", "-x", "--")  # fmt: skip
    assert done.stdout.splitlines() == [b"['--mode', '-x', '--']"] * 2
    hosts = [{sight.host for sight in opscope.load(name).sight} for name in files()]
    assert hosts == [{"python"}] * 2


def test_the_exit_code_is_the_first_that_is_not_0() -> None:
    program = script("""
number = len(os.listdir("marks"))
open(f"marks/{number}", "w").close()
sys.exit([0, 7, 5][number])
""")
    Path("marks").mkdir()
    done = opscope_run("--repeat", "3", "-o", "r.opscope", program)
    assert (done.returncode, len(os.listdir("marks"))) == (7, 3)
    assert len(files()) == 3


def test_nothing_is_run_where_a_file_is_there() -> None:
    program = script("print('it ran')")
    Path("r.2.opscope").write_bytes(b"mine")
    done = opscope_run("--repeat", "2", "-o", "r.opscope", program)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"r.2.opscope exists" in done.stderr
    assert files() == ["r.2.opscope"]
    assert opscope_run("--repeat", "2", "--force", "-o", "r.opscope", program).returncode == 0
    assert Path("r.2.opscope").read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("args", "code"),
    [(["--repeat", "0", "p.py"], 2), (["--repeat", "two", "p.py"], 2), (["--repeat", "2"], 2),
     (["--repeat", "2", "missing.py"], 3), (["--repeat", "2", "-m", "missing"], 3)],
)  # fmt: skip
def test_what_cannot_be_run_is_said_once(args: list[str], code: int) -> None:
    done = opscope_run(*args)
    assert (done.returncode, done.stdout, files()) == (code, b"", [])
    assert done.stderr.lower().count(b"error") == 1


READ = "print(repr(sys.stdin.read()))"


def test_every_run_reads_the_same_file() -> None:
    Path("given").write_text("skipped\nrest")
    with open("given", "rb", buffering=0) as file:
        file.read(len("skipped\n"))
        done = opscope_run("--repeat", "2", "-o", "r.opscope", script(READ), stdin=file)
    assert done.stdout.splitlines() == [b"'rest'"] * 2


def test_every_run_reads_the_same_pipe() -> None:
    given = b"0123456789" * 50_000  # more than a pipe holds
    count = script("print(len(sys.stdin.buffer.read()))")
    done = opscope_run("--repeat", "2", "-o", "r.opscope", count, input=given)
    assert done.stdout.splitlines() == [b"500000"] * 2


def test_runs_that_read_different_amounts_start_at_the_beginning() -> None:
    program = script("print(sys.stdin.buffer.readline())")
    done = opscope_run("--repeat", "2", "-o", "r.opscope", program, input=b"one\ntwo\n")
    assert done.stdout.splitlines() == [b"b'one\\n'"] * 2


def test_a_pipe_that_never_ends_keeps_nobody(started: Callable[..., Any]) -> None:
    process = started("--repeat", "2", "-o", "r.opscope", script(""), stdin=subprocess.PIPE)
    assert process.wait(timeout=100) == 0  # its standard input is open all the while
    assert len(files()) == 2


def test_what_comes_late_is_read_as_well(started: Callable[..., Any]) -> None:
    program = script("print(sys.stdin.readline(), flush=True)")
    process = started("--repeat", "2", "-o", "r.opscope", program, stdin=subprocess.PIPE)
    time.sleep(0.3)
    process.stdin.write(b"late\n")
    process.stdin.flush()
    assert process.wait(timeout=100) == 0
    assert process.stdout.read().split() == [b"late", b"late"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("how", ["group", "command alone"])
def test_who_ends_it_ends_the_run_and_starts_no_other(
    started: Callable[..., Any], how: str
) -> None:
    program = script("print('up', flush=True)\ntime.sleep(100)")
    process = started("--repeat", "3", "-o", "r.opscope", program, stdin=subprocess.DEVNULL,
                      preexec_fn=hears_ctrl_c)  # fmt: skip
    assert process.stdout.readline() == b"up\n"
    if how == "group":  # Ctrl-C
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM)
    killer = threading.Timer(60, process.kill)
    killer.start()
    code = process.wait()
    killer.cancel()
    assert code == (130 if how == "group" else 143)
    assert files() == ["r.1.opscope"]
    session = opscope.load("r.1.opscope")
    assert session.processes[0].complete == (how == "group")  # of Ctrl-C the program hears itself
