"""Every operator against NumPy, and every gradient against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine.operators.table import TABLE, define

Case = tuple[str, Callable[..., nd.Array], Callable[..., Any], list[tuple[int, ...]]]

# operator, through the engine, through NumPy, shapes of the inputs (positive, no two equal)
CASES: list[Case] = [
    ("_plus_scalar", lambda a: 2 + a, lambda a: a + 2, [(3, 4)]),
    ("_minus_scalar", lambda a: a - 2.5, lambda a: a - 2.5, [(3, 4)]),
    ("_rminus_scalar", lambda a: 2 - a, lambda a: 2 - a, [(5,)]),
    ("_mul_scalar", lambda a: 3 * a, lambda a: a * 3, [()]),
    ("_div_scalar", lambda a: a / 4, lambda a: a / 4, [(3, 4)]),
    ("_rdiv_scalar", lambda a: 4 / a, lambda a: 4 / a, [(3, 4)]),
    ("_power_scalar", lambda a: a**3, lambda a: a**3, [(3, 4)]),
    ("_power_scalar", lambda a: a**-0.5, lambda a: a**-0.5, [(3,)]),
    ("_maximum_scalar", lambda a: nd.maximum(a, 1.01), lambda a: np.maximum(a, 1.01), [(6, 2)]),
    ("_minimum_scalar", lambda a: nd.minimum(a, 1.01), lambda a: np.minimum(a, 1.01), [(6, 2)]),
    ("elemwise_add", lambda a, b: a + b, np.add, [(3, 4), (3, 4)]),
    ("elemwise_sub", lambda a, b: a - b, np.subtract, [(3, 4), (3, 4)]),
    ("elemwise_mul", lambda a, b: a * b, np.multiply, [(3, 4), (3, 4)]),
    ("elemwise_div", lambda a, b: a / b, np.divide, [(3, 4), (3, 4)]),
    ("broadcast_add", lambda a, b: a + b, np.add, [(3, 4), (4,)]),
    ("broadcast_sub", lambda a, b: a - b, np.subtract, [(3, 1), (1, 4)]),
    ("broadcast_mul", lambda a, b: a * b, np.multiply, [(2, 3, 4), (3, 1)]),
    ("broadcast_div", lambda a, b: a / b, np.divide, [(1,), (3, 4)]),
    ("maximum", nd.maximum, np.maximum, [(3, 4), (3, 4)]),
    ("maximum", nd.maximum, np.maximum, [(3, 4), (3, 1)]),
    ("minimum", nd.minimum, np.minimum, [(4,), (3, 4)]),
    ("sqrt", nd.sqrt, np.sqrt, [(3, 4)]),
    ("square", nd.square, np.square, [(3, 4)]),
    ("exp", nd.exp, np.exp, [(3, 4)]),
    ("log", nd.log, np.log, [(3, 4)]),
    ("negative", lambda a: -a, np.negative, [(3, 4)]),
    ("relu", lambda a: nd.relu(a - 1.01), lambda a: np.maximum(a - 1.01, 0), [(6, 2)]),
    ("sigmoid", nd.sigmoid, lambda a: 1 / (1 + np.exp(-a)), [(3, 4)]),
    ("tanh", nd.tanh, np.tanh, [(3, 4)]),
    ("cast", lambda a: a.astype("float64"), lambda a: a, [(3, 4)]),
    ("sum", lambda a: a.sum(), lambda a: np.sum(a).reshape(1), [(3, 4)]),
    ("sum", lambda a: nd.sum(a, 1), lambda a: np.sum(a, 1), [(3, 4)]),
    (
        "sum",
        lambda a: nd.sum(a, (0, -1), True),
        lambda a: np.sum(a, (0, 2), keepdims=True),
        [(2, 3, 4)],
    ),
    ("mean", lambda a: a.mean(), lambda a: np.mean(a).reshape(1), [(3, 4)]),
    ("mean", lambda a: nd.mean(a, axis=0), lambda a: np.mean(a, 0), [(3, 4)]),
    ("max", lambda a: a.max(), lambda a: np.max(a).reshape(1), [(3, 4)]),
    ("max", lambda a: nd.max(a, -1, True), lambda a: np.max(a, 1, keepdims=True), [(3, 4)]),
    (
        "broadcast_to",
        lambda a: nd.broadcast_to(a, (5, 3, 4)),
        lambda a: np.broadcast_to(a, (5, 3, 4)),
        [(3, 1)],
    ),
    ("dot", nd.dot, np.dot, [(3, 4), (4, 2)]),
    ("dot", lambda a, b: nd.dot(a, b, transpose_a=True), lambda a, b: a.T @ b, [(4, 3), (4, 2)]),
    ("dot", lambda a, b: nd.dot(a, b, transpose_b=True), lambda a, b: a @ b.T, [(3, 4), (2, 4)]),
    ("dot", lambda a, b: nd.dot(a, b, True, True), lambda a, b: a.T @ b.T, [(4, 3), (2, 4)]),
    ("dot", nd.dot, lambda a, b: np.dot(a, b).reshape(1), [(4,), (4,)]),
    ("dot", nd.dot, np.dot, [(3, 4), (4,)]),
    ("dot", nd.dot, np.dot, [(3,), (3, 4)]),
    ("transpose", lambda a: a.T, np.transpose, [(2, 3, 4)]),
    (
        "transpose",
        lambda a: nd.transpose(a, (1, 2, 0)),
        lambda a: a.transpose(1, 2, 0),
        [(2, 3, 4)],
    ),
    ("reshape", lambda a: a.reshape(2, -1), lambda a: a.reshape(2, -1), [(3, 4)]),
    ("reshape", lambda a: nd.reshape(a, (12,)), lambda a: a.reshape(12), [(3, 4)]),
    ("slice", lambda a: a[1:3], lambda a: a[1:3], [(4, 2)]),
    ("slice", lambda a: a[..., ::-2, 1], lambda a: a[..., ::-2, 1], [(4, 3, 2)]),
    ("slice", lambda a: a[2], lambda a: a[2], [(4, 3)]),
    ("slice", lambda a: a[1, 2], lambda a: a[1, 2], [(4, 3)]),
    ("_copyto", lambda a: a.copy(), np.copy, [(3, 4)]),
]
WITHOUT_GRADIENT: list[tuple[str, Callable[[nd.Array], nd.Array], Callable[[Any], Any]]] = [
    ("argmax", nd.argmax, lambda a: np.argmax(a).reshape(1)),
    ("argmax", lambda a: nd.argmax(a, 1), lambda a: np.argmax(a, 1)),
    ("one_hot", lambda a: nd.one_hot(a * 3, 6), lambda a: np.eye(6)[(a * 3).astype(int)]),
    ("_greater_scalar", lambda a: a > 1, lambda a: a > 1),
    ("_greater_equal_scalar", lambda a: a >= 1, lambda a: a >= 1),
    ("_lesser_scalar", lambda a: a < 1, lambda a: a < 1),
    ("_lesser_equal_scalar", lambda a: a <= 1, lambda a: a <= 1),
    ("_equal_scalar", lambda a: a == 1, lambda a: a == 1),
    ("_not_equal_scalar", lambda a: a != 1, lambda a: a != 1),
    ("broadcast_greater", lambda a: a > a[0], lambda a: a > a[0]),
    ("broadcast_greater_equal", lambda a: a >= a[0], lambda a: a >= a[0]),
    ("broadcast_lesser", lambda a: a < a[0], lambda a: a < a[0]),
    ("broadcast_lesser_equal", lambda a: a <= a[0], lambda a: a <= a[0]),
    ("broadcast_equal", lambda a: a == a[0], lambda a: a == a[0]),
    ("broadcast_not_equal", lambda a: a != a[0], lambda a: a != a[0]),
]
# Operators that make arrays or write in place; test_array and test_autograd use them.
ELSEWHERE = {
    "_zeros",
    "_ones",
    "_full",
    "_slice_assign",
    "_slice_assign_scalar",
    "_slice_backward",
    "_random_normal",
    "_random_uniform",
}


def inputs(shapes: list[tuple[int, ...]], seed: int = 0) -> list[Any]:
    chance = np.random.default_rng(seed)
    sizes = [int(np.prod(shape)) for shape in shapes]
    values = 0.3 + chance.permutation(sum(sizes)) * (1.5 / max(sum(sizes), 1))
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def test_every_operator_has_a_case() -> None:
    known = {name for name, *_ in CASES} | {name for name, *_ in WITHOUT_GRADIENT} | ELSEWHERE
    assert known == set(TABLE)
    with_gradient = {name for name, op in TABLE.items() if op.gradient is not None}
    assert with_gradient == {name for name, *_ in CASES}


@pytest.mark.parametrize(("name", "ours", "numpys", "shapes"), CASES, ids=[c[0] for c in CASES])
def test_forward_and_numeric_gradient(
    any_kind: str, name: str, ours: Any, numpys: Any, shapes: list[tuple[int, ...]]
) -> None:
    values = inputs(shapes)
    arrays = [nd.array(value) for value in values]
    for array in arrays:
        array.attach_grad()
    told: list[str] = []
    nd.hooks.add("pushed", told.append)
    try:
        with nd.autograd.record():
            result = ours(*arrays)
    finally:
        nd.hooks.remove("pushed", told.append)
    assert [task.name for task in told if task.kind == nd.OP][-1] == name
    expected = np.asarray(numpys(*values))
    assert result.shape == expected.shape
    assert result.dtype == np.float64
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-12)
    weights = inputs([expected.shape], 1)[0]
    result.backward(nd.array(weights))
    for position, (array, value) in enumerate(zip(arrays, values, strict=True)):
        numeric = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [other.copy() for other in values]
                moved[position][index] += step
                ends.append((np.asarray(numpys(*moved)) * weights).sum())
            numeric[index] = (ends[0] - ends[1]) / 2e-6
        assert array.grad is not None
        np.testing.assert_allclose(array.grad.asnumpy(), numeric, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("name", "ours", "numpys"), WITHOUT_GRADIENT)
def test_without_gradient(name: str, ours: Any, numpys: Any) -> None:
    value = inputs([(4, 3)])[0]
    value[1, 1] = 1
    a = nd.array(value)
    a.attach_grad()
    with nd.autograd.record():
        result = ours(a)
    np.testing.assert_array_equal(result.asnumpy(), np.asarray(numpys(value), result.dtype))
    assert result.node is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_types(dtype: str) -> None:
    a = nd.array([[1, 2], [3, 4]], dtype=dtype)
    floating = np.dtype(dtype) if dtype.startswith("float") else np.dtype("float32")
    assert (a + 1).dtype == (a * 2).dtype == (1 - a).dtype == dtype
    assert (a + 1.5).dtype == (a / 2).dtype == nd.exp(a).dtype == nd.mean(a).dtype == floating
    assert (a > 1).dtype == nd.dot(a, a).dtype == nd.sum(a).dtype == nd.max(a).dtype == dtype
    assert (a + 1.5).asnumpy().tolist() == [[2.5, 3.5], [4.5, 5.5]]
    assert (a**-1).asnumpy()[1, 1] == 0.25
    assert nd.argmax(a).dtype == "float32"
    for result in (a + 1, a + 1.5, nd.exp(a), nd.mean(a), a > 1, nd.dot(a, a), nd.max(a, 0)):
        assert result.asnumpy().dtype == result.dtype


def test_infinities_are_values_and_not_warnings() -> None:
    zero = nd.zeros(2)
    assert np.isneginf(nd.log(zero).asnumpy()).all()
    assert np.isnan((zero / zero).asnumpy()).all()
    assert nd.sigmoid(nd.array([-1e4, 1e4])).asnumpy().tolist() == [0, 1]


def test_defining_twice_is_refused_and_a_wrong_kernel_is_caught() -> None:
    with pytest.raises(nd.EngineError, match="twice"):
        define("sqrt", np.sqrt)
    define("_test_wrong_shape", lambda out, a: a[:1])
    try:
        result = nd.apply("_test_wrong_shape", nd.ones(3))
        with pytest.raises(nd.EngineError, match="promised"):
            result.wait_to_read()
    finally:
        del TABLE["_test_wrong_shape"]
