"""Small programs as people write them for MXNet; what they must give is plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.compat.mxnet import programs

import opscope.compat.mxnet as mx
from opscope import engine
from opscope.compat.mxnet import autograd, nd

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], np.float32)
B = np.array([[2.0, 0.5, -1.0], [3.0, 1.0, 2.0]], np.float32)
ROW = np.array([[10.0, 20.0, 30.0]], np.float32)
POSITIVE = np.abs(A) + 1

Program = Callable[[], Any]

#: Name: (the program, what it gives).
PLAIN: dict[str, tuple[Program, Any]] = {
    "sums of numbers": (lambda: 2 * nd.array(A) - 1 + nd.array(A) / 4, 2 * A - 1 + A / 4),
    "numbers on the left": (lambda: 1 - 2 / nd.array(POSITIVE), 1 - 2 / POSITIVE),
    "pairs": (lambda: nd.array(A) * nd.array(B) - nd.array(B), A * B - B),
    "broadcasting": (lambda: nd.array(A) + nd.array(ROW), A + ROW),
    "powers": (lambda: nd.power(nd.array(A), 2) + nd.array(A) ** 3, A**2 + A**3),
    "functions of pairs": (
        lambda: nd.add(nd.subtract(nd.array(A), 1), nd.multiply(2, nd.divide(nd.array(B), 4))),
        (A - 1) + 2 * (B / 4),
    ),
    "masks": (lambda: (nd.array(A) > 0) * nd.array(B), np.where(A > 0, B, 0)),
    "comparing": (lambda: nd.greater_equal(nd.array(A), nd.array(B)), (A >= B).astype("f")),
    "the greater": (lambda: nd.maximum(nd.array(A), nd.array(B)), np.maximum(A, B)),
    "the lesser, with a number": (lambda: nd.minimum(nd.array(A), 0), np.minimum(A, 0)),
    "functions": (lambda: nd.exp(nd.sqrt(nd.array(POSITIVE))), np.exp(np.sqrt(POSITIVE))),
    "methods": (lambda: nd.array(POSITIVE).log().square(), np.log(POSITIVE) ** 2),
    "by name": (lambda: nd.sqrt(data=nd.array(POSITIVE)), np.sqrt(POSITIVE)),
    "a node's name": (lambda: nd.tanh(nd.array(A), name="hidden"), np.tanh(A)),
    "internal names": (
        lambda: nd._internal._mul_scalar(nd._internal._plus_scalar(nd.array(A), scalar=2), 3),
        (A + 2) * 3,
    ),
    "matrices": (lambda: nd.dot(nd.array(A), nd.array(B).T), A @ B.T),
    "turned matrices": (
        lambda: nd.dot(lhs=nd.array(A), rhs=nd.array(B), transpose_b=True),
        A @ B.T,
    ),
    "turned axes": (lambda: nd.transpose(nd.array(A), axes=(1, 0)), A.T),
    "shapes": (lambda: nd.array(A).reshape((0, -1, 1)).reshape(3, 2), A.reshape(3, 2)),
    "shapes by name": (lambda: nd.reshape(nd.array(A), shape=(-1,)), A.reshape(-1)),
    "folding": (lambda: nd.array(A).sum(axis=0) + nd.max(nd.array(B)), A.sum(0) + B.max()),
    "kept axes": (lambda: nd.mean(nd.array(A), axis=1, keepdims=True), A.mean(1, keepdims=True)),
    "softmax by hand": (
        lambda: nd.exp(nd.array(A)) / nd.sum(nd.exp(nd.array(A)), axis=1, keepdims=True),
        np.exp(A) / np.exp(A).sum(1, keepdims=True),
    ),
    "where the greatest is": (lambda: nd.argmax(nd.array(A), axis=1), np.argmax(A, 1)),
    "one hot": (lambda: nd.one_hot(nd.array([0, 2]), 3), np.eye(3)[[0, 2]]),
    "parts": (lambda: nd.array(A)[1, 0:2] + nd.array(A)[0, 1:], A[1, :2] + A[0, 1:]),
    "parts by function": (
        lambda: nd.slice(nd.array(A), begin=(0, 1), end=(2, None)),
        A[:, 1:],
    ),
    "parts of an axis": (lambda: nd.slice_axis(nd.array(A), axis=-1, begin=0, end=2), A[:, :2]),
    "joining": (
        lambda: nd.concat(nd.array(A), nd.array(B), dim=0),
        np.concatenate([A, B]),
    ),
    "joining a list": (lambda: nd.concatenate([nd.array(A), nd.array(B)]), np.concatenate([A, B])),
    "sums of many": (lambda: nd.ElementWiseSum(*[nd.array(A)] * 3), A * 3),
    "swapped axes": (lambda: nd.array(A).swapaxes(0, 1), A.T),
    "rounding": (lambda: nd.array(A).round() + nd.fix(nd.array(B)), [[3, -2, 2], [4, 5, 0]]),
    "both": (lambda: nd.logical_and(nd.array(A) > 0, nd.array(B) > 0), (A > 0) & (B > 0)),
    "one of them": (lambda: nd.logical_xor(1, nd.array(A) > 0), A <= 0),
    "other types": (lambda: nd.array(A).astype("int32"), A.astype("int32")),
    "made arrays": (
        lambda: nd.ones((2, 3)) * 2 + nd.full((2, 3), 5) + nd.zeros((2, 3)),
        np.full((2, 3), 7),
    ),
    "ranges": (lambda: nd.arange(2, 8, 2, repeat=2), np.repeat(np.arange(2, 8, 2), 2)),
    "likes": (lambda: nd.zeros_like(nd.array(A)) + nd.ones_like(nd.array(A)), np.ones_like(A)),
}


def in_place() -> Any:
    x, y = nd.array(A), nd.array(A)
    x += 1
    x *= y
    x -= 2
    x /= 4
    return x


def written_parts() -> Any:
    x = nd.zeros((2, 3))
    x[:] = 7
    x[0] = nd.array([1, 2, 3])
    x[1, 1:] = np.array([8, 9])
    return x


def copies() -> Any:
    x, y = nd.array(A), nd.empty((2, 3))
    x.copyto(y)
    x += 100
    return y


def chain_with_out() -> Any:
    x = nd.array(A)
    for _ in range(5):
        nd._internal._plus_scalar(x, scalar=1, out=x)
    return x


def bulked() -> Any:
    x = nd.array(A)
    with mx.engine.bulk(4):
        for _ in range(10):
            x += 1
    return x


def gradient_of_a_square() -> Any:
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    return x.grad


def gradient_through_branches() -> Any:
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        z = y * x + y
    z.backward(nd.array(B))
    return x.grad


def gradients_that_add_up() -> Any:
    x = nd.array(A)
    x.attach_grad(grad_req="add")
    for _ in range(3):
        with autograd.record():
            y = x * 3
        y.backward()
    return x.grad


def gradient_of_marked_arrays() -> Any:
    x, gradient = nd.array(A), nd.zeros((2, 3))
    autograd.mark_variables([x], [gradient])
    with autograd.record():
        y = nd.exp(x)
    autograd.backward([y])
    return gradient


def gradient_by_function() -> Any:
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        y = x * x
    return autograd.grad(y, [x])[0]


def gradients_of_one_variable_as_a_list() -> Any:
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        y = x * x
    (gradient,) = autograd.grad(y, x)
    return gradient


def no_gradient_in_a_pause() -> Any:
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with autograd.pause():
            factor = y * 5
        z = y * factor
    z.backward()
    return x.grad


def custom_forward() -> Any:
    return nd.Custom(nd.array(A), op_type="MySigmoid", name="s")


def custom_gradient() -> Any:
    x = nd.array(A)
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="MySigmoid") * 2
    y.backward()
    return x.grad


def custom_in_custom() -> Any:
    return nd.Custom(nd.array(A), op_type="Outer")


class Scaled(mx.operator.CustomOp):
    """Two inputs, two outputs, a state, and a parameter that comes as a text."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        assert is_train == autograd.is_training()
        aux[0][:] = aux[0] + 1
        self.assign(out_data[0], req[0], in_data[0] * self.factor)
        self.assign(out_data[1], req[1], in_data[0] + in_data[1] * aux[0])

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor + out_grad[1])
        self.assign(in_grad[1], req[1], out_grad[1] * aux[0])


@mx.operator.register("Scaled")
class ScaledProp(mx.operator.CustomOpProp):
    def __init__(self, factor: str) -> None:
        super().__init__(need_top_grad=True)
        self.factor = float(factor)

    def list_arguments(self) -> list[str]:
        return ["a", "b"]

    def list_outputs(self) -> list[str]:
        return ["scaled", "mixed"]

    def list_auxiliary_states(self) -> list[str]:
        return ["calls"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, [in_shape[0], in_shape[0]], [[1]]

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Scaled:
        assert nd.zeros((1,), ctx=ctx).context == mx.cpu()
        return Scaled(self.factor)


def custom_with_everything() -> Any:
    a, b, state = nd.array(A), nd.array(B), nd.array([1])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        scaled, mixed = nd.Custom(a, b, state, factor=2.5, op_type="Scaled")
        total = scaled * 2 + mixed * 3
    total.backward()
    return nd.concat(scaled, mixed, a.grad, b.grad, dim=0)


def training_step() -> Any:
    weight = nd.array(B)
    weight.attach_grad()
    for _ in range(3):
        with autograd.record():
            loss = ((nd.dot(nd.array(A), weight.T) - 1) ** 2).mean()
        loss.backward()
        weight -= 0.1 * weight.grad
    return weight


def trained() -> Any:
    weight = B.astype(np.float64)
    for _ in range(3):
        error = A @ weight.T - 1
        weight = weight - 0.1 * (2 * error / error.size).T @ A
    return weight


def _sigmoid() -> Any:
    return 1 / (1 + np.exp(-A))


LONGER: dict[Program, Any] = {
    in_place: ((A + 1) * A - 2) / 4,
    written_parts: [[1, 2, 3], [7, 8, 9]],
    copies: A,
    chain_with_out: A + 5,
    bulked: A + 10,
    gradient_of_a_square: 2 * A,
    gradient_through_branches: (4 * A + 2) * B,
    gradients_that_add_up: np.full_like(A, 9),
    gradient_of_marked_arrays: np.exp(A),
    gradient_by_function: 2 * A,
    gradients_of_one_variable_as_a_list: 2 * A,
    no_gradient_in_a_pause: 2 * 10 * A,
    custom_forward: _sigmoid(),
    custom_gradient: 2 * _sigmoid() * (1 - _sigmoid()),
    custom_in_custom: (A + 3) * 2,
    custom_with_everything: np.concatenate(
        [2.5 * A, A + 2 * B, np.full_like(A, 2 * 2.5 + 3), np.full_like(A, 3 * 2)]
    ),
    training_step: trained(),
}

EVERY = {**PLAIN, **{program.__name__: (program, value) for program, value in LONGER.items()}}


@pytest.mark.parametrize("name", EVERY)
def test_a_program_gives_what_numpy_says(name: str, kind: str) -> None:
    program, wanted = EVERY[name]
    found = program()
    assert type(found) is nd.NDArray
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", LONGER, ids=lambda program: program.__name__)
def test_being_profiled_changes_nothing(program: Program, kind: str, profiled: Any) -> None:
    plain = program().asnumpy()
    profiled.run()
    seen = program().asnumpy()
    profiled.stop()
    np.testing.assert_array_equal(seen, plain)


def test_what_the_engine_learns_appears_by_itself() -> None:
    from opscope.engine.operators.table import TABLE, define

    define("thirdpart", lambda out, a, part: a[:part], lambda shape, part: (part, *shape[1:]))
    try:
        assert "thirdpart" in dir(nd)
        found = nd.thirdpart(nd.array(A), part=1)
        np.testing.assert_array_equal(found.asnumpy(), A[:1])
        np.testing.assert_array_equal(nd.array(A).thirdpart(1).asnumpy(), A[:1])
        with pytest.raises(TypeError, match=r"thirdpart.*part"):
            nd.thirdpart(nd.array(A))
    finally:
        del TABLE["thirdpart"]
    assert not hasattr(nd, "thirdpart")


def test_every_operator_of_the_engine_is_there() -> None:
    from opscope.engine.operators.table import TABLE

    for name in TABLE:
        assert callable(getattr(nd._internal, name))
        assert name.startswith("_") or callable(getattr(nd, name))


def test_the_programs_use_registered_operators() -> None:
    assert {"MySigmoid", "Outer", "Scaled"} <= {info.name for info in engine.registered()}
    assert programs.Sigmoid.forward.__name__ == "forward"
