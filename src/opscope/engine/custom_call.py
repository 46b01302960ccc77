"""Calling a custom operator: what is checked at once, and what the tape keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import tape
from .apply import check_out
from .array import Array, apply, empty
from .calls import Call, CustomOpInfo, here
from .current import get
from .custom import Context, CustomOp, find
from .custom_infer import Signature
from .custom_run import push_call
from .errors import EngineError
from .graph import Var


def custom(*arrays: Array, op_type: str, out: Any = None, **params: Any) -> Any:
    """Call the custom operator registered as `op_type`; returns its output, or a list of several.

    Takes the inputs, then the auxiliary states, in order or by name; other keyword arguments reach
    the prop as strings. `out` holds the array, or arrays, to write the outputs to. Does not block
    (kind naive: runs here). What the prop raises, and what does not fit, raises at once.
    """
    return _call(op_type, arrays, params, out, None)


def custom_into(out: Any, req: Any, *arrays: Array, op_type: str, **params: Any) -> Any:
    """As `custom`; the operator is asked for `req`, or one for each output.

    "write", "inplace" (it may be an input), "add" to what is there, or "null": not needed.
    """
    return _call(op_type, arrays, params, out, req)


def _call(op_type: str, arrays: Sequence[Array], params: dict[str, Any], out: Any, req: Any) -> Any:
    info = find(op_type)
    named = {key: value for key, value in params.items() if isinstance(value, Array)}
    prop = info.prop(**{key: _text(value) for key, value in params.items() if key not in named})
    signature = Signature(info.name, prop)
    arguments, _, states = signature.names
    placed = _place(info.name, arguments + states, arrays, named)
    data, aux = placed[: len(arguments)], placed[len(arguments) :]
    shapes, types, data_types = signature.outputs(data, aux)
    if out is None:
        outputs = [empty(shape, kind) for shape, kind in zip(shapes, types, strict=True)]
    else:
        outputs = _given(info.name, out, shapes, types, data)
    reqs = _reqs(info.name, req, outputs, data)
    operator = prop.create_operator(Context(), [list(a.shape) for a in data], data_types)
    if not isinstance(operator, CustomOp):
        raise TypeError(f"create_operator of {info.name!r} returned no CustomOp: {operator!r}")
    recorded = tape.wanted(data)
    if recorded and set(reqs) - {"write"}:
        raise EngineError(f"{info.name!r} can only be recorded with req 'write', not {reqs}")
    needed = signature.needed(len(outputs), len(data)) if recorded else set()
    invocation = Invocation(info, operator, data, aux, outputs, reqs)
    invocation.forward()
    if recorded:
        invocation.record(needed)
    elif tape.state.recording:
        tape.record(info.name, data, outputs, None)
    return outputs[0] if len(outputs) == 1 else outputs


def _text(value: Any) -> str:
    """As MXNet passes it: NumPy's own numbers look like numbers, also in a tuple."""
    if isinstance(value, (tuple, list)):
        value = type(value)([one.item() if isinstance(one, np.generic) else one for one in value])
    return str(value)


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


def _given(
    op: str, out: Any, shapes: list[Any], types: list[Any], data: list[Array]
) -> list[Array]:
    outputs = [out] if isinstance(out, Array) else list(out)
    if len(outputs) != len(shapes) or not all(isinstance(array, Array) for array in outputs):
        raise EngineError(f"{op!r} needs {len(shapes)} arrays as out, not {out!r}")
    for array, shape, kind in zip(outputs, shapes, types, strict=True):
        check_out(op, array, shape, data)
        if array.dtype != kind:
            raise EngineError(f"{op!r} makes type {kind}, the array has {array.dtype}")
    return outputs


def _reqs(op: str, req: Any, outputs: list[Array], data: list[Array]) -> list[str]:
    inputs = {array.storage.var for array in data}
    if req is None:
        return ["inplace" if out.storage.var in inputs else "write" for out in outputs]
    reqs = [req] * len(outputs) if isinstance(req, str) else list(req)
    if len(reqs) != len(outputs):
        raise EngineError(f"{op!r} has {len(outputs)} outputs and {len(reqs)} requests")
    for one in reqs:
        if one not in ("null", "write", "inplace", "add"):
            raise ValueError(f"req must be 'null', 'write', 'inplace' or 'add', not {one!r}")
    return reqs


class Invocation:
    """One use of a custom operator: its forward call and, from the tape, its backward calls."""

    def __init__(
        self,
        info: CustomOpInfo,
        operator: CustomOp,
        data: list[Array],
        aux: list[Array],
        outputs: list[Array],
        req: list[str],
    ) -> None:
        self.info = info
        self.operator = operator
        self.data = data
        self.aux = aux
        self.outputs = outputs
        self.req = req
        self.state = Var()  # of the operator object: its calls never run at the same time
        self.call = Call(info, "forward", None, here.innermost)
        self.needed: set[int] = set()
        self.flows: list[bool] = []  # which inputs want a gradient

    def forward(self) -> None:
        """Push the forward call. Does not block."""
        is_train, operator, req = tape.state.training, self.operator, self.req

        def body(groups: list[list[Array]]) -> None:
            operator.forward(is_train, req, *groups)

        groups = [self.data, self.outputs, self.aux]
        push_call(get(), self.call, body, groups, self.data, [*self.outputs, *self.aux], self.state)

    def record(self, needed: set[int]) -> None:
        """Put it on the tape, with what the backward call has said it needs."""
        outs, ins = len(self.outputs), len(self.data)
        self.needed = needed
        node = tape.Node(self.info.name, self.data, outs, self.backward)
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

    def backward(
        self, grads: list[Array | None], into: Sequence[Array | None]
    ) -> list[Array | None]:
        """Push a backward call; returns the gradients of the inputs that want one.

        Where there is an array to add to, the operator is asked to do that itself.
        """
        out_grads = [
            self._out_grad(number, grad, array)
            for number, (grad, array) in enumerate(zip(grads, self.outputs, strict=True))
        ]
        reads = [*out_grads, *self.data, *self.outputs]
        busy = {array.storage.var for array in (*reads, *self.aux)}
        req = ["write" if flow else "null" for flow in self.flows]
        in_grads: list[Array] = []
        for number, (array, target) in enumerate(zip(self.data, into, strict=True)):
            if target is None or target.dtype != array.dtype or target.storage.var in busy:
                in_grads.append(empty(array.shape, array.dtype))
            else:
                in_grads.append(target.detach())
                req[number] = "add"
        operator = self.operator

        def body(groups: list[list[Array]]) -> None:
            operator.backward(req, *groups)

        groups = [out_grads, self.data, self.outputs, in_grads, self.aux]
        call = Call(self.info, "backward", self.call, here.innermost)
        push_call(get(), call, body, groups, reads, [*in_grads, *self.aux], self.state)
        return [g if how == "write" else None for g, how in zip(in_grads, req, strict=True)]

    def _out_grad(self, number: int, grad: Array | None, like: Array) -> Array:
        if number not in self.needed:
            return empty(like.shape, like.dtype)
        return apply("_zeros", shape=like.shape, dtype=like.dtype) if grad is None else grad
