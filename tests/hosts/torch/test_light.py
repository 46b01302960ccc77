"""The light mode: calls, their parts, tasks and backward links, without torch's profiler."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.torch.ops import (
    differentiable,
    fresh,
    library,
    negative,
    nothing_hooked,
    owned,
    rows,
    tasks,
    torch,
)

import opscope
from opscope.analyse import span_records
from opscope.errors import UsageError
from opscope.hosts.torch.kineto import Kineto
from opscope.model import Kind, Session
from opscope.testing import assert_restored


@pytest.fixture(autouse=True)
def no_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts torch's profiler here fails."""

    def start(self: Kineto) -> None:
        raise AssertionError("torch's profiler was started")

    monkeypatch.setattr(Kineto, "start", start)
    monkeypatch.setattr(Kineto, "_begin", start)


def light(program: Any) -> Session:
    with assert_restored(), nothing_hooked(), opscope.profile(mode="light") as run:
        program()
        assert not torch.autograd.profiler._is_profiler_enabled
    assert run.session.processes[0].broken == ()
    check(run.session)
    return run.session


def body(x: Any) -> Any:
    until = time.thread_time_ns() + 10_000_000
    while time.thread_time_ns() < until:
        pass
    time.sleep(0.02)
    return torch.neg(x)


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return body(x)

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        return body(slope)


def both(kind: str) -> tuple[Any, str]:
    if kind == "function":
        return Slow.apply, "Slow"
    op = differentiable("slow", body, lambda slope: body(slope))
    return op, op._qualname


@pytest.mark.parametrize("kind", ["function", "custom_op"])
def test_calls_their_parts_and_links(kind: str) -> None:
    op, name = both(kind)
    x = torch.ones(3, requires_grad=True)
    op(x).sum().backward()  # torch's own preparations, which may take a second
    session = light(lambda: [op(x).sum().backward() for _ in range(2)])
    forward, backward = rows(session, name, "forward"), rows(session, name, "backward")
    assert len(forward) == len(backward) == 2
    assert [row.forward_call for row in backward] == [row.call for row in forward]
    for row in (*forward, *backward):
        assert row.wait_ns is not None
        assert row.python_ns is not None
        assert row.wait_ns > row.wall_ns / 3 > 0
        assert row.python_ns > row.wall_ns / 10
        assert row.native_ns in (None, 0)


def test_there_are_no_operators_of_torchs() -> None:
    op, name = both("custom_op")
    unhooked = library("unseen", negative)
    x = torch.ones(3, requires_grad=True)
    session = light(lambda: (op(x), unhooked(x), torch.exp(x)))
    kinds = set(session.spans["kind"].tolist())
    assert not kinds & {Kind.OP, Kind.RANGE, Kind.DEVICE}
    assert len(rows(session, name)) == 1
    assert rows(session, unhooked) == []
    (sight,) = [sight for sight in session.sight if sight.host == "torch"]
    assert "sub-operators" in sight.misses
    assert "sub-operators" not in sight.sees


def test_nested_calls_and_tasks_are_their_callers() -> None:
    inner = differentiable("inner", negative, lambda slope: torch.neg(slope))

    def outer_body(x: Any) -> Any:
        inner(x)
        thread = threading.Thread(target=inner, args=(x,))
        thread.start()
        thread.join()
        return torch.neg(x)

    outer = differentiable("outer", outer_body, lambda slope: torch.neg(slope))
    session = light(lambda: outer(torch.ones(3)))
    (row,) = rows(session, outer)
    inside = rows(session, inner)
    assert [below.parent for below in inside] == [row.call, row.call]
    assert len({below.lane for below in inside}) == 2
    assert owned(session, row) == {inner._qualname: 2}
    assert set(tasks(session).values()) == {1}
    assert {owner for _, owner in tasks(session)} == {row.call}


def test_an_exception_is_a_failed_call() -> None:
    def bad(x: Any) -> Any:
        raise KeyError("mine")

    op = differentiable("bad", bad, lambda slope: slope)

    def program() -> None:
        with pytest.raises(KeyError, match="mine"):
            op(torch.ones(3))

    (row,) = rows(light(program), op)
    assert "failed" in row.flags


def test_the_programs_own_profiler_is_left_alone() -> None:
    op, name = both("function")
    x = torch.ones(3)

    def program() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
            op(x)
        seen.append(sum(e.name() == "aten::neg" for e in own.profiler.kineto_results.events()))

    seen: list[int] = []
    with assert_restored(), opscope.profile(mode="light") as run:
        program()
    assert seen == [1]
    assert len(rows(run.session, name)) == 1
    assert run.session.processes[0].notes == ()
    assert not any(record["kind"] == "op" for record in span_records(run.session))


def test_there_is_no_other_mode() -> None:
    with pytest.raises(UsageError, match="no mode is called 'dark'"):
        opscope.profile(mode="dark")


SCRIPT = """
import torch
from opscope.hosts.torch.kineto import Kineto
def start(self):
    raise AssertionError("started")
Kineto.start = start
def kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.neg(x)
op = torch.library.custom_op("opscope_light::op", kernel, mutates_args=())
print(op(torch.ones(2)).tolist())
"""


def test_the_command_line(tmp_path: Path) -> None:
    script, file = tmp_path / "script.py", tmp_path / fresh("run").replace(":", "_")
    script.write_text(SCRIPT, "utf-8")
    command = ["-m", "opscope", "run", "--mode", "light", "-o", str(file), str(script)]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "[-1.0, -1.0]" in done.stdout
    session = opscope.load(file)
    assert session.processes[0].broken == ()
    assert len(rows(session, "opscope_light::op")) == 1
    assert not (session.spans["kind"] == Kind.OP).any()
