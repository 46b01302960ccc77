"""`autograd.Function`s in the profile: calls like those of every other custom operator."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import flags, free, owned, rows
from tests.hosts.engine.ops import ENGINES, define, engine_of

import opscope
from opscope import analyse
from opscope import engine as nd
from opscope.engine import autograd
from opscope.testing import ManualClock, assert_restored


@pytest.fixture(params=list(ENGINES), autouse=True)
def kind(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Each test on each way of running custom operators; nothing stays behind."""
    with assert_restored(), engine_of(request.param):
        yield request.param


class MyFn(autograd.Function):
    """Two sub-operators on the way, one back and one that puts the gradient in its place."""

    def forward(self, x: Any) -> Any:
        return (x + 1.0) * 2.0

    def backward(self, slope: Any) -> Any:
        return slope / 3.0


FORWARD, BACKWARD = {"_plus_scalar": 1, "_mul_scalar": 1}, {"_div_scalar": 1, "_copyto": 1}


def trained(function: Any) -> nd.Array:
    """The input after a forward and a backward pass."""
    x = nd.ones((2, 2))
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x


def test_a_forward_and_a_backward_call_are_one_operator(kind: str) -> None:
    with opscope.profile() as profile:
        for _ in range(5):
            trained(lambda x: MyFn()(x + 0.0) * 1.0).grad.asnumpy()  # type: ignore[union-attr]
        nd.waitall()
    session = profile.session
    check(session)
    (op,) = session.ops
    assert (op.host, op.kind, op.name) == ("engine", "autograd.Function", "MyFn")
    assert op.key == f"engine:{__name__}.MyFn#1"
    with open(__file__, encoding="utf-8") as source:
        assert (op.file, op.line) == (
            __file__,
            source.read().splitlines().index("class MyFn(autograd.Function):") + 1,
        )
    forward, backward = rows(session, "MyFn", "forward"), rows(session, "MyFn", "backward")
    assert [row.forward_call for row in backward] == [row.call for row in forward]
    assert len(forward) == 5
    for row in forward:
        assert owned(session, row) == FORWARD
        assert row.lane == rows(session, "MyFn")[0].lane
    for row in backward:
        assert owned(session, row) == BACKWARD
        assert (row.lane == forward[0].lane) is (kind == "naive")
    assert free(session)["_plus_scalar"] == free(session)["_mul_scalar"] - 5 == 5
    assert {"::".join(r.path) for r in analyse.subs(session)} == {
        "MyFn::_plus_scalar",
        "MyFn::_mul_scalar",
        "_backward_MyFn::_div_scalar",
        "_backward_MyFn::_copyto",
    }


def test_the_parts_equal_the_script(kind: str) -> None:
    clock = ManualClock()

    class Timed(autograd.Function):
        def forward(self, x: Any) -> Any:
            clock.tick(100)
            y = nd.empty(x.shape)
            nd.push_sync(lambda: clock.tick(1000), writes=[y.storage.var], name="timed")
            y.wait_to_read()
            clock.tick(30)
            return y

        def backward(self, slope: Any) -> Any:
            clock.tick(7)
            return slope

    with opscope.profile(clock=clock) as profile:
        trained(lambda x: Timed()(x)).grad.asnumpy()  # type: ignore[union-attr]
        nd.waitall()
    check(profile.session)
    forward, backward = rows(profile.session, "Timed")
    assert (forward.wall_ns, forward.python_ns, forward.untracked_ns) == (1130, 130, 0)
    inside = (1000, 0) if kind == "naive" else (0, 1000)
    assert (forward.sub_ns, forward.wait_ns) == inside
    assert (backward.wall_ns, backward.python_ns) == (7, 7)
    assert backward.forward_call == forward.call


def test_nested_in_and_around_custom_operators_and_itself() -> None:
    op = define("Op", lambda x: MyFn()(x), lambda slope: slope * 5.0)

    class Outer(autograd.Function):
        def forward(self, x: Any) -> Any:
            return op(MyFn()(x))

        def backward(self, slope: Any) -> Any:
            return op(slope)

    with opscope.profile() as profile:
        trained(lambda x: op(Outer()(x))).grad.asnumpy()  # type: ignore[union-attr]
        nd.waitall()
    session = profile.session
    check(session)
    names = sorted("::".join(row.path) for row in analyse.calls(session))
    assert names == [
        "Op",
        "Op::MyFn",
        "Outer",
        "Outer::MyFn",
        "Outer::Op",
        "Outer::Op::MyFn",
        "_backward_Op",
        "_backward_Outer",
        "_backward_Outer::Op",
        "_backward_Outer::Op::MyFn",
    ]
    for row in rows(session, "MyFn"):
        assert owned(session, row) == FORWARD
        assert row.parent is not None
    assert free(session)["_plus_scalar"] == free(session)["_mul_scalar"] == 0


def test_a_pass_back_inside_a_forward_belongs_to_it() -> None:
    class Outer(autograd.Function):
        def forward(self, x: Any) -> Any:
            return trained(lambda inner: MyFn()(inner)).grad

    with opscope.profile() as profile:
        Outer()(nd.ones((2, 2))).asnumpy()
        nd.waitall()
    check(profile.session)
    paths = sorted(row.path for row in analyse.calls(profile.session))
    assert paths == [("Outer",), ("Outer", "MyFn"), ("Outer", "_backward_MyFn")]
    (backward,) = rows(profile.session, "MyFn", "backward")
    (forward,) = rows(profile.session, "MyFn", "forward")
    assert backward.forward_call == forward.call


def test_a_forward_that_raises_keeps_its_row_and_marks_nobody_else() -> None:
    class Bad(autograd.Function):
        def forward(self, x: Any) -> Any:
            x + 1.0
            raise ZeroDivisionError

    with opscope.profile() as profile:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                Bad()(nd.ones((2, 2)))
        (nd.ones((2, 2)) * 2.0).asnumpy()
        nd.waitall()
    session = profile.session
    check(session)
    assert all("failed" in of_call for of_call in flags(session, "Bad"))
    for call in rows(session, "Bad"):
        assert owned(session, call) == {"_plus_scalar": 1}
    assert len(rows(session, "Bad")) == 3
    assert free(session)["_mul_scalar"] == 1


def test_a_backward_that_raises_keeps_its_row_and_its_forward_call() -> None:
    class Bad(MyFn):
        def backward(self, slope: Any) -> Any:
            slope * 2.0
            raise ZeroDivisionError

    with opscope.profile() as profile:
        x = trained(lambda x: Bad()(x))
        with pytest.raises(ZeroDivisionError):
            x.grad.asnumpy()  # type: ignore[union-attr]
        nd.waitall()
    session = profile.session
    check(session)
    forward, backward = rows(session, "Bad")
    assert "failed" not in forward.flags
    assert "failed" in backward.flags
    assert backward.forward_call == forward.call
    assert owned(session, backward) == {"_mul_scalar": 1}


def test_recording_begins_inside_a_forward() -> None:
    clock = ManualClock()
    profile = opscope.profile(clock=clock)

    class Begins(autograd.Function):
        def forward(self, x: Any) -> Any:
            y = x * 2.0
            clock.tick(100)
            profile.start()
            clock.tick(10)
            return MyFn()(y)

    Begins()(nd.ones((2, 2))).asnumpy()
    nd.waitall()
    profile.stop()
    check(profile.session)
    (call,) = rows(profile.session, "Begins")
    assert "clamped" in call.flags
    assert (call.wall_ns, call.python_ns) == (10, 10)
    (inner,) = rows(profile.session, "MyFn")
    assert inner.parent == call.call
    assert owned(profile.session, inner) == FORWARD


@pytest.mark.parametrize("kind", ["pool", "workers"], indirect=True)
def test_recording_begins_between_pushing_and_running_a_call_inside_a_forward() -> None:
    op = define("Inside", lambda x: x + 1.0)
    go = threading.Event()
    profile = opscope.profile()

    class Begins(autograd.Function):
        def forward(self, x: Any) -> Any:
            nd.push_sync(lambda: go.wait(30), writes=[x.storage.var])
            y = op(x)
            profile.start()
            go.set()
            y.wait_to_read()
            return y

    Begins()(nd.ones((2, 2)))
    nd.waitall()
    profile.stop()
    check(profile.session)
    (call,) = rows(profile.session, "Begins")
    (inner,) = rows(profile.session, "Inside")
    assert inner.parent == call.call


def test_marked_blocks_in_and_around_a_forward_own_what_is_in_them() -> None:
    class Outer(autograd.Function):
        def forward(self, x: Any) -> Any:
            with opscope.custom_op("block inside"):
                return MyFn()(x)

    with opscope.profile() as profile:
        with opscope.custom_op("block around"):
            y = Outer()(nd.ones((2, 2)))
        y.asnumpy()
        nd.waitall()
    check(profile.session)
    (call,) = rows(profile.session, "MyFn")
    assert call.path == ("block around", "Outer", "block inside", "MyFn")
    assert owned(profile.session, call) == FORWARD


def test_recording_ends_inside_a_forward() -> None:
    profile = opscope.profile()

    class Ends(autograd.Function):
        def forward(self, x: Any) -> Any:
            y = x + 1.0
            nd.waitall()
            profile.stop()
            return y * 2.0

    profile.start()
    Ends()(nd.ones((2, 2))).asnumpy()
    check(profile.session)
    (call,) = rows(profile.session, "Ends")
    assert "incomplete" in call.flags
    assert owned(profile.session, call) == {"_plus_scalar": 1}


def test_calls_on_threads_of_the_program_keep_apart() -> None:
    def work() -> None:
        for _ in range(10):
            trained(lambda x: MyFn()(x)).grad.asnumpy()  # type: ignore[union-attr]

    with opscope.profile() as profile:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        nd.waitall()
    check(profile.session)
    for row in rows(profile.session, "MyFn", "forward"):
        assert owned(profile.session, row) == FORWARD
    for row in rows(profile.session, "MyFn", "backward"):
        assert owned(profile.session, row) == BACKWARD
    assert len(rows(profile.session, "MyFn")) == 60


def test_a_function_and_an_operator_of_one_name_are_two() -> None:
    op = define("MyFn", lambda x: x - 1.0)
    with opscope.profile() as profile:
        op(nd.ones((2, 2))).asnumpy()
        MyFn()(nd.ones((2, 2))).asnumpy()
        nd.waitall()
    check(profile.session)
    first, second = rows(profile.session, "MyFn")
    assert first.key != second.key
    assert owned(profile.session, first) == {"_minus_scalar": 1, "_copyto": 1}
    assert owned(profile.session, second) == FORWARD
