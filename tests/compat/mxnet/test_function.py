"""`mx.autograd.Function`, as MXNet has it, without its faults; and its calls in the profiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compat.mxnet.conftest import Profiled

import opscope.compat.mxnet as mx
from opscope.compat.mxnet import autograd, nd

CUSTOM = "Custom Operator"


class MyFn(mx.autograd.Function):
    """The sigmoid of MXNet's own documentation."""

    def forward(self, x: Any) -> Any:
        y = 1 / (1 + mx.nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy: Any) -> Any:
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def leaf(*values: float, grad_req: str = "write") -> Any:
    x = nd.array(values or (1.0, 2.0, 3.0))
    x.attach_grad(grad_req)
    return x


def test_the_example_of_its_documentation(kind: str) -> None:
    x = leaf()
    with autograd.record():
        m = MyFn()(x)
        m.backward()
    y = 1 / (1 + np.exp(-np.array([1.0, 2.0, 3.0])))
    np.testing.assert_allclose(m.asnumpy(), y, rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), y * (1 - y), rtol=1e-5)


def test_its_methods_are_handed_arrays_with_the_methods_of_mxnet(kind: str) -> None:
    seen: list[Any] = []

    class Looks(mx.autograd.Function):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, a: Any, b: Any) -> Any:
            seen.append((type(a), type(b)))
            return a.clip(0, 2) * self.factor, b

        def backward(self, da: Any, db: Any) -> Any:
            seen.append((type(da), type(db)))
            with mx.engine.bulk(4):
                return nd._internal._mul_scalar(da, 5), db.abs()

    x = leaf()
    with autograd.record():
        outputs = Looks(4)(x, nd.ones((3,)))
        y = (outputs[0] + outputs[1]).sum()
    y.backward()
    assert type(outputs) is tuple
    assert outputs[0].asnumpy().tolist() == [4, 8, 8]
    assert x.grad.asnumpy().tolist() == [5, 5, 5]
    assert seen == [(nd.NDArray, nd.NDArray)] * 2


def test_what_mxnet_loses_is_there(kind: str) -> None:
    """There grad_req 'add' gives zeros, as does every input after one without a gradient, and a
    forward that raised leaves recording off."""

    class Product(mx.autograd.Function):
        def forward(self, a: Any, b: Any) -> Any:
            self.save_for_backward(a, b)
            return a * b

        def backward(self, slope: Any) -> Any:
            a, b = self.saved_tensors
            return slope * b, slope * a

    class Bad(mx.autograd.Function):
        def forward(self, x: Any) -> Any:
            raise ValueError("at once")

    plain, x = nd.array([4.0, 5.0, 6.0]), leaf(grad_req="add")
    for _ in range(2):
        with autograd.record():
            with pytest.raises(ValueError, match="at once"):
                Bad()(x)
            y = Product()(plain, x)
        y.backward()
    assert x.grad.asnumpy().tolist() == [8, 10, 12]


def test_errors_are_those_of_mxnet(kind: str) -> None:
    class Bad(mx.autograd.Function):
        def forward(self, x: Any) -> Any:
            return x * 2

        def backward(self, dy: Any) -> Any:
            raise ValueError("no such luck")

    class Wrong(Bad):
        def backward(self, dy: Any) -> Any:
            return dy, dy

    class Same(mx.autograd.Function):
        def forward(self, x: Any) -> Any:
            return x

    x = leaf()
    for cls, text in ((Bad, "no such luck"), (Wrong, "Wrong.backward must return as many arrays")):
        with autograd.record():
            y = cls()(x)
        y.backward()
        with pytest.raises(mx.base.MXNetError, match=text):
            x.grad.asnumpy()
    with autograd.record(), pytest.raises(mx.base.MXNetError, match="on the tape"):
        Same()(x)
    function = MyFn()
    function(x)
    with pytest.raises(AssertionError, match="once"):
        function(x)


def test_the_table_has_its_calls_and_what_they_own(kind: str, profiled: Profiled) -> None:
    profiled.run()
    for _ in range(3):
        x = leaf()
        with autograd.record():
            y = MyFn()(x) + 1
        y.backward()
        x.grad.wait_to_read()
    profiled.stop()
    counts = profiled.counts(CUSTOM)
    forward = ("negative", "exp", "_plus_scalar", "_rdiv_scalar")
    back = {"broadcast_mul": 6, "_rminus_scalar": 3, "_copyto": 3}
    assert counts["MyFn"] == counts["MyFn::pure_python"] == 3
    assert counts["_backward_MyFn"] == counts["_backward_MyFn::pure_python"] == 3
    for name in forward:
        assert counts[f"MyFn::{name}"] == 3
    for name, count in back.items():
        assert counts[f"_backward_MyFn::{name}"] == count
    owned = {name for name in counts if name.rpartition("::")[2] not in ("wait", "dispatch")}
    assert owned == {
        *("MyFn", "MyFn::pure_python", "_backward_MyFn", "_backward_MyFn::pure_python"),
        *(f"MyFn::{name}" for name in forward),
        *(f"_backward_MyFn::{name}" for name in back),
    }
    assert profiled.counts("operator")["_plus_scalar"] == 3
