"""Sampling the main thread never changes the program: its alarms, signals, children and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from opscope import custom_op, profile
from opscope.record.alarm import Alarm
from opscope.testing import assert_restored

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no timer signals"
)


@custom_op
def spin(seconds: float) -> int:
    end = time.thread_time() + seconds
    count = 0
    while time.thread_time() < end:
        count += 1
    return count


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with assert_restored():
        yield
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert not [thread for thread in threading.enumerate() if "lookout" in thread.name]


def notes(run: profile) -> list[str]:
    return [note for note in run.session.processes[0].notes if "hot lines" in note]


def sampled(run: profile) -> int:
    return sum(row.get("samples", 0) for row in run.session.samples)


def test_it_samples_and_leaves_nothing_behind() -> None:
    with profile(host="python", lines=True) as run:
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
        spin(1.0)
    assert sampled(run) > 5
    (note,) = notes(run)
    assert note.startswith("hot lines")
    with profile(host="python") as plain:
        spin(0.02)
    assert plain.session.samples == ()


def test_a_handler_of_the_program_s_own_is_respected() -> None:
    rung: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        with profile(host="python", lines=True) as run:
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert notes(run) == ["no hot lines: the program handles SIGALRM itself"]
    assert len(rung) == 1


def test_an_alarm_that_is_set_already_is_respected() -> None:
    signal.alarm(1000)
    with profile(host="python", lines=True) as run:
        assert signal.alarm(0) > 900
    assert notes(run) == ["no hot lines: the program has set an alarm itself"]


@pytest.mark.parametrize("on_main", [True, False])
def test_a_program_that_wants_alarms_gets_them(on_main: bool) -> None:
    rung: list[float] = []

    def sets() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)

    with profile(host="python", lines=True) as run:
        spin(0.05)
        before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
        assert before is signal.SIG_DFL
        began = time.monotonic()
        if on_main:
            sets()
        else:
            thread = threading.Thread(target=sets)
            thread.start()
            thread.join()
        spin(0.2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert len(rung) == 1
    assert rung[0] - began >= 0.05
    end = "hot lines end where the program called signal.signal: it needs the alarm itself"
    assert end in notes(run)


def test_other_signals_and_timers_of_the_program_s_do_not_end_it() -> None:
    with profile(host="python", lines=True) as run:
        for handler in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGUSR1, handler)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    assert not any("end where" in note for note in notes(run))


def test_only_an_alarm_that_is_long_overdue_is_set_again() -> None:
    """An exception may have cut its handler short."""
    far_ns = 10**13
    rung: list[object] = []

    def ring(frame: object) -> int:
        rung.append(frame)
        return far_ns

    alarm = Alarm(ring, lambda name: None)
    assert alarm.start(far_ns) == ""
    try:
        alarm.revive()
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 1000
        assert not rung
        alarm._due_ns -= 2 * far_ns
        alarm.revive()
        end = time.monotonic() + 30
        while not rung:
            assert time.monotonic() < end
    finally:
        alarm.stop()


def test_recording_from_another_thread_cannot_sample() -> None:
    runs: list[profile] = []

    def record() -> None:
        with profile(host="python", lines=True) as run:
            spin(0.01)
        runs.append(run)

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    assert "not started on the main thread" in notes(runs[0])[0]


def test_it_can_be_stopped_on_another_thread() -> None:
    run = profile(host="python", lines=True).start()
    spin(0.05)
    thread = threading.Thread(target=run.stop)
    thread.start()
    thread.join()
    spin(0.05)  # here the handler takes itself away
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_what_blocks_is_not_interrupted() -> None:
    here, there = os.pipe()
    with profile(host="python", lines=True):
        waiter = threading.Timer(0.1, os.write, (there, b"x"))
        waiter.start()
        spin(0.02)
        assert os.read(here, 1) == b"x"
        began = time.monotonic()
        time.sleep(0.05)
        assert time.monotonic() - began >= 0.05
        lock = threading.Lock()
        with lock:
            assert not lock.acquire(timeout=0.05)
        assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0
        waiter.join()
    os.close(here)
    os.close(there)


def test_a_pause_lasts_until_the_program_s_own_signal() -> None:
    woken: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: woken.append(number))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        with profile(host="python", lines=True) as run:
            timer.start()
            signal.pause()
            at_the_end = list(woken)
            timer.join()
            spin(0.1)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert at_the_end == [signal.SIGUSR1]
    assert sampled(run) > 3


def test_an_exception_in_the_program_leaves_the_sampling_on() -> None:
    # Where the tests run in the background of a shell, SIGINT is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with profile(host="python", lines=True) as run:
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            spin(0.01)
    signal.signal(signal.SIGINT, before)
    assert sampled(run) > 5


def test_a_fault_of_ours_ends_the_sampling_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from opscope.record import lines

    def fails(*args: object) -> None:
        raise OSError("a fault of ours")

    monkeypatch.setattr(lines, "stack_of", fails)
    with profile(host="python", lines=True) as run:
        assert spin(0.05) > 0
    assert run.session.processes[0].broken == ("hot lines: OSError: a fault of ours",)


ENDS = {
    "in order": ("profile.stop()", 0, ""),
    "without a stop": ("", 0, ""),
    "by an exception": ("raise SystemExit(7)", 7, ""),
    "by os._exit": ("import os; os._exit(5)", 5, ""),
    "by exec": (
        "import os, sys; os.execv(sys.executable, [sys.executable, '-c', "
        "'import time; time.sleep(0.2); print(\"next\")'])",
        0,
        "next\n",
    ),
    "after an exec that failed": (
        "import os, contextlib\n"
        "with contextlib.suppress(OSError): os.execv('/nothing/there', ['x'])\n"
        "spin()\n"
        "profile.stop(); print(sum(s.get('samples', 0) for s in profile.session.samples) > 15)",
        0,
        "True\n",
    ),
    "in a forked child": (
        "import os, signal\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    spin()\n"
        "    ours = signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL\n"
        "    os._exit(3 if ours or signal.getitimer(signal.ITIMER_REAL)[0] else 0)\n"
        "print(os.waitpid(pid, 0)[1])\n"
        "spin()\n"
        "profile.stop(); print(sum(s.get('samples', 0) for s in profile.session.samples) > 15)",
        0,
        "0\nTrue\n",
    ),
    "with an alarm to be killed by": (
        "import signal, time\nsignal.alarm(1)\ntime.sleep(20)", -signal.SIGALRM, ""
    ),
}  # fmt: skip

PROGRAM = """
import time
from opscope import custom_op, profile as profiled

@custom_op
def spin():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass

profile = profiled(host="python", lines=True).start()
spin()
"""


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_as_it_would(end: str) -> None:
    code, status, said = ENDS[end]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, said, "")
