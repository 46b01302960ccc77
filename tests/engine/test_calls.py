"""What a watcher is told of custom calls."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

from opscope import engine as nd
from opscope.engine import autograd
from opscope.engine.graph import CHORE, CUSTOM, HIDDEN

from .conftest import Heard
from .test_custom import Oops, add_one, define, fails_at

PAIRS = {"call_ended": "call_began", "body_ended": "body_began", "wait_ended": "wait_began"}


def check_pairs(heard: Heard) -> None:
    """On every thread, what began last ends first."""
    stacks: dict[str, list[tuple[str, object]]] = {}
    for moment, thread, fact in heard:
        stack = stacks.setdefault(thread, [])
        if moment in PAIRS.values():
            stack.append((moment, fact))
        elif moment in PAIRS:
            assert stack.pop() == (PAIRS[moment], fact)
    assert not any(stacks.values())


def passthrough(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
    op.assign(outs[0], req[0], nd.custom(ins[0] * 2, op_type="h_inner"))


def test_moments_of_a_nested_call(custom_kind: str, heard: Heard) -> None:
    define("h_inner", add_one)
    define("h_outer", passthrough)
    a = nd.ones(1)
    a.wait_to_read()
    heard.clear()
    result = nd.custom(a, op_type="h_outer")
    result.wait_to_read()
    nd.waitall()
    check_pairs(heard)
    calls = {fact.op.name: fact for moment, _, fact in heard if moment == "call_began"}  # type: ignore[attr-defined]
    outer, inner = calls["h_outer"], calls["h_inner"]
    assert outer.outer is None
    assert inner.outer is outer
    for call in (outer, inner):
        mine = [moment for moment, _, fact in heard if fact is call]
        assert mine == ["call_began", "body_began", "body_ended", "call_ended"]
        assert len({thread for _, thread, fact in heard if fact is call}) == 1
        assert call.direction == "forward"
        assert call.forward is None
        assert call.error is None
        assert call.thread is None
        assert call.task.kind == CUSTOM
        told = {moment for moment, _, fact in heard if fact is call.task}
        assert told == {"pushed"}  # no started and finished for the whole call
    assert inner.task.pushed_by is outer
    owners = {
        (fact.name, fact.pushed_by)
        for moment, _, fact in heard
        if moment == "pushed" and fact.kind not in (CHORE, HIDDEN)  # type: ignore[attr-defined]
    }
    assert owners == {
        ("h_outer", None),
        ("_mul_scalar", outer),
        ("h_inner", outer),
        ("_plus_scalar", inner),
        ("_copyto", inner),
        ("_copyto", outer),
    }
    names = {getattr(fact, "name", "") for _, _, fact in heard}
    assert "CustomOperatorWait" not in names
    chores = [fact for _, _, fact in heard if getattr(fact, "kind", None) == CHORE]
    assert all(fact.pushed_by is None for fact in chores)  # type: ignore[attr-defined]


def test_backward_calls_know_their_forward_calls(custom_kind: str, heard: Heard) -> None:
    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        op.assign(in_grads[0], req[0], grads[0])

    define("h_back", add_one, backward)
    x = nd.ones(2)
    x.attach_grad()
    for _ in range(2):
        with autograd.record():
            y = nd.custom(nd.custom(x, op_type="h_back"), op_type="h_back")
        y.backward()
    nd.waitall()
    check_pairs(heard)
    calls = [fact for moment, _, fact in heard if moment == "call_began"]
    forward = [call for call in calls if call.direction == "forward"]  # type: ignore[attr-defined]
    back = [call for call in calls if call.direction == "backward"]  # type: ignore[attr-defined]
    assert len(forward) == len(back) == 4
    assert {id(call.forward) for call in back} == {id(call) for call in forward}  # type: ignore[attr-defined]
    if custom_kind == "naive":  # there calls begin in the order they were pushed
        assert back[0].forward is forward[1]  # type: ignore[attr-defined]
    assert {call.task.name for call in back} == {"_backward_h_back"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["python", "push", "wait", "no wait"])
def test_failing_calls_end_in_pairs(custom_kind: str, heard: Heard, place: str) -> None:
    define("h_inner", fails_at(place))
    define("h_outer", passthrough)
    result = nd.custom(nd.ones((2, 2)), op_type="h_outer")
    with pytest.raises((Oops, nd.ShapeError, ValueError)):
        result.wait_to_read()
    nd.waitall()
    check_pairs(heard)
    calls = {fact.op.name: fact for moment, _, fact in heard if moment == "call_ended"}  # type: ignore[attr-defined]
    assert (calls["h_inner"].error is None) == (place == "no wait")
    for call in calls.values():
        assert call.task.error is not None


def test_a_skipped_call_never_begins(custom_kind: str, heard: Heard) -> None:
    define("h_inner", add_one)
    result = nd.custom(nd.random.normal(0, -1), op_type="h_inner")
    with pytest.raises(ValueError, match="scale"):
        result.wait_to_read()
    nd.waitall()
    assert heard.names("skipped") == ["h_inner"]
    assert not heard.names("call_began")


def test_running_calls_while_they_run(custom_kind: str) -> None:
    seen: list[list[str]] = []
    threads: list[bool] = []

    def inner(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        calls = nd.running_calls()
        seen.append(sorted(call.op.name for call in calls))
        mine = next(call for call in calls if call.op.name == "h_inner")
        threads.append(mine.thread == threading.get_ident())
        op.assign(outs[0], req[0], ins[0])

    def outer(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        nd.custom(ins[0], op_type="h_inner").wait_to_read()
        op.assign(outs[0], req[0], ins[0])

    define("h_inner", inner)
    define("h_outer", outer)
    nd.custom(nd.ones(1), op_type="h_outer").wait_to_read()
    assert seen == [["h_inner", "h_outer"]]
    assert threads == [True]
    nd.waitall()
    assert nd.running_calls() == []


def test_call_has_ended_before_a_waiting_thread_goes_on(custom_kind: str, heard: Heard) -> None:
    define("h_inner", add_one)
    for n in range(1, 30):
        nd.custom(nd.ones(1), op_type="h_inner").wait_to_read()
        assert sum(moment == "call_ended" for moment, _, _ in heard) == n


def test_bodies_run_where_the_kind_says(custom_kind: str, heard: Heard) -> None:
    define("h_inner", add_one)
    nd.custom(nd.ones(1), op_type="h_inner").wait_to_read()
    (thread,) = {thread for moment, thread, _ in heard if moment == "body_began"}
    prefix = {"pool": "engine-custom-", "work": "engine-worker-", "naiv": "MainThread"}
    assert thread.startswith(prefix[custom_kind[:4]])


def test_broken_hooks_do_not_reach_custom_calls(custom_kind: str) -> None:
    def bad(call: object) -> None:
        raise RuntimeError("watcher")

    before = len(nd.hooks.broken)
    moments = ("call_began", "body_began", "body_ended", "call_ended", "pushed", "finished")
    for moment in moments:
        nd.hooks.add(moment, bad)
    define("h_inner", add_one)
    define("h_outer", passthrough)
    assert nd.custom(nd.ones(1), op_type="h_outer").asscalar() == 3
    nd.waitall()
    assert {moment for moment, _, _ in nd.hooks.broken[before:]} == set(moments)
    del nd.hooks.broken[before:]


def test_calls_and_waits_leave_nothing_to_the_collector(custom_kind: str) -> None:
    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        op.assign(in_grads[0], req[0], grads[0])

    define("h_back", add_one, backward)
    x = nd.ones(2)
    x.attach_grad()

    def work(count: int) -> None:
        for _ in range(count):
            with autograd.record():
                y = nd.custom(x * 2, op_type="h_back").sum()
            y.backward()
            y.wait_to_read()
            with nd.bulk(4):
                z = (x + 1) * 2
            z.asnumpy()
        nd.waitall()

    work(2)
    gc.collect()
    gc.disable()
    try:
        work(10)
        assert gc.collect() == 0
    finally:
        gc.enable()
