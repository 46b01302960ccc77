"""What an array's elements live in, and the variable that orders access to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .current import get
from .errors import EngineError
from .graph import Var

Buffer = NDArray[Any]
Shape = tuple[int, ...]


class Cell:
    """A buffer that the first task to write it makes; whoever touches it holds its variable."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], value: Buffer | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.value = value

    def get(self) -> Buffer:
        """The buffer; zeros where nothing was ever written."""
        value = self.value
        if value is None:
            value = self.value = np.zeros(self.shape, self.dtype)
        return value

    def put(self, result: Any, sources: tuple[Buffer, ...]) -> None:
        """Keep a kernel's result, copied if it is, or looks into, one of its sources."""
        if result is self.value:
            return
        value = np.asarray(result, self.dtype, order="C")  # so that other shapes are views
        if value.shape != self.shape:
            raise EngineError(f"a kernel made shape {value.shape} where {self.shape} was promised")
        if value.base is not None or any(value is source for source in sources):
            value = value.copy()
        self.value = value


class Part(Cell):
    """What `look` makes of another cell's buffer, a view of NumPy's: writing goes through to it."""

    __slots__ = ("_last", "base", "look")

    def __init__(self, base: Cell, look: Callable[[Buffer], Buffer], shape: Shape) -> None:
        self.base = base
        self.look = look
        self.shape = shape
        self.dtype = base.dtype
        self._last: Buffer | None = None

    def get(self) -> Buffer:
        found = self.look(self.base.get())  # each time: the base may have another buffer
        self._last = found
        return found

    # The buffer to fill, where a cell has one.
    value = property(get)

    def put(self, result: Any, sources: tuple[Buffer, ...]) -> None:
        if result is self._last:
            return
        if np.shape(result) != self.shape:
            raise EngineError(f"a kernel made shape {np.shape(result)} for a part of {self.shape}")
        np.copyto(self.get(), result, casting="unsafe")


class Storage:
    """One cell and one variable, shared by arrays. Dropping it asks for the variable's deletion."""

    __slots__ = ("_drop", "cell", "var")

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.var = Var()
        self._drop = get().dropped.append

    def inner(self) -> Storage:
        """The same cell under a new variable, for the body of a custom operator."""
        return Storage(self.cell)

    def share(self, cell: Cell) -> Storage:
        """Another cell under the same variable, which lives as long as it does."""
        return Shared(self, cell)

    def __del__(self) -> None:
        # May run inside the garbage collector at any point: append to a deque and nothing more.
        self._drop(self.var)


class Shared(Storage):
    """A storage whose variable belongs to another one."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Storage, cell: Cell) -> None:
        self.cell = cell
        self.var = owner.var
        self._owner = owner

    def __del__(self) -> None:
        pass
