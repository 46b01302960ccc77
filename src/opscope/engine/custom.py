"""Custom operators: what users derive from, and the register of what they wrote."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .array import Array
from .calls import CustomOpInfo
from .errors import RegistrationError

Shapes = Sequence[Sequence[int]]
DTypes = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Context:
    """Where a custom operator runs; here always the CPU."""

    device_type: str = "cpu"
    device_id: int = 0

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"


class CustomOp:
    """The work of a custom operator. One object serves a forward and its backward call.

    The methods run on a thread of the engine (kind naive: on the caller's). What they raise sticks
    to the outputs and raises at a wait. They may push, wait, and call custom operators.
    """

    def forward(
        self,
        is_train: bool,
        req: list[str],
        in_data: list[Array],
        out_data: list[Array],
        aux: list[Array],
    ) -> None:
        """Fill `out_data` as `req` says, with `assign`."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(
        self,
        req: list[str],
        out_grad: list[Array],
        in_data: list[Array],
        out_data: list[Array],
        in_grad: list[Array],
        aux: list[Array],
    ) -> None:
        """Fill `in_grad` as `req` says, with `assign`."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def assign(self, dst: Array, req: str, src: Any) -> None:
        """Put `src` into `dst` as `req` says: null, write, inplace or add."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst += src
        elif req != "null":
            raise ValueError(f"req must be 'null', 'write', 'inplace' or 'add', not {req!r}")


class CustomOpProp:
    """What is known of a custom operator before it runs. The methods run on the calling thread.

    `need_top_grad` is False for losses, which need no gradient from above.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states that a call may change."""
        return []

    def infer_shape(self, in_shape: Any) -> Any:
        """Shapes of (inputs, outputs) or (inputs, outputs, auxiliary states)."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: Any) -> Any:
        """Types of (inputs, outputs) or (inputs, outputs, auxiliary states)."""
        first = in_type[0] if in_type else np.float32
        auxiliary = [first] * len(self.list_auxiliary_states())
        return in_type, [first] * len(self.list_outputs()), auxiliary

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        """The object that does the work."""
        raise NotImplementedError(f"{type(self).__name__} has no create_operator")

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        """Which of these the backward call needs; the others reach it as zeros."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]


Prop = TypeVar("Prop", bound=type[CustomOpProp])

_registered: dict[str, CustomOpInfo] = {}
_defined: dict[tuple[str, str, str, str, int], CustomOpInfo] = {}
_numbers: dict[str, int] = {}
_lock = threading.Lock()


def register(name: str) -> Callable[[Prop], Prop]:
    """Class decorator: make the operator known as `name`, any text but the empty one.

    Registering a name again makes a new operator; calls under way keep the old one. Any thread.
    RegistrationError at once for a bad name or class.
    """
    if not isinstance(name, str):
        raise RegistrationError(f"the name must be a str, not {type(name).__name__}")
    if not name:
        raise RegistrationError("the name of a custom operator must not be empty")

    def decorate(prop: Prop) -> Prop:
        if not (isinstance(prop, type) and issubclass(prop, CustomOpProp)):
            raise RegistrationError(f"{prop!r} does not derive from CustomOpProp")
        caller = sys._getframe(1)
        with _lock:
            _registered[name] = CustomOpInfo(
                name, _number(name), prop, caller.f_code.co_filename, caller.f_lineno
            )
        return prop

    return decorate


def defined(name: str, qualified: str, kind: str, base: type, file: str, line: int) -> CustomOpInfo:
    """The operator that a class is which needs no registration. Any thread.

    Classes that one place makes again and again under one name are one operator.
    """
    key = (name, qualified, kind, file, line)
    found = _defined.get(key)
    if found is None:
        with _lock:
            found = _defined.get(key)
            if found is None:
                number = _number(qualified)
                found = CustomOpInfo(name, number, base, file, line, kind, qualified)
                _defined[key] = found
    return found


def _number(qualified: str) -> int:
    """The next of that qualified name, whatever its kind; with the lock held."""
    number = _numbers[qualified] = _numbers.get(qualified, 0) + 1
    return number


def find(name: str) -> CustomOpInfo:
    """The latest registration of this name; RegistrationError if there is none."""
    try:
        return _registered[name]
    except (KeyError, TypeError):
        raise RegistrationError(f"no custom operator is registered as {name!r}") from None


def registered() -> list[CustomOpInfo]:
    """The latest registration of every name, oldest name first. Any thread."""
    return list(_registered.values())


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
