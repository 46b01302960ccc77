"""The clocks of the system, as far as they can be had."""

from __future__ import annotations

import threading
import time

import pytest

from opscope.record import SystemClock
from opscope.record import clock as clocks

clock = SystemClock()


def burn() -> None:
    """Use some CPU time."""
    before = time.thread_time_ns()
    while time.thread_time_ns() == before:
        sum(range(1000))


def test_they_move_forward() -> None:
    now, cpu, wall = clock.now(), clock.cpu(), clock.wall()
    burn()
    assert clock.now() > now
    assert clock.cpu() > cpu
    assert clock.wall() >= wall


@pytest.mark.skipif(clock.cpu_of(threading.get_ident()) < 0, reason="not on this system")
def test_the_cpu_time_of_another_thread() -> None:
    seen: list[int] = []
    done, go = threading.Event(), threading.Event()

    def work() -> None:
        seen.append(clock.cpu())
        burn()
        done.set()
        go.wait(30)
        burn()
        seen.append(clock.cpu())

    thread = threading.Thread(target=work)
    thread.start()
    done.wait(30)
    between = clock.cpu_of(thread.ident or 0)
    go.set()
    thread.join()
    assert seen[0] < between < seen[1]


def test_its_own_time_is_the_same_by_both_ways() -> None:
    if (other := clock.cpu_of(threading.get_ident())) >= 0:
        assert clock.cpu() >= other


def test_threads_that_are_gone_or_never_were() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert clock.cpu_of(thread.ident or 0) == -1
    assert clock.cpu_of(12345) == -1


def test_a_thread_without_a_number_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nameless:
        ident, native_id = 77, None

    monkeypatch.setattr(clocks.threading, "enumerate", lambda: [Nameless])
    monkeypatch.setattr(clocks.time, "pthread_getcpuclockid", lambda ident: 1 / 0, raising=False)
    monkeypatch.setattr(clocks.sys, "platform", "linux")
    with pytest.raises(ZeroDivisionError):
        clock.cpu_of(77)
