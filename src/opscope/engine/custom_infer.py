"""Asking a prop for shapes, types and dependencies, and saying clearly what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .array import Array, to_shape
from .custom import CustomOpProp
from .errors import EngineError, ShapeError

KINDS = ("input", "output", "auxiliary state")


class Signature:
    """What a prop says of the operator: the names of its arrays, by kind."""

    def __init__(self, op: str, prop: CustomOpProp) -> None:
        self.op = op
        self.prop = prop
        self.names: tuple[list[str], ...] = tuple(
            self._names(method)
            for method in ("list_arguments", "list_outputs", "list_auxiliary_states")
        )

    def _names(self, method: str) -> list[str]:
        found = getattr(self.prop, method)()
        if not isinstance(found, (list, tuple)) or not all(isinstance(n, str) for n in found):
            raise EngineError(f"{method} of {self.op!r} must give a list of names, not {found!r}")
        return list(found)

    def outputs(
        self, data: Sequence[Array], aux: Sequence[Array]
    ) -> tuple[list[tuple[int, ...]], list[np.dtype[Any]], list[np.dtype[Any]]]:
        """Shapes and types of the outputs, and types of the inputs.

        EngineError, or ShapeError from `infer_shape`, that names the operator and the method.
        """
        shapes = self._infer("infer_shape", [list(a.shape) for a in data], to_shape, ShapeError)
        types = self._infer("infer_type", [a.dtype.type for a in data], _to_dtype, EngineError)
        for part, arrays in ((0, data), (2, aux)):
            wanted = zip(arrays, shapes[part], types[part], strict=True)
            for number, (array, shape, dtype) in enumerate(wanted):
                if shape == array.shape and dtype == array.dtype:
                    continue
                what = f"for the {KINDS[part]} {self.names[part][number]!r}, and the array has"
                if shape != array.shape:
                    raise ShapeError(
                        f"infer_shape of {self.op!r} wants shape {shape} {what} {array.shape}"
                    )
                raise EngineError(
                    f"infer_type of {self.op!r} wants type {dtype} {what} {array.dtype}"
                )
        return shapes[1], types[1], types[0]

    def _infer(
        self, method: str, known: list[Any], to: Callable[[Any], Any], kind: type[EngineError]
    ) -> list[list[Any]]:
        who = f"{method} of {self.op!r}"
        try:
            found = getattr(self.prop, method)(known)
        except Exception as error:
            raise kind(f"{who} raised {type(error).__name__}: {error}") from error
        if not isinstance(found, (list, tuple)) or len(found) not in (2, 3):
            raise kind(
                f"{who} must give 2 or 3 lists (inputs, outputs, auxiliary states), not {found!r}"
            )
        lists = [*found, []][:3]
        for what, names, part in zip(KINDS, self.names, lists, strict=True):
            if not isinstance(part, (list, tuple)):
                raise kind(f"{who} must give a list for the {what}s, not {part!r}")
            if len(part) != len(names):
                raise kind(f"{who} gave {len(part)} for the {what}s, and there are {len(names)}")
        try:
            return [[to(one) for one in part] for part in lists]
        except (TypeError, ValueError, ShapeError) as error:
            raise kind(f"{who} gave {found!r}: {error}") from error

    def needed(self, outs: int, ins: int) -> set[int]:
        """Numbers of the arrays that the backward call needs: gradients, inputs, outputs."""
        numbers = list(range(outs + ins + outs))
        found = self.prop.declare_backward_dependency(
            numbers[:outs], numbers[outs : outs + ins], numbers[outs + ins :]
        )
        if not isinstance(found, (list, tuple, set)) or not all(n in numbers for n in found):
            raise EngineError(
                f"declare_backward_dependency of {self.op!r} must give some of the numbers "
                f"it was given, not {found!r}"
            )
        return set(found)


def _to_dtype(value: Any) -> np.dtype[Any]:
    if value is None:
        raise TypeError("None is no type")
    dtype: np.dtype[Any] = np.dtype(value)
    if dtype.kind not in "biuf":
        raise TypeError(f"arrays hold numbers, not {dtype}")
    return dtype
