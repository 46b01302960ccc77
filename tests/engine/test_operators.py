"""Every operator against NumPy, and every gradient against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine.operators.table import TABLE, define

from .cases import CASES, WITHOUT_GRADIENT

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
    "_arange",
    "_eye",
    "_backward_prod",
    "_backward_take",
    "_backward_pick",
    "_backward_softmax",
    "_backward_log_softmax",
    "_backward_softmax_cross_entropy",
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


def run(name: str, ours: Any, values: list[Any]) -> tuple[Any, Any, list[Any]]:
    """The result, the gradient that came from above, and the gradients, in NumPy."""
    arrays = [nd.array(value) for value in values]
    for array in arrays:
        array.attach_grad()
    told: list[nd.Task] = []
    nd.hooks.add("pushed", told.append)
    try:
        with nd.autograd.record():
            result = ours(*arrays)
    finally:
        nd.hooks.remove("pushed", told.append)
    assert [task.name for task in told if task.kind == nd.OP][-1] == name
    assert result.dtype == np.float64
    weights = inputs([result.shape], 1)[0]
    result.backward(nd.array(weights))
    return result.asnumpy(), weights, [array.grad.asnumpy() for array in arrays]


@pytest.mark.parametrize(("name", "ours", "numpys", "shapes"), CASES, ids=[c[0] for c in CASES])
def test_forward_and_numeric_gradient(
    name: str, ours: Any, numpys: Any, shapes: list[tuple[int, ...]]
) -> None:
    values = inputs(shapes)
    result, weights, gradients = run(name, ours, values)
    expected = np.asarray(numpys(*values))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    for position, (gradient, value) in enumerate(zip(gradients, values, strict=True)):
        numeric = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [other.copy() for other in values]
                moved[position][index] += step
                ends.append((np.asarray(numpys(*moved)) * weights).sum())
            numeric[index] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)


def test_every_kind_gives_the_same(any_kind: str) -> None:
    for name, ours, numpys, shapes in CASES:
        values = inputs(shapes)
        result, _, gradients = run(name, ours, values)
        np.testing.assert_allclose(result, numpys(*values), rtol=1e-12, err_msg=name)
        nd.waitall()
        again = run(name, ours, values)[2]
        for one, other in zip(gradients, again, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize(("name", "ours", "numpys"), WITHOUT_GRADIENT)
def test_without_gradient(name: str, ours: Any, numpys: Any) -> None:
    value = inputs([(4, 3)])[0]
    value[1, 1] = 1
    a = nd.array(value)
    a.attach_grad()
    assert a.grad is not None
    a.grad[:] = 7
    with nd.autograd.record():
        result = ours(a)
    np.testing.assert_array_equal(result.asnumpy(), np.asarray(numpys(value), result.dtype))
    result.backward()
    assert not a.grad.asnumpy().any()


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
