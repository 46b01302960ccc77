"""Backward passes over which torch's profiler is emptied."""

from __future__ import annotations

from typing import Any

import pytest
from tests.hosts.torch.ops import differentiable, library, negative, owned, rows, torch
from tests.hosts.torch.windowed import due, lossy, recorded

import opscope


@pytest.mark.parametrize("kind", ["custom_op", "function"])
def test_backward_in_a_later_window_than_its_forward(kind: str, windows: list[int]) -> None:
    if kind == "custom_op":
        op = differentiable("later", negative, lambda slope: torch.cos(slope))
        call, name = op, op._qualname
    else:
        cls = type(
            "Later",
            (torch.autograd.Function,),
            {
                "__module__": __name__,
                "forward": staticmethod(lambda ctx, x: torch.neg(x)),
                "backward": staticmethod(lambda ctx, slope: torch.cos(slope)),
            },
        )
        call, name = cls.apply, "Later"
    _later(call, name, windows)


@pytest.mark.parametrize("windows_between", [1, 2, 5])
def test_backward_of_an_unhooked_operator_in_a_later_window(
    windows_between: int, windows: list[int]
) -> None:
    op = library("later", lambda x: torch.sin(x))
    _later(op, op._qualname, windows, windows_between)


def _later(call: Any, name: str, windows: list[int], between: int = 1) -> None:
    x = torch.ones(3, requires_grad=True)

    def program(run: opscope.profile) -> None:
        for _ in range(10):
            y = call(x)
            for _ in range(between):
                due(run)
            assert run._recorder is not None
            y.sum().backward()

    session = recorded(program)
    assert len(windows) > 10 * between
    forward, backward = rows(session, name, "forward"), rows(session, name, "backward")
    assert len(forward) == len(backward) == 10
    assert [row.forward_call for row in backward] == [row.call for row in forward]
    for row in backward:
        assert owned(session, row)["aten::cos"] == 1 or lossy(row)


def test_a_window_that_ends_inside_a_backward_pass(windows: list[int]) -> None:
    """Of nodes of the graph that are no custom operators' at that moment nothing is doubled."""
    runs: list[opscope.profile] = []
    op = library("chain", lambda x: torch.sin(torch.sin(x)))
    x = torch.ones(3, requires_grad=True)

    def program(run: opscope.profile) -> None:
        runs[:] = [run]
        for _ in range(10):
            y = op(x)
            y.register_hook(lambda slope: due(runs[0]))
            (y * 2).sum().backward()

    session = recorded(program)
    forward, backward = rows(session, op, "forward"), rows(session, op, "backward")
    assert len(forward) == 10
    linked = [row.forward_call for row in backward]
    assert linked == [row.call for row in forward]
    assert [owned(session, row)["aten::cos"] for row in backward] == [2] * 10
