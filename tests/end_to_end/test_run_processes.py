"""`opscope run`: threads that outlive the script, work at exit, children of every kind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import opscope

posix = pytest.mark.skipif(sys.platform == "win32", reason="fork is POSIX")


def test_threads_that_outlive_the_script_are_recorded(
    opscope_run: Any, script: Any, calls: Any
) -> None:
    script("""
    import threading

    def later():
        threading.main_thread().join()
        for _ in range(10):
            work()

    for _ in range(3):
        threading.Thread(target=later).start()
    """)
    assert opscope_run("s.py").returncode == 0
    assert calls() == 30


def test_work_at_exit_is_recorded(opscope_run: Any, script: Any, calls: Any) -> None:
    script("""
    import atexit, sys, weakref

    atexit.register(work)
    atexit.register(lambda: (work(), print("bye")))
    sys.exit(3)
    """)
    done = opscope_run("s.py")
    assert (done.returncode, done.stdout) == (3, b"bye\n")
    assert calls() == 2


def test_a_daemon_thread_that_never_ends_does_not_hold_it_up(
    opscope_run: Any, script: Any, folder: Path
) -> None:
    script("""
    import threading

    begun, never = threading.Event(), threading.Event()

    @opscope.custom_op
    def endless():
        begun.set()
        never.wait()

    threading.Thread(target=endless, daemon=True).start()
    begun.wait()
    """)
    assert opscope_run("s.py").returncode == 0
    session = opscope.load(folder / "out.opscope")
    assert session.processes[0].complete
    (row,) = opscope.summary(session)
    assert (row["op"], row["calls"], row["incomplete"]) == ("endless", 1, 1)


@posix
@pytest.mark.parametrize("end", ["os._exit(7)", "sys.exit(7)", "raise SystemExit(7)"])
def test_a_forked_child_leaves_the_file_alone(
    opscope_run: Any, script: Any, calls: Any, end: str
) -> None:
    script(f"""
    import os, sys

    work()
    child = os.fork()
    if child == 0:
        for _ in range(100):
            work()
        {end}
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    work()
    """)
    done = opscope_run("s.py")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"opscope:") == 1
    assert calls() == 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_works_and_leaves_the_file_alone(
    opscope_run: Any, script: Any, calls: Any, method: str
) -> None:
    if sys.platform == "win32" and method != "spawn":
        pytest.skip("no such method here")
    script(f"""
    import multiprocessing

    def child(queue):
        for n in range(100):
            queue.put(work(n))

    if __name__ == "__main__":
        multiprocessing.set_start_method("{method}")
        queue = multiprocessing.SimpleQueue()
        process = multiprocessing.Process(target=child, args=(queue,))
        process.start()
        assert [queue.get() for _ in range(100)] == list(range(1, 101))
        process.join()
        assert process.exitcode == 0
        with multiprocessing.Pool(2) as pool:
            assert pool.map(work, range(50)) == list(range(1, 51))
        work()
        print("done")
    """)
    done = opscope_run("s.py")
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert calls() == 1


def test_a_script_that_goes_to_another_folder(opscope_run: Any, script: Any, calls: Any) -> None:
    script("import os; os.mkdir('there'); os.chdir('there'); work()")
    assert opscope_run("s.py").returncode == 0
    assert calls() == 1


def test_a_recording_inside_a_recording_is_refused_and_says_why(
    opscope_run: Any, script: Any, calls: Any
) -> None:
    script("""
    work()
    try:
        with opscope.profile(output="inner.opscope"):
            pass
    except opscope.UsageError as error:
        print(error)
    work()
    """)
    done = opscope_run("s.py")
    assert done.returncode == 0
    assert b"a recording is already running in this process" in done.stdout
    assert calls() == 2
    assert not Path("inner.opscope").exists()
