"""Calling a custom operator: what is checked at once, and what the tape keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import tape
from .array import Array, apply, empty, to_shape
from .calls import Call, CustomOpInfo, here
from .current import get
from .custom import Context, CustomOp, CustomOpProp, find
from .custom_run import push_call
from .errors import EngineError, ShapeError
from .graph import Var


def custom(*arrays: Array, op_type: str, **params: Any) -> Any:
    """Call the custom operator registered as `op_type`; returns its output, or a list of several.

    Takes the inputs, then the auxiliary states, in order or by name; other keyword arguments reach
    the prop as strings. Does not block (kind naive: runs here). What the prop raises, and what does
    not fit, raises at once.
    """
    info = find(op_type)
    named = {key: value for key, value in params.items() if isinstance(value, Array)}
    prop = info.prop(**{key: str(value) for key, value in params.items() if key not in named})
    arguments, states = list(prop.list_arguments()), list(prop.list_auxiliary_states())
    placed = _place(info.name, arguments + states, arrays, named)
    data, aux = placed[: len(arguments)], placed[len(arguments) :]
    shapes = _infer(info.name, prop.infer_shape([list(a.shape) for a in data]), to_shape)
    types = _infer(info.name, prop.infer_type([a.dtype.type for a in data]), np.dtype)
    for known, array in zip([*shapes[0], *shapes[2]], placed, strict=False):
        if known != array.shape:
            raise ShapeError(f"{info.name!r} wants shape {known}, the array has {array.shape}")
    names = prop.list_outputs()
    if not len(shapes[1]) == len(types[1]) == len(names):
        raise EngineError(f"{info.name!r} does not infer each of its {len(names)} outputs")
    outputs = [empty(shape, kind) for shape, kind in zip(shapes[1], types[1], strict=True)]
    operator = prop.create_operator(Context(), [list(a.shape) for a in data], list(types[0]))
    if not isinstance(operator, CustomOp):
        raise TypeError(f"create_operator of {info.name!r} returned no CustomOp: {operator!r}")
    invocation = Invocation(info, prop, operator, data, aux, outputs)
    invocation.forward()
    if tape.wanted(data):
        invocation.record()
    return outputs[0] if len(outputs) == 1 else outputs


def _place(
    op: str, names: list[str], arrays: Sequence[Array], named: dict[str, Array]
) -> list[Array]:
    for array in arrays:
        if not isinstance(array, Array):
            raise TypeError(f"{op!r} needs arrays, not {type(array).__name__}")
    placed = dict(zip(names, arrays, strict=False))
    for key, array in named.items():
        if key not in names:
            raise EngineError(f"{op!r} has no input {key!r}")
        if key in placed:
            raise EngineError(f"{op!r} was given its input {key!r} twice")
        placed[key] = array
    if len(arrays) + len(named) != len(names) or len(placed) != len(names):
        given = len(arrays) + len(named)
        raise EngineError(f"{op!r} takes {len(names)} arrays ({', '.join(names)}), not {given}")
    return [placed[name] for name in names]


def _infer(op: str, found: Any, to: Any) -> tuple[list[Any], list[Any], list[Any]]:
    parts = [[to(one) for one in part] for part in found]
    if len(parts) not in (2, 3):
        raise EngineError(f"the prop of {op!r} must infer inputs, outputs and states")
    return parts[0], parts[1], parts[2] if len(parts) == 3 else []


class Invocation:
    """One use of a custom operator: its forward call and, from the tape, its backward calls."""

    def __init__(
        self,
        info: CustomOpInfo,
        prop: CustomOpProp,
        operator: CustomOp,
        data: list[Array],
        aux: list[Array],
        outputs: list[Array],
    ) -> None:
        self.info = info
        self.prop = prop
        self.operator = operator
        self.data = data
        self.aux = aux
        self.outputs = outputs
        self.state = Var()  # of the operator object: its calls never run at the same time
        self.call = Call(info, "forward", None, here.call)
        self.needed: set[int] = set()
        self.flows: list[bool] = []  # which inputs want a gradient

    def forward(self) -> None:
        """Push the forward call. Does not block."""
        is_train, operator = tape.state.training, self.operator
        req = ["write"] * len(self.outputs)

        def body(groups: list[list[Array]]) -> None:
            operator.forward(is_train, req, *groups)

        groups = [self.data, self.outputs, self.aux]
        push_call(get(), self.call, body, groups, self.data, [*self.outputs, *self.aux], self.state)

    def record(self) -> None:
        """Put it on the tape, with what the backward call has said it needs."""
        outs, ins = len(self.outputs), len(self.data)
        numbers = list(range(outs + ins + outs))
        self.needed = set(
            self.prop.declare_backward_dependency(
                numbers[:outs], numbers[outs : outs + ins], numbers[outs + ins :]
            )
        )
        node = tape.Node(self.info.name, tuple(self.data), outs, self.backward)
        visible = self.outputs
        self.flows = [tape.tracked(array) for array in self.data]
        # Without nodes, so that what the tape keeps does not hold the tape.
        self.data = [self._kept(outs + n, array) for n, array in enumerate(self.data)]
        self.outputs = [self._kept(outs + ins + n, array) for n, array in enumerate(visible)]
        self.aux = [array.detach() for array in self.aux]
        for index, array in enumerate(visible):
            array.node, array.index = node, index

    def _kept(self, number: int, array: Array) -> Array:
        return array.detach() if number in self.needed else empty(array.shape, array.dtype)

    def backward(self, grads: list[Array | None]) -> list[Array | None]:
        """Push a backward call; returns the gradients of the inputs that want one."""
        out_grads = [
            self._out_grad(number, grad, array)
            for number, (grad, array) in enumerate(zip(grads, self.outputs, strict=True))
        ]
        in_grads = [empty(array.shape, array.dtype) for array in self.data]
        req = ["write" if flow else "null" for flow in self.flows]
        operator = self.operator

        def body(groups: list[list[Array]]) -> None:
            operator.backward(req, *groups)

        groups = [out_grads, self.data, self.outputs, in_grads, self.aux]
        call = Call(self.info, "backward", self.call, here.call)
        reads = [*out_grads, *self.data, *self.outputs]
        push_call(get(), call, body, groups, reads, [*in_grads, *self.aux], self.state)
        return [g if flow else None for g, flow in zip(in_grads, self.flows, strict=True)]

    def _out_grad(self, number: int, grad: Array | None, like: Array) -> Array:
        if number not in self.needed:
            return empty(like.shape, like.dtype)
        return apply("_zeros", shape=like.shape, dtype=like.dtype) if grad is None else grad
