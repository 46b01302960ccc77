"""Every backward call is its operator's, and joined to the forward call that it is of.

A call with tag n runs n times `sin` forward and n times `cos` backward, and no other call has that
tag, so both ends of a link can be told without opscope.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from tests.hosts.torch.backward import KINDS, forward_of, fwd, tagged_function, tags
from tests.hosts.torch.ops import owned, record, rows, sees_threads, torch

from opscope.model import Session

TAGS = range(1, 6)


@pytest.fixture(params=list(KINDS))
def op(request: pytest.FixtureRequest) -> Any:
    """`op(x, tag)` of every kind of operator that can be differentiated."""
    return KINDS[request.param](request.param)


def ones() -> Any:
    return torch.ones(3, requires_grad=True)


def joined(session: Session, op: Any, passes: int = 1, wanted: Any = TAGS) -> None:
    """Each tag has one forward call and so many backward calls that point to it."""
    assert tags(session, op, fwd(op)) == dict.fromkeys(wanted, 1)
    assert tags(session, op, "backward") == dict.fromkeys(wanted, passes)
    for row in rows(session, op, "backward"):
        assert forward_of(session, op, row) == (fwd(op), owned(session, row)["aten::cos"])
        assert row.op == row.path[-1].removeprefix("_backward_")
        assert "failed" not in row.flags


def test_one_call_after_the_other(op: Any) -> None:
    def program() -> None:
        x = ones()
        for tag in TAGS:
            op(x, tag).sum().backward()

    joined(record(program), op)


def test_all_forward_calls_first(op: Any) -> None:
    def program() -> None:
        x = ones()
        torch.stack([op(x, tag) for tag in TAGS]).sum().backward()

    joined(record(program), op)


def test_in_a_chain(op: Any) -> None:
    def program() -> None:
        y = ones()
        for tag in TAGS:
            y = op(y, tag)
        y.sum().backward()

    joined(record(program), op)


def test_other_operators_between(op: Any) -> None:
    def program() -> None:
        y, weight = ones(), ones()
        for tag in TAGS:
            y = op((y * weight).tanh(), tag).exp() + weight
        y.sum().backward()

    session = record(program)
    joined(session, op)
    assert not {"aten::sin", "aten::cos"} & owned(session, 0).keys()


def test_in_another_order_than_forward(op: Any) -> None:
    def program() -> None:
        x = ones()
        made = [op(x, tag) for tag in TAGS]
        for y in made[::2] + made[1::2]:
            torch.autograd.grad(y.sum(), x)

    joined(record(program), op)


def test_twice_through_a_retained_graph(op: Any) -> None:
    def program() -> None:
        x = ones()
        y = torch.stack([op(x, tag) for tag in TAGS]).sum()
        y.backward(retain_graph=True)
        y.backward()

    joined(record(program), op, passes=2)


@sees_threads
def test_backward_on_another_thread(op: Any) -> None:
    def program() -> None:
        x = ones()
        made = [op(x, tag) for tag in TAGS]
        torch.autograd.grad(made[0].sum(), x)  # so sequence numbers of the two threads collide
        thread = threading.Thread(
            target=lambda: [op(x, 6).sum().backward(), *(y.sum().backward() for y in made[1:])]
        )
        thread.start()
        thread.join()

    joined(record(program), op, wanted=range(1, 7))


@sees_threads
def test_several_threads_at_once(op: Any) -> None:
    """Each of them differentiates what another one made."""
    size, together = 3, threading.Barrier(3)
    made: dict[int, Any] = {}

    def thread(number: int) -> None:
        x = ones()
        for turn in range(4):
            together.wait(30)
            tag = turn * size + number + 1
            made[tag] = op(x, tag)
            together.wait(30)
            made[turn * size + (number + turn) % size + 1].sum().backward()

    def program() -> None:
        threads = [threading.Thread(target=thread, args=(n,)) for n in range(size)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    joined(record(program), op, wanted=range(1, 4 * size + 1))


def test_a_backward_whose_forward_nobody_saw(op: Any) -> None:
    x = ones()
    before = [op(x, tag) for tag in TAGS]

    def program() -> None:
        op(x, 9).sum().backward()
        for y in before:
            y.sum().backward()

    session = record(program)
    found = [
        (owned(session, row)["aten::cos"], row.forward_call is not None)
        for row in rows(session, op, "backward")
    ]
    by_name = op.kind not in ("composite", "marked")
    assert found == [(9, True), *((tag, False) for tag in TAGS if by_name)]


def test_one_operator_inside_the_other(op: Any) -> None:
    """The inner one of each pair runs where gradients are taken, in a marked function."""
    from opscope import custom_op

    @custom_op("outer")
    def outer(x: Any, tag: int) -> Any:
        return op(x.sin(), tag).sin()

    def program() -> None:
        for tag in TAGS:
            outer(ones(), tag).sum().backward()

    session = record(program)
    joined(session, op)
    assert {row.path for row in rows(session, op, fwd(op))} == {("outer", op.shown)}
    forward = {row.call: row for row in rows(session, "outer", "none")}
    behind = rows(session, "outer", "backward")
    assert len(forward) == len(TAGS)
    # Before and after the inner one's there is a node of the outer one.
    assert [row.forward_call for row in behind] == [call for call in forward for _ in range(2)]
    assert [owned(session, row)["aten::cos"] for row in behind] == [1] * 2 * len(TAGS)


def test_two_functions_of_one_name() -> None:
    one, two = tagged_function("Same"), tagged_function("Same")
    two.__module__ = "another"

    def program() -> None:
        x = ones()
        y = one.apply(x, 1) + two.apply(x, 2)
        (y + one.apply(x, 3) + two.apply(x, 4)).sum().backward()

    session = record(program)
    keys = Counter(row.key for row in rows(session, "Same"))
    assert sorted(keys.values()) == [4, 4]
    for row in rows(session, "Same", "forward"):
        tag = owned(session, row)["aten::sin"]
        (other,) = (r for r in rows(session, "Same", "backward") if r.forward_call == row.call)
        assert other.key == row.key
        assert owned(session, other)["aten::cos"] == tag
        assert ("another" in (row.key or "")) == (tag % 2 == 0)


def test_two_functions_of_one_name_whose_forward_nobody_saw() -> None:
    one, two = tagged_function("Same"), tagged_function("Same")
    two.__module__ = "another"
    x = ones()
    y = one.apply(x, 1) + two.apply(x, 2) + one.apply(x, 3)
    session = record(lambda: y.sum().backward())
    found = {
        (owned(session, row)["aten::cos"], "another" in (row.key or ""), row.forward_call)
        for row in rows(session, "Same")
    }
    assert found == {(1, False, None), (2, True, None), (3, False, None)}


def test_a_backward_inside_the_call_that_made_the_graph(op: Any) -> None:
    from opscope import custom_op

    @custom_op("step")
    def step(tag: int) -> None:
        op(ones().tanh(), tag).sum().backward()

    def program() -> None:
        for tag in TAGS:
            step(tag)

    session = record(program)
    joined(session, op)
    assert [row.phase for row in rows(session, "step")] == ["none"] * len(TAGS)
    for row in rows(session, op):
        assert row.path[:-1] == ("step",)
    for row in rows(session, "step"):
        assert owned(session, row)["aten::tanh_backward"] == 1
