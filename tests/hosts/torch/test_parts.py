"""The time of a call lands in the right part, by what the program itself measured in that run.

The machine may be busy with other things, so a comparison that fails is tried again, three times in
all. Nothing is compared with an absolute time.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from tests.hosts.checks import parts
from tests.hosts.torch.ops import (
    custom,
    differentiable,
    fresh,
    negative,
    owned,
    record,
    rows,
    torch,
)

from opscope.analyse import CallRow

#: How long a statement waits or works, in s, and how far from the truth a part may be.
LONG, NEAR = 0.03, 0.05
TRIES = 3


class Statement:
    """Runs what it is given, and says how long that took and how much of it was work."""

    def __init__(self, statement: Callable[[], object]) -> None:
        self.statement = statement
        self.wall_ns = self.cpu_ns = 0

    def __call__(self, x: Any) -> Any:
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        self.statement()
        self.cpu_ns = time.thread_time_ns() - cpu
        self.wall_ns = time.perf_counter_ns() - wall
        return torch.neg(x)


def spin() -> None:
    """Works, on its thread, for so long."""
    until = time.thread_time_ns() + LONG * 1e9
    while time.thread_time_ns() < until:
        sum(range(50))


def sleeps() -> None:
    time.sleep(LONG)


def bare_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(LONG, lock.release).start()
    lock.acquire()


def future() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_unwatched_sleep).result()


def joins() -> None:
    thread = threading.Thread(target=_unwatched_sleep)
    thread.start()
    thread.join()


def gets() -> None:
    box: queue.Queue[int] = queue.Queue()
    threading.Timer(LONG, box.put, [1]).start()
    box.get()


def half() -> None:
    spin()
    time.sleep(LONG)


def _unwatched_sleep() -> None:
    threading.Event().wait(LONG)


WAITS = {f.__name__: f for f in (sleeps, bare_lock, future, joins, gets)}
STATEMENTS = {**WAITS, "spin": spin, "half": half}


@contextmanager
def rival() -> Iterator[None]:
    """Another thread that wants the GIL all the time."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def function(body: Callable[[Any], Any], backward: Callable[[Any], Any] = lambda g: g) -> Any:
    return type(
        fresh("Parts").replace(":", "_"),
        (torch.autograd.Function,),
        {
            "__module__": __name__,
            "forward": staticmethod(lambda ctx, x: body(x)),
            "backward": staticmethod(lambda ctx, slope: backward(slope)),
        },
    )


def as_custom(body: Any) -> tuple[Any, str]:
    op = custom("parts", body)
    return op, op._qualname


def as_custom_with_grad(body: Any) -> tuple[Any, str]:
    op = differentiable("parts", body, negative)
    return op, op._qualname


def as_function(body: Any) -> tuple[Any, str]:
    cls = function(body)
    return cls.apply, cls.__name__


KINDS = {f.__name__: f for f in (as_custom, as_custom_with_grad, as_function)}


def call_of(made: tuple[Any, str], *, grad: bool) -> CallRow:
    op, name = made
    x = torch.ones(3, requires_grad=grad)
    (row,) = rows(record(lambda: op(x)), name, "forward")
    assert not {"failed", "incomplete", "clamped", "lossy"} & set(row.flags)
    return row


def compare(row: CallRow, truth: Statement, *, only: str | None = None) -> str:
    """What is wrong with the parts of a call; nothing where nothing is."""
    if row.wait_ns is None or row.python_ns is None:
        return f"not measured: {parts(row)}"
    allowed = NEAR * truth.wall_ns
    wait, work = truth.wall_ns - truth.cpu_ns, truth.cpu_ns
    wrong = abs(row.wait_ns - wait) > allowed or abs(row.python_ns - work) > allowed
    if row.wall_ns < truth.wall_ns:
        return f"shorter than its statement: {row.wall_ns} < {truth.wall_ns}"
    return f"{parts(row)}, in truth {wait=} {work=} {row.flags}" if wrong else ""


def tried(attempt: Callable[[], str]) -> None:
    """Fails when every attempt tells of something wrong."""
    told = []
    for _ in range(TRIES):
        told.append(attempt())
        if not told[-1]:
            return
    pytest.fail("\n".join(told))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_waiting_and_python_are_told_apart(kind: str, statement: str) -> None:
    def attempt() -> str:
        truth = Statement(STATEMENTS[statement])
        row = call_of(KINDS[kind](truth), grad=kind != "as_custom")
        return compare(row, truth)

    tried(attempt)


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_thread_takes_of_the_gil_is_waiting(kind: str) -> None:
    # The program's own clocks do not see what the rival takes before and after the statement: as
    # much as it may keep the lock each time.
    usual = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)

    def attempt() -> str:
        truth = Statement(spin)
        with rival():
            row = call_of(KINDS[kind](truth), grad=kind != "as_custom")
        return compare(row, truth)

    try:
        tried(attempt)
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("kind", ["differentiable", "function"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_same_holds_of_backward(kind: str, statement: str) -> None:
    def attempt() -> str:
        truth = Statement(STATEMENTS[statement])
        if kind == "function":
            cls = function(negative, truth)
            op, name = cls.apply, cls.__name__
        else:
            op = differentiable("parts", negative, lambda slope: truth(slope))
            name = op._qualname
        x = torch.ones(3, requires_grad=True)
        session = record(lambda: op(x).sum().backward())
        (row,) = rows(session, name, "backward")
        assert owned(session, row)["aten::neg"] == 1
        return compare(row, truth)

    tried(attempt)


@pytest.mark.parametrize("kind", KINDS)
def test_an_inner_call_keeps_its_own_time(kind: str) -> None:
    """The outer call only works, the inner one only sleeps."""

    def attempt() -> str:
        inner = Statement(sleeps)
        inside = KINDS[kind](inner)
        outer = Statement(spin)

        def body(x: Any) -> Any:
            return outer(inside[0](x))

        op, name = KINDS[kind](body)
        x = torch.ones(3, requires_grad=kind != "as_custom")
        session = record(lambda: op(x))
        (above,) = rows(session, name, "forward")
        (below,) = rows(session, inside[1], "forward")
        assert below.parent == above.call
        assert (above.sub_ns or 0) >= below.wall_ns
        return compare(below, inner) or compare(above, outer)

    tried(attempt)


# --- the wrapper ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grad", [False, True])
def test_the_wrapper_is_dispatch_and_the_rest_is_the_bracket(kind: str, grad: bool) -> None:
    bracket: list[int] = []

    def body(x: Any) -> Any:
        began = time.perf_counter_ns()
        y = torch.neg(x)
        bracket.append(time.perf_counter_ns() - began)
        return y

    op, name = KINDS[kind](body)
    x = torch.ones(3, requires_grad=grad)
    session = record(lambda: [op(x) for _ in range(20)])
    found = rows(session, name, "forward")
    assert len(found) == 20
    for row, inside in zip(found, bracket, strict=True):
        assert row.dispatch_ns is not None
        assert row.dispatch_ns > 0
        assert row.wall_ns - row.dispatch_ns >= inside
        rest = sum(parts(row).get(part, 0) for part in ("python", "sub", "wait", "runtime"))
        assert rest == row.wall_ns - row.dispatch_ns


def test_dispatch_is_not_work_of_the_function() -> None:
    """A bare operator costs the wrapper only, most of its time; one that works, nearly nothing."""

    def attempt() -> str:
        truth = Statement(spin)
        (bare, called), (long, longer) = as_custom_with_grad(negative), as_custom_with_grad(truth)
        x = torch.ones(3, requires_grad=True)
        session = record(lambda: (bare(x), bare(x), long(x)))
        short, row = rows(session, called, "forward")[1], rows(session, longer, "forward")[0]
        assert short.dispatch_ns is not None
        assert row.dispatch_ns is not None
        if short.dispatch_ns < short.wall_ns / 2:
            return f"bare: {parts(short)}"
        return "" if row.dispatch_ns < row.wall_ns / 5 else f"long: {parts(row)}"

    tried(attempt)
