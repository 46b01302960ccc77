"""NDArray: the engine's array with MXNet's methods, and MXNet's errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

import numpy as np

from opscope.compat.mxnet.absent import words
from opscope.compat.mxnet.base import MXNetError, outcomes, refusals
from opscope.compat.mxnet.context import Context, checked
from opscope.compat.mxnet.nd.parts import kept, together
from opscope.engine import Array, EngineError, ShapeError, apply, array, autograd, tape
from opscope.engine.arithmetic import Arithmetic
from opscope.engine.operators.axes import resolved_shape


class NDArray(Array):
    """An array in MXNet's terms. `asnumpy`, `asscalar`, `wait_to_read` and printing block.

    Has no memory of its own: any array of the engine can be made one, see `adopt`. Unlike MXNet's,
    `dtype` is a NumPy dtype, which equals the type.
    """

    __slots__ = ()
    same_shapes = "broadcast_"  # MXNet's names of them, whatever the shapes

    # Reading: these block

    def asnumpy(self) -> Any:
        """A copy of the elements. MXNetError if an operator behind them failed."""
        with outcomes():
            return super().asnumpy()

    def wait_to_read(self) -> None:
        """Block until the elements are there. MXNetError as above."""
        with outcomes():
            super().wait_to_read()

    def asscalar(self) -> Any:
        """The only element, as a NumPy scalar; ValueError if there are others."""
        if self.size != 1:
            raise ValueError(f"an array of shape {self.shape} is not a scalar")
        return self.asnumpy().reshape(-1)[0]

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("an array of several elements is neither true nor false")
        return bool(self.size and self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()}\n<NDArray {shape} @{self.context}>"

    # Parts

    def __getitem__(self, key: Any) -> Any:
        """The part, as MXNet gives it: where its elements lie together, and it is not on the tape,
        it has them in common with the array; elsewhere it is a copy. One element has shape (1,).
        """
        with refusals():
            key = kept(key, self.shape)
            if (tape.state.recording and tape.known(self)) or not together(key, self.shape):
                return adopt(super().__getitem__(key))
            return adopt(self.view(key))

    def __reduce__(self) -> Any:
        """Elements and type go along when it is copied or pickled; blocks."""
        return _restored, (self.asnumpy(),)

    # Where it lives, copies

    @property
    def context(self) -> Context:
        """The CPU."""
        return Context("cpu")

    ctx = context

    @property
    def stype(self) -> str:
        """Elements are always stored densely."""
        return "default"

    def as_in_context(self, context: Any) -> NDArray:
        """The array itself; MXNetError for a context that does not exist."""
        checked(context)
        return self

    def copyto(self, other: Any) -> Any:
        """Copy into another array, which is returned, or to a context. Does not block."""
        if other is self:
            warnings.warn("an array was copied to itself", RuntimeWarning, stacklevel=2)
            return False
        if isinstance(other, Array):
            with refusals():
                return apply("_copyto", self, out=other)
        if not hasattr(other, "device_type"):
            raise TypeError(f"copyto needs an array or a context, not {type(other).__name__}")
        checked(other)
        return self.copy()

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The elements in another type; the array itself if it has it and not `copy`."""
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return adopt(super().astype(dtype))

    def reshape(self, *shape: Any, reverse: bool = False, **named: Any) -> Any:
        """In another shape, with MXNet's codes; ValueError if it does not fit. The elements are the
        array's own, unless it is on the tape.
        """
        wanted = named.pop("shape", shape[0] if len(shape) == 1 else shape)
        if named:
            raise TypeError(f"reshape takes shape and reverse, not {', '.join(named)}")
        try:
            if tape.state.recording and tape.known(self):
                return adopt(super().reshape(wanted, reverse=reverse))
            return adopt(self.view_as(resolved_shape(self.shape, wanted, reverse)))
        except ShapeError as error:
            raise ValueError(str(error)) from error

    @property
    def T(self) -> Any:
        """A copy with the axes in reverse order."""
        return adopt(super().T)

    # Gradients

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Give it a gradient that `backward` fills."""
        with refusals():
            super().attach_grad(grad_req)
        adopt(self.grad)

    def backward(
        self, out_grad: Array | None = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Fill the gradients of what this array was made from. Does not block."""
        with refusals():
            autograd.backward([self], [out_grad], retain_graph, train_mode)

    def __getattr__(self, name: str) -> Any:
        # MXNet's operators are methods too: a.exp(), a.clip(0, 1).
        from opscope.compat.mxnet.nd import functions

        found = None if name.startswith("_") else functions.find(name)
        if found is None:
            known = {one for one in dir(type(self)) if not one.startswith("_")}
            raise AttributeError(words("NDArray", name, known | set(functions.names())))

        def method(*args: Any, **kwargs: Any) -> Any:
            return found(self, *args, **kwargs)

        return method


def _restored(elements: Any) -> Any:
    return adopt(array(elements, elements.dtype))


def adopt(value: Any) -> Any:
    """The same value; arrays of the engine in it, also in lists, have become NDArrays."""
    if value.__class__ is Array:
        value.__class__ = NDArray
    elif isinstance(value, (list, tuple)):
        for one in value:
            adopt(one)
    return value


def _adopting(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return adopt(method(*args, **kwargs))
        except EngineError as error:
            raise MXNetError(str(error)) from error

    return call


# Whatever arithmetic and methods the engine's array has, with the results made ours.
for _base in (Arithmetic, Array):
    for _name, _method in list(vars(_base).items()):
        _wanted = _base is Arithmetic or not _name.startswith("_")
        if isfunction(_method) and _wanted and _name not in vars(NDArray):
            setattr(NDArray, _name, _adopting(_method))
