"""Arithmetic, comparison and indexing of arrays, in terms of operators."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .errors import ShapeError

if TYPE_CHECKING:
    from .array import Array
    from .storage import Shape

# Python then asks the other operand.
NOT_OURS = cast("Array", NotImplemented)


class Arithmetic:
    """The base of Array. No method blocks; ShapeError where shapes do not fit."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's arrays leave mixed expressions to us
    same_shapes = "elemwise_"  # which operators +, -, * and / are between arrays of one shape

    if TYPE_CHECKING:

        @property
        def shape(self) -> Shape: ...

    def __add__(self, other: Any) -> Array:
        return _binary(self, other, "add", "_plus_scalar")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Array:
        return _binary(self, other, "sub", "_minus_scalar")

    def __rsub__(self, other: Any) -> Array:
        return _reversed(self, other, "sub", "_rminus_scalar")

    def __mul__(self, other: Any) -> Array:
        return _binary(self, other, "mul", "_mul_scalar")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Array:
        return _binary(self, other, "div", "_div_scalar")

    def __rtruediv__(self, other: Any) -> Array:
        return _reversed(self, other, "div", "_rdiv_scalar")

    def __pow__(self, other: Any) -> Array:
        return _broadcast(self, other, "power")

    def __rpow__(self, other: Any) -> Array:
        return _broadcast(self, other, "power", True)

    def __mod__(self, other: Any) -> Array:
        return _broadcast(self, other, "mod")

    def __rmod__(self, other: Any) -> Array:
        return _broadcast(self, other, "mod", True)

    def __abs__(self) -> Array:
        return _apply("abs", self)

    def __neg__(self) -> Array:
        return _apply("negative", self)

    def __iadd__(self, other: Any) -> Array:
        return _binary(self, other, "add", "_plus_scalar", self)

    def __isub__(self, other: Any) -> Array:
        return _binary(self, other, "sub", "_minus_scalar", self)

    def __imul__(self, other: Any) -> Array:
        return _binary(self, other, "mul", "_mul_scalar", self)

    def __itruediv__(self, other: Any) -> Array:
        return _binary(self, other, "div", "_div_scalar", self)

    def __gt__(self, other: Any) -> Array:
        return _compare(self, other, "greater")

    def __ge__(self, other: Any) -> Array:
        return _compare(self, other, "greater_equal")

    def __lt__(self, other: Any) -> Array:
        return _compare(self, other, "lesser")

    def __le__(self, other: Any) -> Array:
        return _compare(self, other, "lesser_equal")

    def __eq__(self, other: Any) -> Array:  # type: ignore[override]
        return _compare(self, other, "equal")

    def __ne__(self, other: Any) -> Array:  # type: ignore[override]
        return _compare(self, other, "not_equal")

    __hash__ = object.__hash__

    def __getitem__(self, key: Any) -> Array:
        """A copy of the part: integers, slices, Ellipsis, None, and lists or arrays of integers.

        Blocks only where an Array indexes: its elements are read.
        """
        return _apply("slice", self, key=_checked(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        key = _checked(key)
        if isinstance(value, numbers.Real):
            _apply("_slice_assign_scalar", self, out=self, key=key, scalar=_number(value))
            return
        source = _as_array(value)
        if isinstance(key, slice) and key == slice(None) and source.shape == self.shape:
            _apply("_copyto", source, out=self)
        else:
            _apply("_slice_assign", self, source, out=self, key=key)

    def copy(self) -> Array:
        """A new array with the same elements."""
        return _apply("_copyto", self)

    def astype(self, dtype: Any) -> Array:
        """A new array with the elements in another type."""
        return _apply("cast", self, dtype=np.dtype(dtype))

    def reshape(self, *shape: Any, reverse: bool = False) -> Array:
        """A new array of another shape; see the function `reshape`."""
        from .operators.axes import reshape  # it needs arrays itself

        wanted = shape[0] if len(shape) == 1 else shape
        return reshape(cast("Array", self), wanted, reverse=reverse)

    @property
    def T(self) -> Array:
        """A new array with the axes in reverse order."""
        return _apply("transpose", self, axes=None)

    def sum(
        self, axis: Any = None, keepdims: bool = False, exclude: bool = False, out: Any = None
    ) -> Array:
        """The sum over `axis`, over all, or (`exclude`) over all other axes."""
        return _reduce("sum_", self, axis, keepdims, exclude, out)

    def mean(
        self, axis: Any = None, keepdims: bool = False, exclude: bool = False, out: Any = None
    ) -> Array:
        """The mean, with axes as for `sum`."""
        return _reduce("mean", self, axis, keepdims, exclude, out)

    def max(
        self, axis: Any = None, keepdims: bool = False, exclude: bool = False, out: Any = None
    ) -> Array:
        """The greatest, with axes as for `sum`."""
        return _reduce("max_", self, axis, keepdims, exclude, out)


def _apply(name: str, *inputs: Any, out: Any = None, **params: Any) -> Array:
    from .array import apply  # the subclass lives there

    return apply(name, *inputs, out=out, **params)


def _reduce(name: str, *args: Any) -> Array:
    from .operators import reduce  # it needs arrays itself

    found: Array = getattr(reduce, name)(*args)
    return found


def _as_array(value: Any) -> Array:
    from .array import Array, array

    return value if isinstance(value, Array) else array(value)


def _number(value: Any) -> int | float:
    """A plain number: NumPy's scalars would widen the result's type."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _binary(self: Arithmetic, other: Any, stem: str, scalar_name: str, out: Any = None) -> Array:
    if isinstance(other, numbers.Real):
        return _apply(scalar_name, self, out=out, scalar=_number(other))
    if not isinstance(other, (Arithmetic, np.ndarray)):
        return NOT_OURS
    other = _as_array(other)
    prefix = self.same_shapes if other.shape == self.shape else "broadcast_"
    return _apply(prefix + stem, self, other, out=out)


def _reversed(self: Arithmetic, other: Any, stem: str, scalar_name: str) -> Array:
    if isinstance(other, numbers.Real):
        return _apply(scalar_name, self, scalar=_number(other))
    if not isinstance(other, np.ndarray):
        return NOT_OURS
    return _binary(_as_array(other), self, stem, scalar_name)


def _broadcast(self: Arithmetic, other: Any, stem: str, reverse: bool = False) -> Array:
    if isinstance(other, numbers.Real):
        return _apply(f"_{'r' * reverse}{stem}_scalar", self, scalar=_number(other))
    if not isinstance(other, (Arithmetic, np.ndarray)):
        return NOT_OURS
    pair = (self, _as_array(other))
    return _apply(f"broadcast_{stem}", *(reversed(pair) if reverse else pair))


def _compare(self: Arithmetic, other: Any, stem: str) -> Array:
    if isinstance(other, numbers.Real):
        return _apply(f"_{stem}_scalar", self, scalar=_number(other))
    if not isinstance(other, (Arithmetic, np.ndarray)):
        return NOT_OURS
    return _apply(f"broadcast_{stem}", self, _as_array(other))


def _checked(key: Any) -> Any:
    return tuple(map(_place, key)) if isinstance(key, tuple) else _place(key)


def _place(part: Any) -> Any:
    """One part of a key. Arrays are copied, because the caller may change them before they count.

    Their elements may be floats, which indices mostly are in MXNet's programs.
    """
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, (int, np.integer)):
        return int(part)
    if isinstance(part, Arithmetic):
        part = cast("Array", part).asnumpy()
    if isinstance(part, (list, np.ndarray)):
        found = np.array(part)
        if found.dtype.kind in "iuf" or not found.size:
            return found.astype(np.int64) if found.ndim else int(found)
    raise ShapeError(
        f"arrays are indexed by integers, slices, and lists or arrays of integers, not {part!r}"
    )
