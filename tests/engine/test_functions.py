"""Operators as functions: MXNet's names and codes, `out`, edges of their domains, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine import autograd
from opscope.engine.operators.names import FUNCTIONS, function
from opscope.engine.operators.table import TABLE

UNARY = [
    "sqrt",
    "rsqrt",
    "square",
    "cbrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log10",
    "log2",
    "negative",
    "abs",
    "sign",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arctanh",
    "relu",
    "sigmoid",
    "floor",
    "ceil",
    "round",
    "rint",
    "fix",
    "trunc",
    "logical_not",
    "reciprocal",
    "identity",
    "softmax",
    "log_softmax",
]


def gradient(fn: Any, values: Any) -> list[Any]:
    x = nd.array(np.array(values, np.float64))
    x.attach_grad()
    with autograd.record():
        y = fn(x)
    y.backward()
    assert x.grad is not None
    return x.grad.asnumpy().tolist()


def test_every_operator_has_a_function_of_its_name() -> None:
    helpers = {n for n in TABLE if n.startswith(("_backward_", "_slice_"))}
    assert set(TABLE) - helpers <= set(FUNCTIONS)
    assert set(nd.__all__) >= {
        name for name in TABLE if not name.startswith(("_", "elem", "broad"))
    }


@pytest.mark.parametrize("name", UNARY)
def test_out_of_every_unary(name: str) -> None:
    a = nd.array(np.array([[0.25, 0.5], [0.75, 0.125]]))
    expected = function(name)(data=a).asnumpy()
    out = nd.empty((2, 2), "float64")
    storage = out.storage
    assert function(name)(a, out=out) is out
    assert out.storage is storage
    assert out.asnumpy().tolist() == expected.tolist()
    half = function(name)(a, out=nd.empty((2, 2), "float16"))
    np.testing.assert_allclose(half.asnumpy(), expected, rtol=1e-3)
    assert function(name)(a, out=a).asnumpy().tolist() == expected.tolist()  # in place
    with pytest.raises(nd.ShapeError, match="makes shape"):
        function(name)(a, out=nd.empty(2))


def test_out_of_the_others(any_kind: str) -> None:
    a, b = nd.array([[1.0, 2.0], [3.0, 4.0]]), nd.array([[2.0, 0.0], [1.0, 5.0]])
    out, long, one = nd.empty((2, 2)), nd.empty((2, 4)), nd.empty(1)
    i = nd.array([0.0, 1.0])
    for make, expected in (
        (lambda: function("_plus_scalar")(a, 1, out=out), [[2, 3], [4, 5]]),
        (lambda: function("_rpower_scalar")(a, scalar=2, out=out), [[2, 4], [8, 16]]),
        (lambda: function("broadcast_mod")(lhs=a, rhs=b, out=out), [[1, 0], [0, 4]]),
        (lambda: function("elemwise_add")(a, b, out=out), [[3, 2], [4, 9]]),
        (lambda: nd.maximum(a, b, out=out), [[2, 2], [3, 5]]),
        (lambda: nd.minimum(2.5, a, out=out), [[1, 2], [2.5, 2.5]]),
        (lambda: nd.clip(a, 2, 3, out=out), [[2, 2], [3, 3]]),
        (lambda: nd.dot(a, b, out=out), [[4, 10], [10, 20]]),
        (lambda: nd.dot(a, out, out=out), [[24, 50], [52, 110]]),
        (lambda: nd.concat(a, b, out=long), [[1, 2, 2, 0], [3, 4, 1, 5]]),
        (lambda: nd.tile(a, (1, 2), out=long), [[1, 2, 1, 2], [3, 4, 3, 4]]),
        (lambda: nd.repeat(a, 2, 1, out=long), [[1, 1, 2, 2], [3, 3, 4, 4]]),
        (lambda: nd.sum(a, out=one), [10]),
        (lambda: nd.norm(a, ord=1, out=one), [10]),
        (lambda: nd.argmin(a, out=one), [0]),
        (lambda: nd.transpose(a, out=out), [[1, 3], [2, 4]]),
        (lambda: nd.reshape(a, (4,), out=nd.empty(4)), [1, 2, 3, 4]),
        (lambda: nd.where(i, a, b, out=out), [[2, 0], [3, 4]]),
        (lambda: nd.take(a, i * 0 + 1, out=out), [[3, 4], [3, 4]]),
        (lambda: nd.pick(a, i, out=nd.empty(2)), [1, 4]),
        (lambda: nd.one_hot(i, 2, out=out), [[1, 0], [0, 1]]),
        (lambda: nd.broadcast_to(i, (2, 2), out=out), [[0, 1], [0, 1]]),
        (lambda: nd.cast(a, "int32", out=nd.empty((2, 2), "int32")), [[1, 2], [3, 4]]),
        (lambda: nd.zeros((2, 2), out=out), [[0, 0], [0, 0]]),
        (lambda: nd.full((2, 2), 7, out=out), [[7, 7], [7, 7]]),
        (lambda: nd.ones_like(a, out=out), [[1, 1], [1, 1]]),
        (lambda: nd.arange(4, dtype="int32", out=nd.empty(4, "int32")), [0, 1, 2, 3]),
        (lambda: nd.eye(2, out=out), [[1, 0], [0, 1]]),
        (
            lambda: nd.transpose(a, out=a),
            [[1, 3], [2, 4]],
        ),  # the same elements are read and written
    ):
        assert make().asnumpy().tolist() == expected


def test_split_is_one_operator_with_several_outputs(any_kind: str) -> None:
    a = nd.array(np.arange(6.0).reshape(2, 3))
    a.attach_grad()
    pushed: list[nd.Task] = []
    nd.hooks.add("pushed", pushed.append)
    try:
        with autograd.record():
            parts = nd.split(a, 3)
            y = (parts[2] * 5).sum()  # the others are not used
    finally:
        nd.hooks.remove("pushed", pushed.append)
    assert next(task.name for task in pushed if task.kind == nd.OP) == "split"
    y.backward()
    assert a.grad is not None
    assert a.grad.asnumpy().tolist() == [[0, 0, 5]] * 2
    outs = [nd.empty((2, 1)) for _ in range(3)]
    found = nd.split(a, 3, out=outs)
    assert all(one is other for one, other in zip(found, outs, strict=True))
    assert [part.asnumpy().ravel().tolist() for part in outs] == [[0, 3], [1, 4], [2, 5]]
    for wrong in (
        lambda: nd.split(a, 2),
        lambda: nd.split(a, 1, squeeze_axis=True),
        lambda: nd.split(a, 3, out=outs[:2]),
    ):
        with pytest.raises(nd.ShapeError):
            wrong()
    with pytest.raises(nd.EngineError, match="several"):
        nd.apply("split", a, num_outputs=3, axis=1, squeeze_axis=False)


@pytest.mark.parametrize(
    ("codes", "shape"),
    [
        ((0, -1), (2, 12)),
        ((-1, 0), (8, 3)),
        ((-2,), (2, 3, 4)),
        ((-2, 1), (2, 3, 4, 1)),
        ((-3, 0), (6, 4)),
        ((0, -3), (2, 12)),
        ((-4, 1, 2, -2), (1, 2, 3, 4)),
        ((0, -4, -1, 3, -2), (2, 1, 3, 4)),
        ((0, -4, 3, -1, 0), (2, 3, 1, 4)),
    ],
)
def test_codes_in_a_shape(codes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    a = nd.array(np.arange(24.0).reshape(2, 3, 4))
    assert nd.reshape(a, codes).shape == a.reshape(*codes).shape == shape
    assert a.reshape(codes).asnumpy().ravel().tolist() == list(range(24))


def test_codes_in_a_shape_from_the_last_axis_on() -> None:
    a = nd.zeros((2, 3, 4))
    for codes, wanted in (((-1, 0), (6, 4)), ((0, -1), (3, 8)), ((-3, 0), (6, 4)), ((24,), (24,))):
        assert a.reshape(codes, reverse=True).shape == wanted
        assert nd.reshape(a, codes, reverse=True).shape == wanted
    with pytest.raises(nd.ShapeError, match="reverse"):
        a.reshape((-4, 1, 2, 0, 0), reverse=True)


def test_broadcasting_keeps_an_extent_for_0() -> None:
    assert nd.broadcast_to(nd.ones((1, 3)), (2, 0)).asnumpy().tolist() == [[1] * 3] * 2
    assert nd.broadcast_to(nd.ones((1, 3)), (0, 3)).shape == (1, 3)


def test_edges_of_domains() -> None:
    x = nd.array([5.0, -5.0, 5.5, 0.0])
    assert (x % 3).asnumpy().tolist() == [2, 1, 2.5, 0]
    assert (x % -2).asnumpy().tolist() == [-1, -1, -0.5, 0]
    assert (x % 0).asnumpy().tolist() == [0, 0, 0, 0]
    assert (3 % x).asnumpy().tolist() == [3, -2, 3, 0]
    assert (2**x).asnumpy().tolist()[1] == 2**-5
    assert (nd.array([2, 3], "int32") ** nd.array([-1, 2], "int32")).asnumpy().tolist() == [0.5, 9]
    halves = nd.array([-2.5, -0.5, 0.5, 1.5, 0.49999997, -0.7])
    assert nd.round(halves).asnumpy().tolist() == [-3, -1, 1, 2, 0, -1]
    assert nd.rint(halves).asnumpy().tolist() == [-3, -1, 0, 1, 0, -1]
    assert nd.fix(halves).asnumpy().tolist() == nd.trunc(halves).asnumpy().tolist()
    assert nd.trunc(halves).asnumpy().tolist() == [-2, 0, 0, 1, 0, 0]
    assert nd.add_n(halves).asnumpy().tolist() == halves.asnumpy().tolist()
    for wrong in (
        lambda: nd.add_n(),
        lambda: nd.add_n(halves, nd.ones(2)),
        lambda: nd.broadcast_axis(halves, axis=0, size=3),
        lambda: nd.broadcast_axis(nd.ones((1, 1)), axis=0, size=(3, 2)),
        lambda: nd.swapaxes(halves, 0, 1),
        lambda: nd.reverse(halves, 1),
    ):
        with pytest.raises(nd.ShapeError):
            wrong()
    assert nd.softmax(nd.array([1e4, 0.0])).asnumpy().tolist() == [1, 0]
    assert nd.log_softmax(nd.array([1e4, 0.0])).asnumpy().tolist() == [0, -1e4]
    assert gradient(nd.prod, [2, 0, 3]) == [0, 6, 0]
    assert gradient(nd.prod, [2, 0, 0]) == [0, 0, 0]
    assert gradient(nd.norm, [0, 0]) == [0, 0]
    assert gradient(lambda x: nd.clip(x, 0, 1), [-1, 0, 0.5, 1, 2]) == [0, 1, 1, 1, 0]
    assert gradient(abs, [0, -1, 1]) == [0, -1, 1]
    assert gradient(nd.max, [2, 2, 1]) == [1, 1, 0]
    assert gradient(lambda x: nd.take(x, nd.array([1, 1, 7, -4])), [0, 5, 9]) == [1, 2, 1]
    assert gradient(lambda x: nd.where(x > 0, x * 2, -x), [-1, 4]) == [-1, 2]
    assert gradient(lambda x: x * nd.stop_gradient(x), [2, 3]) == [2, 3]
    assert nd.squeeze(nd.zeros((1, 1))).shape == (1,)
    assert nd.slice_axis(nd.arange(5), 0, -3, -1).asnumpy().tolist() == [2, 3]
    assert nd.arange(1, 4, 1.5, repeat=2).asnumpy().tolist() == [1, 1, 2.5, 2.5]
    assert nd.arange(3, 0).shape == (0,)
    assert nd.eye(2, 3, 1).asnumpy().tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_types_stay(any_kind: str, dtype: str) -> None:
    a = nd.array(np.array([[0.25, 0.5], [0.75, 0.125]]), dtype)
    results = [function(name)(a) for name in UNARY]
    results += [
        a**a,
        a % a,
        2**a,
        a % 2,
        nd.prod(a),
        nd.norm(a),
        nd.min(a, 0),
        nd.batch_dot(*[a[None]] * 2),
    ]
    results += [nd.concat(a, a), nd.stack(a), nd.split(a, 2)[0], nd.tile(a, 2), nd.take(a, a)]
    results += [nd.FullyConnected(a, a, a[0]), nd.Activation(a, "softrelu"), nd.pick(a, a[0])]
    for result in results:
        assert result.dtype == result.asnumpy().dtype == dtype
    whole = nd.array([[4, 9]], "int32")
    assert nd.rsqrt(whole).dtype == nd.norm(whole).dtype == nd.softmax(whole).dtype == np.float32
    assert nd.floor(whole).dtype == abs(-whole).dtype == nd.sign(whole).dtype == np.int32
    assert (whole % 5).asnumpy().tolist() == [[4, 4]]
    assert nd.clip(whole, 5, 8).asnumpy().tolist() == [[5, 8]]


def test_gradients_of_half_precision() -> None:
    x = nd.array([[1.0, 2.0]], "float16")
    x.attach_grad()
    with autograd.record():
        y = nd.cast(nd.softmax(x) * x, "float64").sum()
    y.backward()
    assert x.grad is not None
    assert x.grad.dtype == x.grad.asnumpy().dtype == np.float16


def test_what_does_not_fit_raises_at_once() -> None:
    a, b = nd.ones((2, 3)), nd.ones((4, 5))
    for wrong in (
        lambda: nd.concat(a, b),
        lambda: nd.concat(),
        lambda: nd.stack(a, b),
        lambda: nd.batch_dot(a, a),
        lambda: nd.dot(nd.ones((3, 2, 2)), a, transpose_a=True),
        lambda: nd.softmax(a, axis=2),
        lambda: nd.softmax_cross_entropy(a, b),
        lambda: nd.FullyConnected(a, b, num_hidden=4, no_bias=True),
        lambda: nd.FullyConnected(a, nd.ones((4, 3)), num_hidden=4),
        lambda: nd.FullyConnected(a, nd.ones((4, 3)), nd.ones(3), num_hidden=4),
        lambda: nd.pick(a, b),
        lambda: nd.where(a, a, b),
        lambda: nd.where(nd.ones(3), a, a),
        lambda: nd.slice(a, (0, 0, 0), (1, 1, 1)),
        lambda: nd.take(a, a, axis=2),
        lambda: nd.squeeze(a, 0),
        lambda: nd.expand_dims(a, 4),
        lambda: nd.flatten(nd.zeros(())),
        lambda: nd.reshape(a, (-3, -3)),
        lambda: nd.reshape(a, (-4, 0, -1, 3)),
        lambda: nd.reshape(a, ("x",)),
        lambda: nd.repeat(a, -1),
        lambda: nd.broadcast_like(a, b),
    ):
        with pytest.raises(nd.ShapeError):
            wrong()
    for wrong, match in (
        (lambda: nd.Activation(a, "gelu"), "relu, sigmoid"),
        (lambda: nd.take(a, a, mode="hope"), "clip"),
        (lambda: nd.norm(a, 3), "order"),
    ):
        with pytest.raises(nd.EngineError, match=match):
            wrong()
    with pytest.raises(TypeError):
        nd.stack(a, 3)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        function("Nonesuch")
    found = nd.take(a, nd.array([0, 5]), mode="raise")
    with pytest.raises(IndexError, match="0 to 5 for 2"):
        found.wait_to_read()
    nd.waitall()
