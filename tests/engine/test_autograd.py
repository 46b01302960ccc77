"""The tape: modes, accumulation, freeing, threads. Gradients of operators: test_operators."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine import autograd


def leaf(*values: float, req: str = "write") -> nd.Array:
    a = nd.array(np.array(values))
    a.attach_grad(req)
    return a


def test_modes_nest_and_restore() -> None:
    assert not autograd.is_recording()
    with autograd.record():
        assert autograd.is_recording()
        assert autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording()
            assert not autograd.is_training()
            with autograd.train_mode():
                assert autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording()
            assert not autograd.is_training()
        with autograd.record(train_mode=False):
            assert not autograd.is_training()
        assert autograd.is_training()
    with pytest.raises(KeyError), autograd.record():
        raise KeyError
    assert not autograd.is_recording()


def test_uses_add_up_and_shared_parts_are_walked_once(any_kind: str) -> None:
    x = leaf(1, 2, 3)
    with autograd.record():
        shared = x * x
        y = (shared + shared * shared + x).sum()
    y.backward()
    values = np.array([1.0, 2, 3])
    assert x.grad.asnumpy().tolist() == (2 * values + 4 * values**3 + 1).tolist()


def test_write_add_and_null(any_kind: str) -> None:
    write, add, null = leaf(1, 2), leaf(1, 2, req="add"), leaf(1, 2, req="null")
    for _ in range(3):
        with autograd.record():
            y = (write * 2 + add * 3 + null).sum()
        y.backward()
    assert write.grad.asnumpy().tolist() == [2, 2]
    assert add.grad.asnumpy().tolist() == [9, 9]
    assert null.grad is None


def test_heads_and_their_gradients() -> None:
    x = leaf(1, 2)
    with autograd.record():
        a, b = x * 2, x * 5
    autograd.backward([a, b], [None, nd.array(np.array([1.0, 10.0]))])
    assert x.grad.asnumpy().tolist() == [7, 52]
    x.backward()  # a leaf is its own head
    assert x.grad.asnumpy().tolist() == [1, 1]
    with pytest.raises(nd.EngineError, match="2 heads"):
        autograd.backward([a, b], [None])
    with pytest.raises(nd.ShapeError):
        x.backward(nd.ones(3))
    with pytest.raises(nd.EngineError, match="not made by recorded"):
        nd.ones(2).backward()


def test_freed_unless_retained() -> None:
    x = leaf(1, 2)
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]
    with pytest.raises(nd.EngineError, match="freed"):
        y.backward()


def test_detach_pause_and_unrelated_stop_the_flow() -> None:
    x, other = leaf(3), leaf(1)
    with autograd.record():
        y = x * x.detach()
        with autograd.pause():
            z = x * 10
        w = (y + z).sum()
    w.backward()
    assert x.grad.asnumpy().tolist() == [3]
    assert other.grad.asnumpy().tolist() == [0]


def test_attaching_makes_a_leaf() -> None:
    x = leaf(2)
    with autograd.record():
        y = x * 3
        y.attach_grad()
        z = y * y
    z.backward()
    assert y.grad.asnumpy().tolist() == [12]
    assert x.grad.asnumpy().tolist() == [0]
    with pytest.raises(nd.EngineError, match="grad_req"):
        x.attach_grad("sometimes")


def test_changing_in_place_while_recording_is_refused() -> None:
    x, plain = leaf(1, 2), nd.ones(2)
    with autograd.record():
        for change in (
            lambda: x.__iadd__(1),
            lambda: x.__setitem__(0, 3),
            lambda: plain.__iadd__(x),
        ):
            with pytest.raises(nd.EngineError, match="in place"):
                change()
        plain += 1  # not part of any gradient
    x += 1
    assert x.asnumpy().tolist() == [2, 3]


def test_the_tape_is_per_thread() -> None:
    seen = []
    with autograd.record():
        thread = threading.Thread(target=lambda: seen.append(autograd.is_recording()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_deep_tapes_do_not_recurse() -> None:
    x = leaf(1)
    with autograd.record():
        y = x
        for _ in range(3000):
            y = y + 1
    y.backward()
    assert x.grad.asnumpy().tolist() == [1]


def test_a_dropped_tape_needs_no_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf(1, 2)
        with autograd.record():
            y = nd.sqrt(x * x)
        middle = weakref.ref(y)
        nd.waitall()
        del y
        assert middle() is None
    finally:
        gc.enable()


def test_linear_regression_learns(any_kind: str) -> None:
    chance = np.random.default_rng(0)
    x = chance.normal(size=(64, 3))
    target = nd.array(x @ np.array([[1.0], [-2.0], [0.5]]) + 3)
    data, w, b = nd.array(x), nd.zeros((3, 1), "float64"), nd.zeros(1, "float64")
    for parameter in (w, b):
        parameter.attach_grad()
    for _ in range(200):
        with autograd.record():
            loss = nd.square(nd.dot(data, w) + b - target).mean()
        loss.backward()
        w -= w.grad * 0.1
        b -= b.grad * 0.1
    np.testing.assert_allclose(w.asnumpy().ravel(), [1, -2, 0.5], atol=1e-4)
    np.testing.assert_allclose(b.asnumpy(), [3], atol=1e-4)


def test_modes_by_hand() -> None:
    assert autograd.set_recording(True) is False
    assert autograd.set_training(True) is False
    assert autograd.is_recording()
    assert autograd.is_training()
    assert autograd.set_training(False) is True
    assert autograd.set_recording(False) is True
    assert not autograd.is_recording()


def test_marked_variables_have_gradients_of_the_caller(any_kind: str) -> None:
    x, y = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    given, more = nd.full(2, 9), nd.full(2, 9)
    autograd.mark_variables([x, y], [given, more], ["write", "add"])
    with autograd.record():
        z = x * y
    z.backward()
    assert x.grad is given
    assert y.grad is more
    assert given.asnumpy().tolist() == [3, 4]
    assert more.asnumpy().tolist() == [10, 11]
    autograd.mark_variables(x, given, "null")
    assert x.grad is None
    with pytest.raises(nd.EngineError, match="1 gradients"):
        autograd.mark_variables([x, y], [given])
    with pytest.raises(nd.ShapeError):
        autograd.mark_variables(x, nd.ones(3))
    with pytest.raises(nd.EngineError, match="grad_req"):
        autograd.mark_variables(x, given, "perhaps")


def test_grad_returns_and_touches_nothing(any_kind: str) -> None:
    x, w = leaf(1, 2), leaf(3, 4, req="add")
    with autograd.record():
        middle = x * w
        y = middle * middle
    dx, dmiddle, dy = autograd.grad(y, [x, middle, y], retain_graph=True)
    assert dx.asnumpy().tolist() == [18, 64]
    assert dmiddle.asnumpy().tolist() == [6, 16]
    assert dy.asnumpy().tolist() == [1, 1]
    (dw,) = autograd.grad([y], [w], [nd.array(np.array([1.0, 10.0]))], retain_graph=True)
    assert dw.asnumpy().tolist() == [6, 320]
    assert autograd.grad(y, x).asnumpy().tolist() == [18, 64]
    assert x.grad.asnumpy().tolist() == w.grad.asnumpy().tolist() == [0, 0]
    with pytest.raises(nd.EngineError, match="freed"):
        autograd.grad(y, x)
    with autograd.record():
        y = x * 2
    for stranger in (nd.ones(2), w):
        with pytest.raises(nd.EngineError, match="do not depend on variable 1"):
            autograd.grad(y, [x, stranger])
    with pytest.raises(nd.EngineError, match="create_graph"):
        autograd.grad(y, x, create_graph=True)
    assert autograd.grad(y, x).asnumpy().tolist() == [2, 2]  # a refusal frees nothing


def test_one_head_needs_no_list() -> None:
    x = leaf(1, 2)
    with autograd.record():
        y = x * x
    autograd.backward(y, nd.array(np.array([1.0, 3.0])))
    assert x.grad.asnumpy().tolist() == [2, 12]


def test_a_part_that_was_freed_is_told_before_anything_is_pushed(any_kind: str) -> None:
    x = leaf(1, 2)
    with autograd.record():
        y = x * x
        z, w = y + 1, y * 3
    z.backward()
    with pytest.raises(nd.EngineError, match="'elemwise_mul' was freed; use retain_graph"):
        w.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]


def test_several_heads_meet_and_one_may_be_inside_the_other() -> None:
    x = leaf(1, 2)
    with autograd.record():
        y = x * 3
        z = y * y
    autograd.backward([z, y, z])
    assert x.grad.asnumpy().tolist() == [2 * 18 + 3, 2 * 36 + 3]


def test_attaching_after_the_use_does_not_cut() -> None:
    x = leaf(1, 2)
    with autograd.record():
        y = x * 2
        z = y * y
    y.attach_grad()
    z.backward()
    assert x.grad.asnumpy().tolist() == [8, 16]
    assert y.grad.asnumpy().tolist() == [0, 0]


def test_out_is_recorded_unless_it_would_lose_elements(any_kind: str) -> None:
    x, y = leaf(1, 2), nd.empty(2, "float64")
    with autograd.record():
        nd.square(x, out=y)
        z = y * 3
    z.backward()
    assert x.grad.asnumpy().tolist() == [6, 12]
    with autograd.record():
        for change in (
            lambda: nd.square(x, out=x),
            lambda: nd.square(nd.ones(2), out=x),
            lambda: nd.square(x, out=y),  # recorded above
            lambda: nd.split(x, 2, axis=0, out=[x[0:1], x]),
        ):
            with pytest.raises((nd.EngineError, nd.ShapeError)):
                change()
        nd.square(nd.ones(2), out=nd.empty(2))  # nothing to do with gradients


def test_a_freed_tape_lets_go_of_the_elements() -> None:
    x = leaf(1, 2)
    with autograd.record():
        y = x * 2
        z = nd.exp(y)
    variable = y.storage.var
    del y
    gc.collect()
    nd.waitall()
    assert not variable.deleted
    z.backward()
    nd.waitall()
    nd.waitall()
    assert variable.deleted


def test_a_mode_of_training_reaches_bodies_of_backward() -> None:
    from .test_custom import add_one, define

    seen = []

    def backward(op, req, grads, ins, outs, in_grads, aux):  # type: ignore[no-untyped-def]
        seen.append(autograd.is_training())
        op.assign(in_grads[0], req[0], grads[0])

    define("a_mode", add_one, backward)
    x = leaf(1)
    for mode in (True, False):
        with autograd.record(train_mode=False):
            y = nd.custom(x, op_type="a_mode")
        autograd.backward(y, train_mode=mode)
        nd.waitall()
    assert seen == [True, False]


def test_an_out_that_was_a_second_output_before() -> None:
    x = leaf(1, 2)
    with autograd.record():
        part = nd.split(x, 2, axis=0)[1]
    part.attach_grad("null")
    with autograd.record():
        nd.sum(x * x, out=part)
    part.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]


# Where no gradient flows it is 0, and not what the last backward pass left


@pytest.mark.parametrize(
    "head",
    [
        lambda x, w: (x > 1) * w,
        lambda x, w: nd.stop_gradient(x * 2) * w,
        lambda x, w: nd.where(x > 1, w, w * 2),
        lambda x, w: nd.take(w, nd.argmax(x, axis=0)),
        lambda x, w: nd.zeros_like(x * x) + w,
        lambda x, w: ((x > 1) + 1) * w,
    ],
)
def test_a_leaf_behind_a_mask_gets_zeros(head: Any, any_kind: str) -> None:
    x, w = nd.array([1, 2, 3]), nd.array([4, 5, 6])
    for array in (x, w):
        array.attach_grad()
        assert array.grad is not None
        array.grad[:] = 9
    with autograd.record():
        y = head(x, w)
    y.backward()
    assert x.grad is not None
    assert w.grad is not None
    assert x.grad.asnumpy().tolist() == [0, 0, 0]
    assert 9 not in w.grad.asnumpy()
    with autograd.record():
        y = head(x, w)
    assert autograd.grad(y, x).asnumpy().tolist() == [0, 0, 0]


def test_zeros_are_not_added_and_not_written_to_what_is_unknown() -> None:
    x, w, other = nd.ones(2), nd.ones(2), nd.ones(2)
    for array, req in ((x, "add"), (w, "write"), (other, "write")):
        array.attach_grad(req)
        assert array.grad is not None
        array.grad[:] = 9
    with autograd.record():
        y = (x > 0) * w + (other > 0).detach() * w
    y.backward()
    assert x.grad is not None
    assert other.grad is not None
    assert x.grad.asnumpy().tolist() == other.grad.asnumpy().tolist() == [9, 9]


def test_masks_can_be_changed_in_place_and_used_in_the_next_pass() -> None:
    x, w = nd.array([1, 2]), nd.array([3, 4])
    x.attach_grad()
    w.attach_grad()
    state = nd.zeros(2)
    with autograd.record():
        mask = x > 1
        mask += 1
        counts = nd.zeros_like(x)
        counts[:] = 5
    for _ in range(3):
        with autograd.record():
            state = nd.stop_gradient(state + x * w)  # as in truncated backpropagation
            y = mask * w + state * counts * w
        y.backward()
    assert w.grad is not None
    assert w.grad.asnumpy().tolist() == [1 + 3 * 3 * 5, 2 + 3 * 8 * 5]


def test_a_custom_operator_that_no_gradient_flows_into_is_not_called_back(any_kind: str) -> None:
    ran: list[str] = []

    class Op(nd.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, *_: Any) -> None:
            ran.append("backward")

    @nd.register("autograd_behind_a_mask")
    class Prop(nd.CustomOpProp):
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> nd.CustomOp:
            return Op()

    x, w = nd.array([1, 2]), nd.array([3, 4])
    x.attach_grad()
    w.attach_grad()
    assert x.grad is not None
    x.grad[:] = 9
    with autograd.record():
        y = nd.custom(x > 1, op_type="autograd_behind_a_mask") * w
    y.backward()
    assert x.grad.asnumpy().tolist() == [0, 0]
    assert w.grad is not None
    assert w.grad.asnumpy().tolist() == [0, 2]
    assert ran == []


def test_gradients_of_grad_are_arrays_of_their_own(any_kind: str) -> None:
    x, y, above = leaf(1, 2), leaf(3), nd.array(np.array([1.0, 2, 3]))
    with autograd.record():
        z = nd.concat(x + 1, y, dim=0)
        w = z - 1
    found = autograd.grad(w, [x, y, z, w], head_grads=above)
    assert isinstance(found, list)
    for number, array in enumerate([above, *found]):
        array[:] = 10 * number
    assert [one.asnumpy().tolist() for one in found] == [[10] * 2, [20], [30] * 3, [40] * 3]
