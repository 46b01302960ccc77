"""Forked children, and interpreters that end while work is pending."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from opscope import engine as nd

from .test_custom import add_one, define

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

PRELUDE = """
import atexit, gc, os, sys, threading, time
from opscope import engine as nd

@nd.register("twice")
class Prop(nd.CustomOpProp):
    def create_operator(self, ctx, shapes, types):
        return Op()

class Op(nd.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        time.sleep(0.01)
        (in_data[0] + 0).wait_to_read()
        self.assign(out_data[0], req[0], in_data[0] * 2)
"""


def in_child(check: Callable[[], bool]) -> int:
    """Run `check` in a forked child; 0 if it was true."""
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    deadline = time.monotonic() + 40
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            pytest.fail("the child hangs")
        time.sleep(0.002)


@needs_fork
def test_forked_child_works_with_what_was_pending(custom_kind: str) -> None:
    define("p_add", add_one)
    a = nd.zeros(4)
    for _ in range(50):
        a += 1
    b = nd.custom(a, op_type="p_add")

    def check() -> bool:
        c = nd.custom(b * 2, op_type="p_add")
        nd.waitall()
        return c.asnumpy().tolist() == [103] * 4

    assert in_child(check) == 0
    assert nd.custom(b, op_type="p_add").asnumpy().tolist() == [52] * 4


@needs_fork
def test_grandchildren_and_failures_in_a_child() -> None:
    nd.use(workers=2)

    def check() -> bool:
        nd.random.normal(0, -1)
        try:
            nd.waitall()
        except ValueError:
            return in_child(lambda: (nd.ones(1) + 1).asscalar() == 2) == 0
        return False

    assert in_child(check) == 0
    nd.waitall()
    nd.use()


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork_inside_a_body(custom_kind: str) -> None:
    codes: list[int] = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        x = ins[0] + 1
        x.wait_to_read()

        def check() -> bool:
            y = x * 3
            nd.waitall()
            return y.asscalar() == 6 and len(nd.running_calls()) == 1

        codes.append(in_child(check))
        op.assign(outs[0], req[0], x)

    define("p_forks", forward)
    assert nd.custom(nd.ones(1), op_type="p_forks").asscalar() == 2
    assert codes == [0]


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_what_other_threads_were_running_fails_in_the_child() -> None:
    nd.use(workers=2)
    go, begun = threading.Event(), threading.Event()
    codes: list[int] = []
    var = nd.new_var()
    nd.push_sync(lambda: (begun.set(), go.wait()), (), (var,), "lost")

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        begun.wait()

        def check() -> bool:
            try:
                nd.wait_for_var(var)
            except nd.EngineError as error:
                return "lost in a fork" in str(error)
            return False

        codes.append(in_child(check))
        go.set()
        op.assign(outs[0], req[0], 1)

    define("p_forks", forward)
    nd.custom(nd.ones(1), op_type="p_forks").wait_to_read()
    nd.waitall()
    assert codes == [0]
    nd.use()


@needs_fork
def test_fork_leaves_no_threads_of_ours_in_the_way() -> None:
    nd.use(workers=3)
    for _ in range(20):
        nd.ones(3) + 1
    counts: list[int] = []
    pid = os.fork()
    if pid == 0:
        os._exit(threading.active_count())
    _, status = os.waitpid(pid, 0)
    counts.append(os.waitstatus_to_exitcode(status))
    assert counts == [1]
    assert (nd.ones(1) + 1).asscalar() == 2
    nd.use()


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    code = PRELUDE + textwrap.dedent(script)
    return subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", code],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        check=False,
    )


def clean(done: subprocess.CompletedProcess[str], lines: list[str]) -> None:
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.split() == lines


KINDS = [
    "nd.use(workers=1)",
    "nd.use(workers=3)",
    "nd.use(workers=2, custom_on='workers')",
    "nd.use('naive')",
    "pass",
]


@pytest.mark.parametrize("kind", KINDS)
def test_exit_with_work_pending_does_the_work(kind: str) -> None:
    clean(
        run(
            f"""
            {kind}
            a = nd.ones(1)
            for n in range(200):
                a += 1
            kept = [nd.custom(a, op_type="twice") for _ in range(20)]
            for n in range(3):
                nd.push_sync(lambda: (time.sleep(0.01), os.write(1, b"done\\n")))
            """
        ),
        ["done"] * 3,
    )


@pytest.mark.parametrize("kind", KINDS[1:4])
def test_work_pushed_after_the_engine_has_finished_still_runs(kind: str) -> None:
    # Handlers registered before the engine's run after it.
    clean(
        run(
            f"""
            def late():
                a = nd.custom(nd.ones(2) + 1, op_type="twice")
                with nd.bulk(4):
                    a += 1
                    a += 1
                nd.waitall()
                print(*a.asnumpy().tolist())
            atexit.unregister(nd.get.__globals__["_finish"])
            atexit.register(late)
            atexit.register(nd.get.__globals__["_finish"])
            {kind}
            nd.ones(3) + 1
            """
        ),
        ["6.0", "6.0"],
    )


#: A thread that always has something pending, as one that fetches ahead.
FETCHES_AHEAD = """
nd.use(workers=2)
def fetch():
    ahead = []
    while True:
        ahead.append(nd.new_var())
        nd.push_sync(lambda: time.sleep(0.02), (), (ahead[-1],))
        if len(ahead) > 8:
            nd.wait_for_var(ahead.pop(0))
threading.Thread(target=fetch, daemon=True).start()
time.sleep(0.1)
"""


def test_exit_while_another_thread_goes_on_pushing() -> None:
    script = """
    kept = nd.custom(nd.ones(1), op_type="twice")
    nd.push_sync(lambda: os.write(1, b"done\\n"))
    """
    clean(run(FETCHES_AHEAD + textwrap.dedent(script)), ["done"])


@needs_fork
def test_fork_while_another_thread_goes_on_pushing() -> None:
    script = """
    a = nd.custom(nd.ones(1), op_type="twice")
    pid = os.fork()
    print(a.asscalar() + 1, flush=True)
    if not pid:
        print(nd.custom(a, op_type="twice").asscalar(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    os._exit(0)
    """
    done = run(FETCHES_AHEAD + textwrap.dedent(script), "-Wignore::DeprecationWarning")
    assert done.stderr == ""
    assert sorted(done.stdout.split()) == ["3.0", "3.0", "4.0"]


def test_exit_with_arrays_in_cycles_and_a_bulk_scope_open() -> None:
    clean(
        run(
            """
            a = nd.ones(2)
            cycle = [a, a + 1]
            cycle.append(cycle)
            scope = nd.bulk(100)
            scope.__enter__()
            nd.push_sync(lambda: print("done", flush=True))
            class Holder:
                def __init__(self): self.array = nd.ones(2)
                def __del__(self): self.array = None
            kept = Holder()
            """
        ),
        ["done"],
    )


def test_exit_code_of_the_program_is_kept_and_unreported_failures_are_quiet() -> None:
    done = run(
        """
        nd.push_sync(lambda: 1 / 0)
        nd.ones(2) + 1
        sys.exit(7)
        """
    )
    assert done.stderr == ""
    assert done.returncode == 7


@needs_fork
def test_a_child_that_exits_normally_finishes_its_work() -> None:
    clean(
        run(
            """
            nd.ones(2) + 1
            pid = os.fork()
            if pid == 0:
                nd.push_sync(lambda: (time.sleep(0.01), print("child", flush=True)))
            else:
                os.waitpid(pid, 0)
                nd.push_sync(lambda: (time.sleep(0.01), print("parent", flush=True)))
            """
        ),
        ["child", "parent"],
    )


def test_importing_starts_no_thread() -> None:
    clean(run("print(threading.active_count())"), ["1"])
