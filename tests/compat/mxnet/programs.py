"""Custom operators that the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

import opscope.compat.mxnet as mx


def register(name: str, op: type[mx.operator.CustomOp]) -> None:
    """Make the operator known, with one input and one output of its shape."""

    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return op()

    mx.operator.register(name)(Prop)


class Sigmoid(mx.operator.CustomOp):
    """Once through NumPy, with a sub-operator that nobody needs."""

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        x = in_data[0].asnumpy()
        mx.nd.zeros(in_data[0].shape)
        self.assign(out_data[0], req[0], mx.nd.array(1 / (1 + np.exp(-x))))

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        y, dy = out_data[0].asnumpy(), out_grad[0].asnumpy()
        self.assign(in_grad[0], req[0], mx.nd.array(dy * y * (1 - y)))


def add(times: int) -> type[mx.operator.CustomOp]:
    """Adds 1 that many times, one `_plus_scalar` each."""

    class Add(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            y = in_data[0]
            for _ in range(times):
                y = y + 1
            self.assign(out_data[0], req[0], y)

        def backward(
            self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
        ) -> None:
            self.assign(in_grad[0], req[0], out_grad[0])

    return Add


class Outer(mx.operator.CustomOp):
    """Calls another custom operator and waits for it."""

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        y = mx.nd.Custom(in_data[0], op_type="Inner")
        y.wait_to_read()
        self.assign(out_data[0], req[0], y * 2)


class Bad(mx.operator.CustomOp):
    """Pushes one sub-operator and fails."""

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        in_data[0] + 1
        raise ValueError("no such luck")


register("MySigmoid", Sigmoid)
register("MyAdd1", add(1))
register("MyAdd2", add(2))
register("Inner", add(3))
register("Outer", Outer)
register("Bad", Bad)
