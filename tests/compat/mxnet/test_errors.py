"""Errors are MXNetErrors where MXNet has them, and stay what they are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.compat.mxnet import programs

import opscope.compat.mxnet as mx

MXNetError = mx.base.MXNetError


def bad() -> Any:
    return mx.nd.Custom(mx.nd.zeros((2,)), op_type="Bad")


def test_an_operators_error_waits_and_is_an_mxnet_error(kind: str) -> None:
    for wait in (
        lambda: bad().asnumpy(),
        lambda: bad().wait_to_read(),
        lambda: (bad() * 2).asnumpy(),
        lambda: bad()[0].asscalar(),
        lambda: repr(bad()),
        lambda: mx.nd.array(bad()),
    ):
        with pytest.raises(MXNetError, match="ValueError: no such luck") as caught:
            wait()
        assert isinstance(caught.value.__cause__, ValueError)
        assert isinstance(caught.value, RuntimeError)


def test_waitall_tells_it_once(kind: str) -> None:
    failed = bad()
    with pytest.raises(MXNetError, match="no such luck"):
        mx.nd.waitall()
    mx.nd.waitall()
    assert failed.shape == (2,)


def test_an_error_inside_comes_through_outer_operators(kind: str) -> None:
    class Around(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            bad().wait_to_read()

    programs.register("Around", Around)
    with pytest.raises(MXNetError, match=r"^ValueError: no such luck$"):
        mx.nd.Custom(mx.nd.zeros((2,)), op_type="Around").wait_to_read()


class BadProp(mx.operator.CustomOpProp):
    def infer_shape(self, in_shape: Any) -> Any:
        raise ZeroDivisionError("shapeless")


mx.operator.register("BadProp")(BadProp)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mx.nd.Custom(x, op_type="nobody"),
        lambda x: mx.nd.Custom(x, x, op_type="MyAdd1"),
        lambda x: mx.nd.Custom(x, op_type="BadProp"),
        lambda x: x + mx.nd.ones((5,)),
        lambda x: mx.nd.dot(x, mx.nd.ones((5, 5))),
        lambda x: x.copyto(mx.nd.ones((5,))),
        lambda x: x.backward(),
        lambda x: mx.autograd.backward([x]),
        lambda x: x.attach_grad("sometimes"),
        lambda x: mx.nd.zeros((2,), ctx=mx.gpu()),
        lambda x: mx.nd.array([1], ctx="gpu(0)"),
        lambda x: x.as_in_context(mx.gpu(1)),
        lambda x: mx.operator.register(""),
    ],
)
def test_what_is_refused_at_the_call(call: Callable[[Any], Any]) -> None:
    with pytest.raises(MXNetError):
        call(mx.nd.ones((2, 2)))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x + "1", TypeError),
        (lambda x: x.copyto("cpu"), TypeError),
        (lambda x: x[7], IndexError),
        (lambda x: x.reshape((3,)), ValueError),
        (lambda x: x.asscalar(), ValueError),
        (lambda x: bool(x), ValueError),
        (lambda x: mx.Context("tpu"), ValueError),
        (lambda x: mx.nd._internal._plus_scalar(x), TypeError),
        (lambda x: mx.nd._internal._plus_scalar(x, scalar=1, colour=2), TypeError),
    ],
)
def test_other_errors_keep_their_type(call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        call(mx.nd.ones((2, 2)))
    assert not isinstance(caught.value, MXNetError)


def test_there_is_no_gpu() -> None:
    assert mx.num_gpus() == 0
    with pytest.raises(MXNetError, match=r"no gpu\(0\).*mx\.cpu\(\)"):
        mx.nd.ones((2,), ctx=mx.gpu())
    with mx.gpu(), pytest.raises(MXNetError, match="CPU only"):
        mx.nd.ones((2,))
    assert mx.nd.ones((2,)).context == mx.cpu() == mx.current_context()
