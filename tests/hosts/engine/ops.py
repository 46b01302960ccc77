"""Custom operators for tests from plain functions, and the engines to run them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opscope import engine as nd

Body = Callable[[Any], Any]

#: Each way custom operators can run: the keywords of `engine.use`.
ENGINES = {
    "pool": {"kind": "threaded", "workers": 3, "custom_on": "pool"},
    "workers": {"kind": "threaded", "workers": 2, "custom_on": "workers"},
    "naive": {"kind": "naive"},
}


@contextmanager
def engine_of(kind: str) -> Iterator[None]:
    """The engine of that name in use; what the block leaves undone is done before it is left."""
    nd.use(**ENGINES[kind])  # type: ignore[arg-type]
    try:
        yield
    finally:
        nd.use("threaded")


def define(name: str, forward: Body, backward: Body | None = None) -> Callable[..., Any]:
    """Register an operator of one input and one output of the same shape.

    `forward(x)` gives the output, `backward(slope)` the gradient, both as engine arrays.
    """

    class Op(nd.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            self.assign(out_data[0], req[0], forward(in_data[0]))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):  # type: ignore[no-untyped-def]
            self.assign(in_grad[0], req[0], (backward or forward)(out_grad[0]))

    @nd.register(name)
    class Prop(nd.CustomOpProp):
        def list_arguments(self):  # type: ignore[no-untyped-def]
            return ["data"]

        def list_outputs(self):  # type: ignore[no-untyped-def]
            return ["output"]

        def infer_shape(self, in_shape):  # type: ignore[no-untyped-def]
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):  # type: ignore[no-untyped-def]
            return Op()

    return lambda x: nd.custom(x, op_type=name)


def add_one(x: Any) -> Any:
    """One sub-operator."""
    return x + 1.0


def triple(x: Any) -> Any:
    """Three sub-operators."""
    return ((x + 1.0) * 2.0) - 3.0
