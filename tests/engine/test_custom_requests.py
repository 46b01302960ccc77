"""Custom operators: requests, `out`, states, what backward keeps, types, nesting, forks."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine import autograd

from .test_custom import add_one, define
from .test_process import in_child, needs_fork

seen: list[Any] = []


def double(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
    seen.append(list(req))
    for out, how, x in zip(outs, req, ins, strict=False):
        op.assign(out, how, x * 2)


def fives(op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any) -> None:
    seen.append(list(req))
    for grad, how in zip(in_grads, req, strict=True):
        op.assign(grad, how, nd.full(grad.shape, 5, grad.dtype))


@pytest.fixture(autouse=True)
def _operators() -> None:
    seen.clear()
    define("q_double", double, fives)
    define("q_pair", double, fives, arguments=("a", "b"), outputs=("x", "y"))


def leaf(req: str = "write", dtype: str = "float32") -> nd.Array:
    a = nd.ones(2, dtype)
    a.attach_grad(req)
    return a


# Requests


def test_outputs_are_written_added_to_or_left_alone(custom_kind: str) -> None:
    a, b = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    x, y = nd.full(2, 10), nd.full(2, 20)
    assert nd.custom(a, op_type="q_double", out=x) is x
    assert x.asnumpy().tolist() == [2, 4]
    nd.custom_into(x, "add", a, op_type="q_double")
    assert x.asnumpy().tolist() == [4, 8]
    found = nd.custom_into([x, y], ["null", "write"], a, b, op_type="q_pair")
    assert found[0] is x
    assert found[1] is y
    assert (x.asnumpy().tolist(), y.asnumpy().tolist()) == ([4, 8], [6, 8])
    nd.custom(b, op_type="q_double", out=b)
    assert b.asnumpy().tolist() == [6, 8]
    nd.custom(a, b, op_type="q_pair", out=(y, a))
    assert (a.asnumpy().tolist(), y.asnumpy().tolist()) == ([12, 16], [2, 4])
    assert seen == [["write"], ["add"], ["null", "write"], ["inplace"], ["write", "inplace"]]


def test_requests_and_outs_that_do_not_fit() -> None:
    a, x = nd.ones(2), nd.ones(2)
    for wrong, kind, match in (
        (lambda: nd.custom_into(x, "maybe", a, op_type="q_double"), ValueError, "maybe"),
        (lambda: nd.custom_into(x, ["write"] * 2, a, op_type="q_double"), nd.EngineError, "2 requ"),
        (lambda: nd.custom(a, op_type="q_double", out=nd.ones(3)), nd.ShapeError, "shape"),
        (lambda: nd.custom(a, op_type="q_double", out=nd.ones(2, "int32")), nd.EngineError, "type"),
        (lambda: nd.custom(a, op_type="q_double", out=[x, x]), nd.EngineError, "1 arrays"),
        (lambda: nd.custom(a, op_type="q_double", out=[3]), nd.EngineError, "1 arrays"),
    ):
        with pytest.raises(kind, match=match):
            wrong()
    x = leaf()
    with autograd.record():
        for wrong in (
            lambda: nd.custom(x, op_type="q_double", out=x),
            lambda: nd.custom(a, op_type="q_double", out=x),
            lambda: nd.custom_into(nd.ones(2), "add", x, op_type="q_double"),
        ):
            with pytest.raises(nd.EngineError, match=r"record"):
                wrong()
    nd.waitall()
    assert seen == []


def test_a_recorded_out_takes_gradients(custom_kind: str) -> None:
    x, y = leaf(), nd.zeros(2)
    with autograd.record():
        nd.custom(x, op_type="q_double", out=y)
        z = y * 3
    z.backward()
    assert x.grad.asnumpy().tolist() == [5, 5]
    assert y.asnumpy().tolist() == [2, 2]


def test_grad_req_add_reaches_backward(custom_kind: str) -> None:
    x = leaf("add")
    for times in (1, 2, 3):
        with autograd.record():
            y = nd.custom(x, op_type="q_double")
        y.backward()
        assert x.grad.asnumpy().tolist() == [5 * times] * 2
    assert seen == [["write"], ["add"]] * 3


def test_added_up_outside_where_others_reach_the_leaf_too(custom_kind: str) -> None:
    x = leaf("add")
    with autograd.record():
        y = nd.custom(x, op_type="q_double") + x
    y.backward()
    assert x.grad.asnumpy().tolist() == [6, 6]
    with autograd.record():
        first, _ = nd.custom(x, x, op_type="q_pair")
    first.backward()
    assert x.grad.asnumpy().tolist() == [16, 16]
    with autograd.record():
        y = nd.custom(x, op_type="q_double")
    autograd.backward([y, x])  # a head reaches it
    assert x.grad.asnumpy().tolist() == [22, 22]
    assert seen == [["write"], ["write"], ["write"] * 2, ["write"] * 2, ["write"], ["write"]]


def test_null_add_and_write_side_by_side(custom_kind: str) -> None:
    plain, added = nd.ones(2), leaf("add")
    for a, b, expected in (
        (plain, added, ["null", "add"]),
        (added, leaf(), ["add", "write"]),
        (leaf("null"), leaf(), ["null", "write"]),
    ):
        with autograd.record():
            x, y = nd.custom(a, b, op_type="q_pair")
        autograd.backward([x, y])
        nd.waitall()
        assert seen[-1] == expected
    assert added.grad.asnumpy().tolist() == [10, 10]


def test_the_gradient_as_its_own_head_and_grad_do_not_add(custom_kind: str) -> None:
    x = leaf("add")
    with autograd.record():
        y = nd.custom(x, op_type="q_double")
    y.backward(x.grad, retain_graph=True)  # it would be read and written at once
    assert x.grad.asnumpy().tolist() == [5, 5]
    assert autograd.grad(y, x).asnumpy().tolist() == [5, 5]
    assert x.grad.asnumpy().tolist() == [5, 5]
    assert seen == [["write"], ["write"], ["write"]]


# States


def square_forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
    aux[0][:] = ins[0] * 2
    op.assign(outs[0], req[0], ins[0] * ins[0])


def square_backward(
    op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
) -> None:
    op.assign(in_grads[0], req[0], grads[0] * aux[0])


@pytest.mark.parametrize(("dtype", "step"), [("float64", 1e-6), ("float32", 1e-2)])
@pytest.mark.parametrize("req", ["write", "add"])
def test_numeric_gradient_with_a_state(custom_kind: str, dtype: str, step: float, req: str) -> None:
    define("q_square", square_forward, square_backward, states=("slope",))
    values = np.array([[0.5, -1.5], [2.0, 0.25]])
    weights = np.array([[1.0, 2.0], [3.0, -1.0]])

    def loss(moved: Any) -> tuple[Any, nd.Array, nd.Array]:
        x, slope = nd.array(moved, dtype), nd.zeros((2, 2), dtype)
        x.attach_grad(req)
        with autograd.record():
            y = (nd.custom(x, slope, op_type="q_square") * nd.array(weights, dtype)).sum()
        return y, x, slope

    y, x, slope = loss(values)
    y.backward()
    assert slope.asnumpy().tolist() == (values * 2).tolist()
    for place in np.ndindex(values.shape):
        ends = []
        for way in (step, -step):
            moved = values.copy()
            moved[place] += way
            ends.append(loss(moved)[0].asscalar())
        numeric = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(x.grad.asnumpy()[place], numeric, rtol=1e-3, atol=1e-3)


# What backward keeps


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (lambda grads, ins, outs: [], [False, False, False]),
        (lambda grads, ins, outs: [ins[1]], [True, False, False]),
        (lambda grads, ins, outs: (*grads, ins[0]), [False, True, False]),
        (lambda grads, ins, outs: {*outs}, [False, False, True]),
    ],
)
def test_only_what_is_declared_is_kept_alive(
    custom_kind: str, wanted: Any, expected: list[bool]
) -> None:
    define("q_keeps", double, fives, arguments=("a", "b")).declare_backward_dependency = (  # type: ignore[method-assign]
        lambda self, *parts: wanted(*parts)
    )
    define("q_nothing", double, fives).declare_backward_dependency = (  # type: ignore[method-assign]
        lambda self, *parts: []
    )
    x, other = leaf(), nd.ones(2)
    with autograd.record():
        middle = nd.custom(x, op_type="q_nothing")
        out = nd.custom(middle, other, op_type="q_keeps")
        end = nd.custom(out, op_type="q_nothing")
    nd.waitall()
    variables = [array.storage.var for array in (other, middle, out)]
    del middle, other, out
    gc.collect()
    nd.waitall()
    nd.waitall()  # a worker may have let go of the last one only then
    assert [not var.deleted for var in variables] == expected
    end.backward()
    assert x.grad.asnumpy().tolist() == [5, 5]


def test_need_top_grad_decides_what_arrives(custom_kind: str) -> None:
    arrived: list[Any] = []

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        arrived.append(grads[0].asnumpy().tolist())
        op.assign(in_grads[0], req[0], 1)

    for need in (True, False):
        define("q_top", add_one, backward, need_top_grad=need)
        x = leaf()
        with autograd.record():
            y = nd.custom(x, op_type="q_top") * 7
        y.backward()
        nd.waitall()
    assert arrived == [[7, 7], [0, 0]]


# Parameters and types


def test_parameters_arrive_as_text() -> None:
    define("q_text", lambda op, t, req, ins, outs, aux: seen.append(op.params))
    nd.custom(
        nd.ones(1),
        op_type="q_text",
        number=2.5,
        pair=(1, 2),
        extents=(np.int64(3), np.float32(0.5)),
        items=[1, "x"],
        flag=True,
        nothing=None,
        word="plain",
        scalar=np.float64(1.5),
    )
    nd.waitall()
    assert seen == [
        {
            "number": "2.5",
            "pair": "(1, 2)",
            "extents": "(3, 0.5)",
            "items": "[1, 'x']",
            "flag": "True",
            "nothing": "None",
            "word": "plain",
            "scalar": "1.5",
        }
    ]


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("target", ["float16", "float64", "int64"])
def test_casts(custom_kind: str, source: str, target: str) -> None:
    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        seen.append((grads[0].dtype, ins[0].dtype, outs[0].dtype, in_grads[0].dtype, aux[0].dtype))
        op.assign(in_grads[0], req[0], grads[0] * 2)

    prop = define("q_cast", double, backward, states=("state",))
    prop.infer_type = lambda self, types: (types, [target], [np.int8])  # type: ignore[method-assign]
    x, state = nd.array(np.array([3, 4]), source), nd.zeros(2, "int8")
    x.attach_grad()
    with autograd.record():
        y = nd.custom(x, state, op_type="q_cast")
    assert y.dtype == y.asnumpy().dtype == target
    assert y.asnumpy().tolist() == [6, 8]
    y.backward()
    assert x.grad.dtype == x.grad.asnumpy().dtype == source
    assert x.grad.asnumpy().tolist() == [2, 2]
    assert seen[-1] == (target, source, target, source, "int8")


def test_types_are_those_of_the_first_input_if_not_said(custom_kind: str) -> None:
    for dtype in ("float16", "float64", "int32"):
        assert nd.custom(nd.ones(2, dtype), op_type="q_double").dtype == dtype
    found = nd.custom(nd.ones(2), nd.ones(2, "float64"), op_type="q_pair")
    assert [array.dtype for array in found] == ["float32", "float32"]


# Nesting


def test_gradients_through_calls_in_calls_and_a_tape_of_their_own(custom_kind: str) -> None:
    def cube(x: nd.Array) -> nd.Array:
        seen.append(autograd.is_recording())
        return nd.custom(x, op_type="q_square1") * x

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        y = cube(ins[0])
        assert y.node is None
        op.assign(outs[0], req[0], y)

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        x = ins[0].copy()
        x.attach_grad()
        with autograd.record():  # the body differentiates what the forward call did
            y = cube(x)
        y.backward(grads[0])
        op.assign(in_grads[0], req[0], x.grad)

    def plain(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        op.assign(outs[0], req[0], ins[0] * ins[0])

    def plain_back(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        op.assign(in_grads[0], req[0], grads[0] * ins[0] * 2)

    define("q_square1", plain, plain_back)
    define("q_cube", forward, backward)
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.custom(x * 2, op_type="q_cube") + nd.custom(x, op_type="q_square1")
    y.backward()
    assert x.grad.asnumpy().tolist() == [24 + 2, 96 + 4]
    assert seen == [False, True]
    assert not autograd.is_recording()


# Forks


@needs_fork
def test_a_child_trains_with_custom_operators(custom_kind: str) -> None:
    define("q_square", square_forward, square_backward, states=("slope",))
    x, slope = leaf("add"), nd.zeros(2)
    with autograd.record():
        y = nd.custom(x, slope, op_type="q_square")

    def check() -> bool:
        y.backward()  # what the parent recorded
        with autograd.record():
            z = nd.custom(x, slope, op_type="q_square")
        z.backward()
        return x.grad.asnumpy().tolist() == [4, 4] and slope.asnumpy().tolist() == [2, 2]

    assert in_child(check) == 0
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]


def test_a_gradient_of_another_type_is_not_handed_to_the_body(custom_kind: str) -> None:
    x, given = nd.ones(2), nd.zeros(2, "float64")
    autograd.mark_variables(x, given, "add")
    with autograd.record():
        y = nd.custom(x, op_type="q_double")
    y.backward()
    assert given.asnumpy().tolist() == [5, 5]
    assert seen == [["write"], ["write"]]
