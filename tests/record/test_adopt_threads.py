"""Recordings that begin and end while other threads do not stand still."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

from tests.hosts.checks import check

from opscope.hosts.python import custom_op
from opscope.profiler import profile
from opscope.record import scope
from opscope.testing import assert_restored


@custom_op("leaf")
def leaf() -> int:
    return 1


@custom_op("items")
def items() -> Iterator[int]:
    for _ in range(3):
        yield leaf()


@custom_op("work")
def work() -> int:
    with custom_op("block"):
        return sum(items())


def test_recordings_begin_and_end_while_many_threads_work() -> None:
    stop = threading.Event()
    wrong: list[BaseException] = []

    def loop() -> None:
        try:
            while not stop.is_set():
                assert work() == 3
            held = scope.held()
            assert held is None or held.recorder.closed
        except BaseException as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=loop) for _ in range(3)]
    try:
        with assert_restored():
            for thread in threads:
                thread.start()
            for _ in range(8):
                with profile() as run:
                    work()
                    run.pause()
                    work()
                    run.resume()
                    work()
                check(run.session)
                assert run.session.processes[0].broken == ()
            stop.set()
            for thread in threads:
                thread.join()
    finally:
        stop.set()
        sys.setswitchinterval(interval)
    assert wrong == []
