"""Arrays in MXNet's terms, wherever they come from."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest
from tests.compat.mxnet import programs

import opscope.compat.mxnet as mx
from opscope import engine

NDArray = mx.nd.NDArray


def test_every_way_to_an_array_is_an_ndarray(kind: str) -> None:
    x = mx.nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    made = [
        x, y, x.grad, x + 1, 1 - x, x / x, -x, x**2, x > 2, x == x, x[0], x[0:1], x.T, x.copy(),
        x.detach(), x.astype("int32"), x.reshape(-1), x.as_in_context(mx.cpu()), x.mean(), x.exp(),
        x.copyto(mx.cpu()), mx.nd.sqrt(x), mx.nd.dot(x, x), mx.nd.zeros(3), mx.nd.empty(3),
        mx.nd.arange(3), mx.nd.full(3, 1), mx.random.normal(shape=3), mx.nd.add(x, 1),
        mx.nd.Custom(x, op_type="MyAdd1"), mx.nd._internal._plus_scalar(x, scalar=1),
        next(iter(x)),
    ]  # fmt: skip
    x += 1
    assert {type(one) for one in [*made, x]} == {NDArray}


def test_bodies_of_operators_get_ndarrays(kind: str) -> None:
    seen: list[type] = []

    class Looks(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            seen.extend(map(type, (*in_data, *out_data)))
            out_data[0][:] = in_data[0].as_in_context(mx.cpu())

        def backward(
            self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
        ) -> None:
            seen.extend(map(type, (*out_grad, *in_data, *out_data, *in_grad)))

    programs.register("Looks2", Looks)
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="Looks2")
    y.backward()
    mx.nd.waitall()
    assert seen == [NDArray] * 6


def test_without_a_backward_the_gradients_are_zeros(kind: str) -> None:
    class Forward(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0] * 2)

    programs.register("Forward", Forward)
    x = mx.nd.ones((2,))
    for grad_req, wanted in (("write", 3), ("add", 3)):
        x.attach_grad(grad_req)
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type="Forward") + x * 3
        y.backward()
        assert x.grad.asnumpy().tolist() == [wanted] * 2
    mx.nd.waitall()


def test_arrays_of_the_engine_stay_what_they_are() -> None:
    assert type(engine.ones((2,)) + 1) is engine.Array
    assert type(mx.nd.ones((2,)) + engine.ones((2,))) is NDArray


def test_types_of_elements() -> None:
    assert mx.nd.array([1, 2]).dtype == np.float32
    assert mx.nd.array(np.arange(3)).dtype == np.float32
    assert mx.nd.array(mx.nd.ones(3, dtype="float64")).dtype == np.float64
    assert mx.nd.array([1], dtype="int32").dtype == np.int32
    assert mx.nd.zeros((2,), mx.cpu(), "float16").dtype == np.float16
    assert isinstance(mx.nd.ones(1).asscalar(), np.float32)


def test_out_is_written_and_returned(kind: str) -> None:
    x, out = mx.nd.array([1, 4, 9]), mx.nd.zeros((3,))
    calls: list[tuple[Any, list[float]]] = [
        (lambda: mx.nd._internal._plus_scalar(x, scalar=1, out=out), [2, 5, 10]),
        (lambda: mx.nd._internal._mul_scalar(x, 3, out=out), [3, 12, 27]),
        (lambda: mx.nd._internal._zeros(shape=(3,), dtype="float32", out=out), [0, 0, 0]),
        (lambda: mx.nd.sqrt(x, out=out), [1, 2, 3]),
        (lambda: mx.nd.elemwise_add(x, x, out=out), [2, 8, 18]),
        (lambda: mx.nd.ones((3,), out=out), [1, 1, 1]),
        (lambda: x.copyto(out), [1, 4, 9]),
    ]
    for call, wanted in calls:
        assert call() is out
        assert out.asnumpy().tolist() == wanted
    assert mx.random.uniform(5, 6, out=out) is out
    assert out.asnumpy().min() >= 5


def test_single_elements_are_arrays_of_one(kind: str) -> None:
    """MXNet's arrays without axes do not come from indexing: `x[i].asnumpy()[0]` is common."""
    v, m = mx.nd.array([1, 2, 3]), mx.nd.array([[1, 2], [3, 4]])
    for one, value in (
        (v[0], 1), (v[-1], 3), (v[np.int64(1)], 2), (m[1, 0], 3), (m[..., -1, -1], 4), (m[1][0], 3),
        (v[2][0], 3), (next(iter(v)), 1),
    ):  # fmt: skip
        assert (one.shape, one.asnumpy().tolist(), one.asscalar()) == ((1,), [value], value)
    assert repr(v[0]) == "\n[1.]\n<NDArray 1 @cpu(0)>"
    assert [len(v[1:2]), len(list(v)), m[0, :].shape, m[None, 0, 0].shape] == [1, 3, (2,), (1,)]
    for key in (3, -4, (0, 2), (2, 0)):
        with pytest.raises(IndexError):
            (m if isinstance(key, tuple) else v)[key]
    v.attach_grad()
    with mx.autograd.record():
        y = v[1] * 3
    y.backward()
    assert v.grad.asnumpy().tolist() == [0, 3, 0]


def test_printing_shows_the_elements() -> None:
    text = repr(mx.nd.array([[1, 2], [3, 4]]))
    assert text == "\n[[1. 2.]\n [3. 4.]]\n<NDArray 2x2 @cpu(0)>"


def test_copies_to_itself_and_without_need(kind: str) -> None:
    x = mx.nd.ones((2,))
    with pytest.warns(RuntimeWarning, match="itself"):
        assert x.copyto(x) is False
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x
    assert x.as_in_context(mx.cpu()) is x
    assert [x.stype, x.ctx] == ["default", mx.cpu()]


def test_pickled_and_deeply_copied(kind: str) -> None:
    x = mx.nd.array([[1, 2], [3, 4]], dtype="float16") * 2
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy({"x": x[1]})["x"], copy.copy(x)):
        assert type(other) is NDArray
        assert other.dtype == np.float16
        other += 1
    assert other.asnumpy().tolist() == [[3, 5], [7, 9]]
    assert x.asnumpy().tolist() == [[2, 4], [6, 8]]


def test_contexts() -> None:
    assert mx.cpu() == mx.Context("cpu", 0) == mx.Context(mx.cpu())
    assert mx.cpu() != mx.gpu()
    assert {mx.cpu(1): 1}[mx.Context("cpu", 1)] == 1
    assert [str(mx.gpu(2)), mx.gpu(2).device_type, mx.gpu(2).device_id] == ["gpu(2)", "gpu", 2]
    with mx.cpu(3) as inner:
        assert mx.current_context() is inner
    assert mx.current_context() == mx.cpu()


def test_what_reshape_is_told_counts() -> None:
    x = mx.nd.zeros((2, 3, 4))
    assert x.reshape((-1, 0), reverse=True).shape == x.reshape(shape=(6, 0), reverse=True).shape
    with pytest.raises(TypeError, match="not order"):
        x.reshape((6, 4), order="F")


def test_numbers_are_drawn_from_numbers() -> None:
    with pytest.raises(TypeError, match="low must be a number, not NDArray"):
        mx.nd.random.uniform(mx.nd.zeros(2), mx.nd.ones(2))


def test_seeds(kind: str) -> None:
    drawn = []
    for _ in range(2):
        mx.random.seed(7)
        drawn.append([mx.nd.random.uniform(shape=(3,)).asnumpy(), mx.nd.random_normal(shape=2)])
    np.testing.assert_array_equal(drawn[0][0], drawn[1][0])
    np.testing.assert_array_equal(drawn[0][1].asnumpy(), drawn[1][1].asnumpy())


def test_bulk_changes_no_result(kind: str) -> None:
    x = mx.nd.ones((3,))
    assert mx.engine.set_bulk_size(8) == 0
    with mx.engine.bulk(3):
        for _ in range(10):
            x += 1
    for _ in range(10):
        x += 1
    assert mx.engine.set_bulk_size(0) == 8
    assert x.asnumpy().tolist() == [21, 21, 21]


def test_a_bulk_left_open_in_an_operator_is_handed_over(kind: str) -> None:
    class Leaves(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            assert mx.engine.set_bulk_size(100) == 0
            self.assign(out_data[0], req[0], in_data[0] + 1)

    programs.register("Leaves", Leaves)
    for _ in range(3):
        y = mx.nd.Custom(mx.nd.ones((2,)), op_type="Leaves")
        assert y.asnumpy().tolist() == [2, 2]


def test_the_place_of_an_operator_is_where_it_was_registered() -> None:
    programs.register("Here", programs.add(1))
    (info,) = (info for info in engine.registered() if info.name == "Here")
    assert info.file == programs.__file__


def test_comparing() -> None:
    a = mx.nd.array([1, 2])
    mx.test_utils.assert_almost_equal(a, np.array([1, 2.00001]))
    with pytest.raises(AssertionError, match="mine and yours"):
        mx.test_utils.assert_almost_equal(a, a + 1, names=("mine", "yours"))
    assert mx.test_utils.same(a, a.copy())
    assert not mx.test_utils.almost_equal(a, a + 1)


# Parts have their elements in common with the array, as MXNet's


def test_writing_to_a_part_writes_to_the_array(kind: str) -> None:
    m = mx.nd.zeros((4, 3))
    m[0][:] = 1
    m[1][1] = 2
    mx.nd.exp(mx.nd.zeros((3,)), out=m[2])
    m[2][0:2] += 4
    mx.nd.array([7]).copyto(m[3, 2])
    for number, row in enumerate(m):
        row *= 10 + number
    assert m.asnumpy().tolist() == [[10, 10, 10], [0, 22, 0], [60, 60, 12], [0, 0, 91]]
    row, middle = m[1], m[1:3]
    m[:] = 3
    assert row.asnumpy().tolist() == [3, 3, 3]
    m += 1
    assert middle.asnumpy().tolist() == [[4, 4, 4], [4, 4, 4]]
    middle[0] = 0
    assert (row + 1).asnumpy().tolist() == [1, 1, 1]
    assert m[1:3][0][1:].asnumpy().tolist() == [0, 0]
    m.astype("float64").copyto(m)  # another buffer behind the same array
    m[0] = mx.nd.array([5, 6, 7])
    m[1:] = m[:-1]
    assert row.asnumpy().tolist() == [5, 6, 7]


def test_another_shape_has_the_elements_in_common(kind: str) -> None:
    m = mx.nd.zeros((2, 3))
    flat = m.reshape(-1)
    flat[1:3] = mx.nd.array([5, 6])
    m[1].reshape((3, 1))[2] = 7
    m.reshape((3, 2))[1] += 1
    assert m.asnumpy().tolist() == [[0, 5, 7], [1, 0, 7]]
    m[:] = m.T.T * 2  # the elements of that lie in another order
    (m.T * m.T).T.copyto(m)
    flat[0] = 9
    assert m.asnumpy().tolist() == [[9, 100, 196], [4, 0, 196]]
    m.attach_grad()
    with mx.autograd.record():
        y = m.reshape((3, 2))[2] * 3
    y.backward()
    assert m.grad.asnumpy().tolist() == [[0, 0, 0], [0, 3, 3]]
    with pytest.raises(ValueError, match="do not fill"):
        m.reshape((4, 2))


def test_parts_of_which_the_elements_lie_apart_are_copies(kind: str) -> None:
    for key in ((slice(None), 0), slice(None, None, 2), slice(None, None, -1), [0, 1]):
        m = mx.nd.zeros((3, 3))
        m[key][:] = 1
        assert m.asnumpy().tolist() == [[0] * 3] * 3
    assert m[0:0].shape == (0, 3)
    for key in (
        (Ellipsis, slice(None)),
        (0, Ellipsis),
        (slice(1), slice(None)),
        (1, slice(1, 2)),
        None,
    ):
        m[key][:] = 1
    assert m.asnumpy().sum() == 9
    for key in (3, (0, 0, 0), (Ellipsis, Ellipsis), (0, 5)):
        with pytest.raises((IndexError, mx.MXNetError)):
            m[key]


def test_a_part_outlives_its_array_and_waits_for_what_is_written_to_it(kind: str) -> None:
    row = (mx.nd.ones((2, 3)) * 3)[1]
    gc.collect()
    assert row.asnumpy().tolist() == [3, 3, 3]
    bad = mx.random.normal(0, -1, shape=(2, 2))
    part = bad[0]
    with pytest.raises(mx.MXNetError):
        part.wait_to_read()
    bad.wait_to_read()  # they have the failure in common too, and it has been told


def test_parts_of_what_is_on_the_tape_are_recorded(kind: str) -> None:
    x, other = mx.nd.array([[1, 2], [3, 4]]), mx.nd.zeros((2, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x[0] * x[1, 0] + other[0]
        with mx.autograd.pause():
            other[0][:] = x[0]
        z = x[0:1].detach() * x[1]
    y.backward()
    assert x.grad.asnumpy().tolist() == [[3, 3], [3, 0]]
    z.backward()
    assert x.grad.asnumpy().tolist() == [[0, 0], [1, 2]]
    assert other.asnumpy().tolist() == [[1, 2], [0, 0]]


def test_parts_of_one_array_inside_an_operator(kind: str) -> None:
    class Rows(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            for number in range(2):
                self.assign(out_data[0][number], req[0], in_data[0] * (number + 1))
                out_data[0][number][2:] = in_data[1][2]
            aux[0][1][:] += 1

        def backward(
            self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
        ) -> None:
            for number in range(3):
                self.assign(in_grad[0][number], req[0], out_grad[0][:, number].sum())

    class Prop(mx.operator.CustomOpProp):
        def list_arguments(self) -> list[str]:
            return ["one", "other"]

        def list_auxiliary_states(self) -> list[str]:
            return ["state"]

        def infer_shape(self, shapes: Any) -> Any:
            return shapes, [[2, *shapes[0]]], [[2, 1]]

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Rows()

    mx.operator.register("Rows")(Prop)
    m, state = mx.nd.array([[1, 2, 3], [4, 5, 6]]), mx.nd.zeros((2, 1))
    y = mx.nd.Custom(m[0], m[1], state, op_type="Rows")
    m[:] = 0
    assert y.asnumpy().tolist() == [[1, 2, 6], [2, 4, 6]]
    assert state.asnumpy().tolist() == [[0], [1]]
    x = mx.nd.array([1, 2, 3])
    x.attach_grad("add")
    with mx.autograd.record():
        y = mx.nd.Custom(x, x, state, op_type="Rows")
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]
