"""Lines of other threads, from py-spy: a stand-in that is always there, and the real one."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from opscope import custom_op, profile
from opscope.analyse import lines
from opscope.model import Op, Phase
from opscope.record.outside import Outside, samples
from opscope.record.places import of_op

WORK = Op("python", "function", "work", "mine.work", "", 1, "/me/ops.py", 10)
SWISH = Op("engine", "CustomOp", "Swish", "mine.outer.<locals>.Swish", "", 1, "/me/ops.py", 30)
OPS = [(4, WORK), (7, SWISH)]
LIBRARY = os.__file__


def seen(*stacks: str) -> list[tuple[int, Phase, str, int, int, int]]:
    """(entry of the names, phase, function, line, line of the body, how often)."""
    found = []
    for name, op, phase, stack, count in samples("\n".join(stacks), OPS, {1, 0x10}):
        places = of_op(stack, op)
        assert places is not None
        found.append((name, phase, places[0].function, places[0].line, places[1].line, count))
    return found


def test_the_innermost_operator_on_the_stack_gets_the_sample() -> None:
    assert seen(
        "thread (77): w one;run (/me/main.py:3);work (/me/ops.py:12);help (/me/more.py:5) 44",
        "thread (0x1F): w;work (/me/ops.py:12);outer.<locals>.Swish.backward (/me/ops.py:35) 2",
        "thread (77): w;outer.<locals>.Swish.forward (/me/ops.py:31);work (/me/ops.py:13) 3",
    ) == [
        (4, Phase.NONE, "help", 5, 12, 44),
        (7, Phase.BACKWARD, "outer.<locals>.Swish.backward", 35, 35, 2),
        (4, Phase.NONE, "work", 13, 13, 3),
    ]


def test_libraries_and_opscope_count_to_the_line_that_called_them() -> None:
    import opscope.record.waits as waits

    assert seen(
        f"thread (77): w;work (/me/ops.py:12);wait ({waits.__file__}:9);x ({LIBRARY}:1) 5",
        f"thread (77): w;work (/me/ops.py:14);x ({LIBRARY}:1) 6",
    ) == [(4, Phase.NONE, "work", 12, 12, 5), (4, Phase.NONE, "work", 14, 14, 6)]


@pytest.mark.parametrize(
    "stack",
    [
        "thread (1): main;work (/me/ops.py:12) 5",
        "thread (0x10): ours;work (/me/ops.py:12) 5",
        "thread (77): w;work (/me/other.py:12) 5",
        "thread (77): w;forward (/me/ops.py:12) 5",
        "thread (77): w;work (/me/ops.py:twelve) 5",
        "thread (77): w;work (/me/ops.py:12) many",
        "work (/me/ops.py:12) 5",
        "thread (77): w",
        ";;; 1",
        "",
    ],
)
def test_what_is_not_of_an_operator_or_not_readable_is_left_out(stack: str) -> None:
    assert seen(stack) == []


STAND_IN = """#!{python}
import os, signal, sys, threading
arguments = sys.argv[1:]
over = threading.Event()
signal.signal(signal.SIGINT, lambda *_: over.set())
print("starting", file=sys.stderr)
{act}
"""
WRITES = """
over.wait(60)
with open(arguments[arguments.index("--output") + 1], "w") as file:
    file.write("thread (99999): w;work ({file}:{line}) 7\\n")
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "py-spy"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return program


def install(program: Path, act: str) -> None:
    program.write_text(STAND_IN.format(python=sys.executable, act=act), "utf-8")
    program.chmod(0o755)


@custom_op
def work() -> None:
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass


def recorded() -> profile:
    with profile(host="python", lines=True) as run:
        with pytest.raises(ChildProcessError):
            os.wait()  # the program has no child
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        time.sleep(0.3)
    return run


def test_what_it_saw_is_in_the_session(stand_in: Path, tmp_path: Path) -> None:
    line = work.__wrapped__.__code__.co_firstlineno + 2
    install(stand_in, WRITES.replace("{file}", __file__).replace("{line}", str(line)))
    run = recorded()
    (row,) = lines(run.session)
    assert (row.op, row.line, row.samples, row.ns) == ("work", line, 7, 35_000_000)
    (note,) = run.session.processes[0].notes
    assert note == "hot lines: py-spy sampled threads other than the main one"
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_where_it_may_not_the_reason_is_told(stand_in: Path, tmp_path: Path) -> None:
    install(stand_in, 'sys.exit("Permission denied: try sudo")')
    (note,) = recorded().session.processes[0].notes
    assert note == (
        "hot lines are those of the main thread: other threads are not sampled (py-spy could not "
        "watch this process: Permission denied: try sudo)"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_one_that_does_not_end_is_ended(stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.record.outside._END_S", 0.3)
    install(stand_in, "import time\nwhile True: time.sleep(60)")
    watcher = Outside()
    assert watcher.start() == ""
    pid = watcher._watcher
    found, why = watcher.stop([])
    assert found == []
    assert "could not watch" in why
    end = time.monotonic() + 60
    while _alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_it_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *args, **more: None)
    (note,) = recorded().session.processes[0].notes
    assert "other threads are not sampled (py-spy is not installed)" in note


def test_the_real_one() -> None:
    if shutil.which("py-spy") is None:
        pytest.skip("py-spy is not installed")
    if sys.version_info < (3, 11):
        pytest.skip("names of functions are not qualified")

    def run() -> None:
        for _ in range(20):
            work()

    with profile(host="python", lines=True) as recorded:
        time.sleep(0.5)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    if "py-spy sampled" not in recorded.session.processes[0].notes[0]:
        pytest.skip(recorded.session.processes[0].notes[0])
    rows = lines(recorded.session)
    first = work.__wrapped__.__code__.co_firstlineno
    assert sum(row.share for row in rows if first < row.line <= first + 4) > 0.9
