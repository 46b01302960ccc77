"""A custom operator as one class: `autograd.Function`, whose forward runs where it is called."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from . import tape
from .array import Array, apply, empty
from .calls import Call, CustomOpInfo, here
from .current import get
from .custom import defined
from .custom_run import Groups, call_here, push_call
from .errors import EngineError
from .graph import Var

Place = tuple[str, int]

_places: weakref.WeakKeyDictionary[type, Place] = weakref.WeakKeyDictionary()


class Function:
    """An operator with a gradient of its own; one object serves one call and its backward calls.

    `forward` runs at once on the caller's thread, unrecorded, and what it raises is raised there.
    `backward` runs on a thread of the engine (kind naive: on the caller's); what it raises sticks
    to the gradients and raises at a wait. Both may push, wait, and call custom operators.
    """

    saved_tensors: tuple[Any, ...] = ()
    _used = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _places[cls] = _place(sys._getframe(1))

    def forward(self, *inputs: Any) -> Any:
        """From the inputs to an array, or a list or tuple of several."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, *output_grads: Any) -> Any:
        """From the gradients of the outputs to one for each input, None where none is wanted."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def _go_back(self, heads: list[Array]) -> Any:
        return self.backward(*heads)

    def save_for_backward(self, *arrays: Any) -> None:
        """Keep these for `backward`, which finds them in `saved_tensors`."""
        self.saved_tensors = arrays

    def __call__(self, *inputs: Any) -> Any:
        """What `forward` returns. Does not block by itself.

        Recorded, where gradients are, if inputs and outputs are arrays (else TypeError) and the
        outputs are not on the tape already (EngineError). EngineError for a second call.
        """
        if self._used:
            raise EngineError(f"this {type(self).__name__} was called before: make one per call")
        self._used = True
        call = Call(_info(type(self)), "forward", None, here.innermost)
        recording, tape.state.recording = tape.state.recording, False
        try:
            outputs = call_here(call, lambda: self.forward(*inputs))
        finally:
            tape.state.recording = recording
        if recording:
            several = [outputs] if isinstance(outputs, Array) else outputs
            _record(self, call, inputs, several)
        return outputs


def _record(function: Function, call: Call, inputs: Sequence[Any], outputs: Any) -> None:
    name = call.op.name
    if not isinstance(outputs, (list, tuple)):
        raise TypeError(f"{name}.forward must return arrays, not {type(outputs).__name__}")
    for what, arrays in (("is called with", inputs), ("forward must return", outputs)):
        for array in arrays:
            if not isinstance(array, Array):
                raise TypeError(
                    f"where gradients are recorded {name} {what} arrays, not {type(array).__name__}"
                )
    if any(tape.known(array) for array in outputs):
        raise EngineError(f"{name}.forward returned an array that is on the tape: return a copy")
    flows = tape.wanted(inputs)
    made = Invocation(function, call, inputs, outputs) if flows else None
    if isinstance(function.saved_tensors, tuple):
        # Outputs without their nodes: the tape holds the object, which must not hold the tape.
        function.saved_tensors = tuple(
            type(one)(one.storage) if any(one is output for output in outputs) else one
            for one in function.saved_tensors
        )
    tape.record(name, inputs, outputs, None if made is None else made.backward)


class Invocation:
    """A recorded call: what its backward calls need. It holds none of the arrays."""

    def __init__(
        self, function: Function, call: Call, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        self.function = function
        self.call = call
        self.flows = [tape.tracked(array) for array in inputs]
        self.inputs = [_like(array) for array in inputs]
        self.outputs = [_like(array) for array in outputs]
        self.state = Var()  # of the object: its backward calls never run at the same time

    def backward(
        self, grads: list[Array | None], into: Sequence[Array | None]
    ) -> list[Array | None]:
        """Push a backward call; returns the gradients of the inputs that want one."""
        heads = [
            apply("_zeros", shape=shape, dtype=dtype) if grad is None else grad
            for grad, (shape, dtype) in zip(grads, self.outputs, strict=True)
        ]
        found = [
            empty(*like) if flow else None
            for flow, like in zip(self.flows, self.inputs, strict=True)
        ]
        wanted = [array for array in found if array is not None]
        call = Call(self.call.op, "backward", self.call, here.innermost)
        push_call(get(), call, self._body, [heads, wanted], heads, wanted, self.state)
        return found

    def _body(self, groups: Groups) -> None:
        heads, wanted = groups
        gradients = self.function._go_back(heads)
        several = [gradients] if isinstance(gradients, Array) else gradients
        name, count = self.call.op.name, len(self.flows)
        if not isinstance(several, (list, tuple)):
            raise TypeError(f"{name}.backward must return arrays, not {type(several).__name__}")
        if len(several) != count:
            raise EngineError(
                f"{name}.backward must return as many arrays as forward takes: "
                f"{count}, not {len(several)}"
            )
        targets = iter(wanted)
        for number, (flow, gradient) in enumerate(zip(self.flows, several, strict=True)):
            if not isinstance(gradient, Array) and (flow or gradient is not None):
                kind = type(gradient).__name__
                raise TypeError(f"{name}.backward must return arrays, not {kind} for {number}")
            if flow:
                next(targets)[:] = gradient


def _like(array: Array) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return array.shape, array.dtype


def _info(cls: type) -> CustomOpInfo:
    file, line = _places.get(cls, ("", 0))
    qualified = f"{cls.__module__}.{cls.__qualname__}"
    return defined(cls.__name__, qualified, "autograd.Function", Function, file, line)


def _place(frame: FrameType | None) -> Place:
    """Where the class statement is: beyond what classes in between do when one is made."""
    while frame is not None and frame.f_code.co_name == "__init_subclass__":
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
