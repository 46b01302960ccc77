"""The tape: modes, accumulation, freeing, threads. Gradients of operators: test_operators."""

from __future__ import annotations

import gc
import threading
import weakref

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
