"""What an array's elements live in, and the variable that orders access to them."""

from __future__ import annotations

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
        value = np.asarray(result, self.dtype)
        if value.shape != self.shape:
            raise EngineError(f"a kernel made shape {value.shape} where {self.shape} was promised")
        if value.base is not None or any(value is source for source in sources):
            value = value.copy()
        self.value = value


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

    def __del__(self) -> None:
        # May run inside the garbage collector at any point: append to a deque and nothing more.
        self._drop(self.var)
