"""`mx.operator`: what custom operators derive from, and their registration."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from opscope import engine
from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.base import refusals
from opscope.compat.mxnet.engine import body
from opscope.compat.mxnet.nd.array import adopt
from opscope.engine import CustomOpProp

__all__ = ["CustomOp", "CustomOpProp", "register"]

__getattr__ = lacks("mx.operator", lambda: __all__)

Prop = TypeVar("Prop", bound=type[CustomOpProp])


class CustomOp(engine.CustomOp):
    """As the engine's; its methods are handed arrays that have MXNet's methods."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("forward", "backward"):
            if name in vars(cls):
                setattr(cls, name, _with_our_arrays(vars(cls)[name]))

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        """Nothing, unless it is defined: the gradients are then zeros, as in MXNet."""


def _with_our_arrays(method: Callable[..., None]) -> Callable[..., None]:
    @wraps(method)
    def run(self: CustomOp, *args: Any, **kwargs: Any) -> None:
        adopt(args)
        adopt(list(kwargs.values()))
        with body():
            method(self, *args, **kwargs)

    return run


def register(reg_name: str) -> Callable[[Prop], Prop]:
    """Class decorator: make the operator known to `nd.Custom` as `reg_name`."""
    with refusals():
        # Not wrapped: the engine takes the line that uses the decorator as the operator's place.
        return engine.register(reg_name)
