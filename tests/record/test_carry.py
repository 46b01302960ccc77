"""`carry`: work that reaches a thread by a way of the program's own."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable

from tests.hosts.checks import Scene

from opscope import carry, custom_op
from opscope.model import Kind


def test_carry_to_a_worker_of_ones_own(scene: Scene, work: Callable[[int], int]) -> None:
    jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
    done = threading.Event()

    def worker() -> None:
        while (job := jobs.get()) is not None:
            job()
            done.set()

    @custom_op("asks")
    def asks() -> None:
        done.clear()
        jobs.put(carry(lambda: work(5)))
        done.wait()

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    assert carry(work) is work  # nobody records
    with scene:
        asks()
        done.clear()
        jobs.put(lambda: work(7))
        done.wait()
        assert carry(print).__name__ == "print"
        assert pickle.loads(pickle.dumps(carry(print))) is print
    jobs.put(None)
    thread.join()
    assert [row.path for row in scene.calls("note")] == [("asks", "note"), ("note",)]
    assert scene.call("asks").elsewhere_python_ns == 5


def test_carried_and_run_on_the_spot_is_no_task(scene: Scene, work: Callable[[int], int]) -> None:
    @custom_op("asks")
    def asks() -> None:
        carry(work)(5)

    with scene:
        asks()
    assert scene.parts("asks") == {"wall": 10, "python": 5, "sub": 5}
    assert scene.named(Kind.TASK) == []
