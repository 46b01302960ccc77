"""The asynchronous array: operators return at once, reading its elements waits."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import apply as application
from .arithmetic import Arithmetic
from .current import get
from .errors import EngineError, ShapeError
from .storage import Buffer, Cell, Part, Shape, Storage
from .tape import Node


class Array(Arithmetic):
    """Elements that tasks of the engine fill. Any thread; only the methods that say so block.

    A method that blocks raises the error of the task that should have made the elements.
    """

    __slots__ = ("__weakref__", "grad", "grad_req", "index", "node", "storage")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.grad: Array | None = None
        self.grad_req = "null"
        self.node: Node | None = None  # the recorded operator that made it
        self.index = 0  # which of the node's outputs it is

    @property
    def shape(self) -> Shape:
        """Known at once, as is `dtype`."""
        return self.storage.cell.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the elements."""
        return self.storage.cell.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    # Reading: these block

    def asnumpy(self) -> Buffer:
        """A copy of the elements. Blocks."""
        found: Buffer | None = get().read(
            self.storage.var, lambda: self.storage.cell.get().copy(), "asnumpy"
        )
        assert found is not None
        return found

    def wait_to_read(self) -> None:
        """Block until the elements are there."""
        get().wait_for_var(self.storage.var, "wait_to_read")

    def asscalar(self) -> Any:
        """The only element, as a Python number. Blocks; ShapeError if there are others."""
        if self.size != 1:
            raise ShapeError(f"an array of shape {self.shape} is not a scalar")
        return self.asnumpy().item()

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __bool__(self) -> bool:
        return bool(self.asscalar())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Array {'x'.join(map(str, self.shape))} {self.dtype}>"  # does not wait

    def view(self, key: Any) -> Array:
        """A part by integers and slices that leave an axis, with the elements of this array.

        What is written to one is in the other. It pushes nothing, and the tape does not know it.
        """
        shape = np.broadcast_to(np.empty(()), self.shape)[key].shape
        return Array(self.storage.share(Part(self.storage.cell, operator.itemgetter(key), shape)))

    def view_as(self, shape: Shape) -> Array:
        """All elements in another shape, in common with this array, as for `view`."""
        if math.prod(shape) != self.size:
            raise ShapeError(f"{self.size} elements of shape {self.shape} do not fill {shape}")
        look = operator.methodcaller("reshape", shape)
        return Array(self.storage.share(Part(self.storage.cell, look, shape)))

    # Gradients

    def attach_grad(self, grad_req: str = "write") -> None:
        """Give it a gradient of zeros that `backward` writes, or adds to; makes it a leaf."""
        self.mark(None if grad_req == "null" else zeros(self.shape, self.dtype), grad_req)

    def mark(self, grad: Array | None, grad_req: str = "write") -> None:
        """As `attach_grad`, with an array of the caller's for the gradient."""
        if grad_req not in ("null", "write", "add"):
            raise EngineError(f"grad_req must be 'null', 'write' or 'add', not {grad_req!r}")
        if grad is not None and grad.shape != self.shape:
            raise ShapeError(f"a gradient of shape {grad.shape} for shape {self.shape}")
        self.node = None
        self.grad_req = grad_req
        self.grad = None if grad_req == "null" else grad

    def detach(self) -> Array:
        """The same elements, unknown to the tape."""
        return Array(self.storage)

    def backward(self, out_grad: Array | None = None, retain_graph: bool = False) -> None:
        """Fill the gradients of what this array was made from. Does not block."""
        from . import autograd  # it needs arrays itself

        autograd.backward([self], [out_grad], retain_graph=retain_graph)


def apply(name: str, *inputs: Array, out: Array | None = None, **params: Any) -> Array:
    """Run the operator `name` into `out`, or a new array. Does not block; see `apply.apply`."""
    for array in inputs:
        if not isinstance(array, Array):
            raise TypeError(f"{name} needs arrays, not {type(array).__name__}")
    return application.apply(Array, name, inputs, out, params)


def several(
    name: str, *inputs: Array, out: Sequence[Array] | None = None, **params: Any
) -> list[Array]:
    """As `apply`, for an operator with several outputs."""
    for array in inputs:
        if not isinstance(array, Array):
            raise TypeError(f"{name} needs arrays, not {type(array).__name__}")
    return application.several(Array, name, inputs, out, params)


def array(source: Any, dtype: Any = None) -> Array:
    """A new array with a copy of these elements; numbers and lists become float32.

    Does not block, unless the source is an Array.
    """
    if isinstance(source, Array):
        source = source.asnumpy()
    if dtype is None:
        dtype = source.dtype if isinstance(source, (np.ndarray, np.generic)) else np.float32
    value = np.array(source, dtype=dtype, copy=True)
    if value.dtype.kind not in "biuf":
        raise TypeError(f"arrays hold numbers, not {value.dtype}")
    return Array(Storage(Cell(value.shape, value.dtype, value)))


def to_shape(shape: Any) -> Shape:
    """A checked shape from an int or a sequence of them."""
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    for extent in shape:
        if not isinstance(extent, (int, np.integer)):
            raise TypeError(f"a shape holds ints, not {type(extent).__name__}")
        if extent < 0:
            raise ShapeError(f"a shape cannot hold {extent}")
    return tuple(int(extent) for extent in shape)


def empty(shape: Any, dtype: Any = np.float32) -> Array:
    """An array that nothing has written. Pushes nothing."""
    return Array(Storage(Cell(to_shape(shape), np.dtype(dtype))))


def zeros(shape: Any, dtype: Any = np.float32, out: Array | None = None) -> Array:
    """An array of zeros."""
    return apply("_zeros", out=out, shape=to_shape(shape), dtype=dtype)


def ones(shape: Any, dtype: Any = np.float32, out: Array | None = None) -> Array:
    """An array of ones."""
    return apply("_ones", out=out, shape=to_shape(shape), dtype=dtype)


def full(shape: Any, value: float, dtype: Any = np.float32, out: Array | None = None) -> Array:
    """An array of this value."""
    return apply("_full", out=out, shape=to_shape(shape), value=value, dtype=dtype)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: Any = np.float32,
    repeat: int = 1,
    out: Array | None = None,
) -> Array:
    """Evenly spaced values, as NumPy's, each `repeat` times."""
    if stop is None:
        start, stop = 0, start
    if not step:
        raise ValueError("step must not be 0")
    shape = (max(math.ceil((stop - start) / step), 0) * operator.index(repeat),)
    span = {"start": start, "stop": stop, "step": step, "repeat": repeat}
    return apply("_arange", out=out, shape=shape, dtype=dtype, **span)


def eye(
    rows: int, columns: int = 0, k: int = 0, dtype: Any = np.float32, out: Array | None = None
) -> Array:
    """Ones on the `k`-th diagonal; as many columns as rows if 0."""
    shape = to_shape((rows, columns or rows))
    return apply("_eye", out=out, shape=shape, k=operator.index(k), dtype=dtype)
