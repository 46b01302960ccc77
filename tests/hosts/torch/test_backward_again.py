"""Backward inside backward, backward of backward, and forward calls that run again for it.

Tags as in test_backward.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.hosts.torch.backward import KINDS, forward_of, fwd, tagged_function, tags, times
from tests.hosts.torch.ops import owned, record, rows, torch, wrong_yet
from torch.utils.checkpoint import checkpoint

#: What checkpoints of torch 2.4 call themselves.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.cpu.amp.autocast:FutureWarning")
TAGS = range(1, 6)
ONCE = dict.fromkeys(TAGS, 1)


@pytest.fixture(params=list(KINDS))
def op(request: pytest.FixtureRequest) -> Any:
    """`op(x, tag)` of every kind of operator that can be differentiated."""
    return KINDS[request.param](request.param)


def ones() -> Any:
    return torch.ones(3, requires_grad=True)


def test_backward_of_a_backward(op: Any) -> None:
    """In the second pass the nodes of what a backward call ran are a backward call of their own,
    which points to that one."""

    def program() -> None:
        x = ones()
        for tag in TAGS:
            y = op(x, tag).square().sum()
            (slope,) = torch.autograd.grad(y, x, create_graph=True)
            slope.sum().backward()

    session = record(program)
    assert tags(session, op, fwd(op)) == ONCE
    backward = {row.call: row for row in rows(session, op, "backward")}
    first = [row for row in backward.values() if row.forward_call not in backward]
    second = [row for row in backward.values() if row.forward_call in backward]
    for row in first:
        assert forward_of(session, op, row) == (fwd(op), owned(session, row)["aten::cos"])
    assert tags(session, op, "backward") - tags_of(session, second) == dict.fromkeys(TAGS, 2)
    if op.kind in ("composite", "marked"):
        assert not second  # no backward of theirs ran anything but formulas of torch's
    else:
        wanted = [owned(session, backward[row.forward_call])["aten::cos"] for row in second]
        assert [owned(session, row)["aten::sin"] for row in second] == wanted == list(TAGS)


def tags_of(session: Any, found: list[Any]) -> Any:
    return type(tags(session, "", ""))(owned(session, row)["aten::cos"] for row in found)


def test_backward_inside_a_backward(op: Any) -> None:
    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, tag: int) -> Any:
            ctx.tag = tag
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                op(x, ctx.tag).sum().backward()
            return x.grad * slope, None

    def program() -> None:
        x = ones()
        sum(Outer.apply(x, tag) for tag in TAGS).sum().backward()

    session = record(program)
    outer = rows(session, Outer, "backward")
    forward = [row.call for row in rows(session, Outer, "forward")]
    assert [row.forward_call for row in outer] == forward[::-1]
    assert len(rows(session, op)) == 2 * len(TAGS)
    assert tags(session, op, "backward") == ONCE
    for row in rows(session, op, "backward"):
        found = forward_of(session, op, row)
        assert found is not None
        assert found[1] == owned(session, row)["aten::cos"]
        assert row.path == ("_backward_Outer", f"_backward_{op.shown}")
    assert {row.path for row in rows(session, op) if row.phase != "backward"} == {
        ("_backward_Outer", op.shown)
    }
    for row in outer:
        inside = [other for other in rows(session, op) if other.parent == row.call]
        assert len(inside) == 2
        assert owned(session, row)["aten::mul"] == 1
    unseen = op.kind in ("composite", "marked")
    with wrong_yet(unseen, "counts as a forward call: nothing tells that it is done again"):
        assert tags(session, op, "recompute") == ONCE


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("nested", [False, True])
def test_a_checkpoint_runs_forward_again(op: Any, reentrant: bool, nested: bool) -> None:
    def block(x: Any, tag: int) -> Any:
        return op(x.tanh(), tag).tanh()

    def twice(x: Any, tag: int) -> Any:
        return checkpoint(block, x, tag, use_reentrant=reentrant).tanh()

    def program() -> None:
        y = ones()
        for tag in TAGS:
            y = checkpoint(twice if nested else block, y, tag, use_reentrant=reentrant)
        y.sum().backward()

    session = record(program)
    assert tags(session, op, "backward") == ONCE
    # A checkpoint of the older kind runs forward without gradients: the second time makes the node.
    for row in rows(session, op, "backward"):
        found = forward_of(session, op, row)
        assert found is not None
        assert found[1] == owned(session, row)["aten::cos"]
        if op.kind not in ("composite", "marked"):
            assert found[0] == ("recompute" if reentrant else "forward")
    assert not any("failed" in row.flags for row in rows(session, op))
    assert tags(session, op, fwd(op)) == ONCE
    again = tags(session, op, "recompute")
    assert again.keys() == ONCE.keys()
    assert set(again.values()) <= ({1, 2} if nested else {1})


def saving_function() -> Any:
    """Its backward needs what its forward saved, so a checkpoint around it alone has to run it."""

    class Saving(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, tag: int) -> Any:
            ctx.tag = tag
            ctx.save_for_backward(x)
            return times(torch.sin, x, tag)

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return times(torch.cos, slope, ctx.tag) * ctx.saved_tensors[0], None

    return Saving


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_stops_early_and_nothing_has_failed(reentrant: bool) -> None:
    """torch breaks off the second forward as soon as it has what it needs, by an exception."""
    from opscope import custom_op

    function = saving_function()

    @custom_op("block")
    def block(x: Any, tag: int) -> Any:
        return function.apply(x, tag)

    def program() -> None:
        y = ones()
        for tag in TAGS:
            y = checkpoint(block, y, tag, use_reentrant=reentrant)
        y.sum().backward()

    session = record(program)
    for phase in ("forward", "recompute", "backward"):
        assert tags(session, function, phase) == ONCE
    assert len(rows(session, "block")) == 2 * len(TAGS)
    failed = [row.op for row in rows(session, "block") if "failed" in row.flags]
    failed += [row.op for row in rows(session, function) if "failed" in row.flags]
    with wrong_yet(not reentrant, "the exception that torch breaks off with passes through block"):
        assert not failed


def test_a_recompute_that_is_not_one() -> None:
    """A forward call in a backward pass counts as such unless a checkpoint asked for it."""
    inner = tagged_function("Inner")

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, tag: int) -> Any:
            ctx.tag = tag
            return x.exp()

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return inner.apply(slope, ctx.tag), None

    def program() -> None:
        x = ones()
        for tag in TAGS:
            y = Outer.apply(x, tag).square().sum()
            y.backward(retain_graph=True)
            (slope,) = torch.autograd.grad(y, x, create_graph=True)
            slope.sum().backward()

    session = record(program)
    # Each three times forward, once of them with a graph, and that one is differentiated once.
    assert tags(session, inner, "forward") == dict.fromkeys(TAGS, 3)
    assert tags(session, inner, "recompute") == {}
    assert tags(session, inner, "backward") == ONCE
    for row in rows(session, inner, "backward"):
        assert forward_of(session, inner, row) == ("forward", owned(session, row)["aten::cos"])
