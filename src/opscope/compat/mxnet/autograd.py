"""`mx.autograd`: recording operators and going back over them, as the engine does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.base import refusals, refusing
from opscope.compat.mxnet.engine import body
from opscope.compat.mxnet.nd.array import adopt
from opscope.engine import Array, autograd


def _ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Arrays it returns are NDArrays; what the engine refuses is an MXNetError."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return adopt(function(*args, **kwargs))

    return refusing(call)


__all__ = list(autograd.__all__)

globals().update(
    {name: _ours(found) for name in __all__ if isfunction(found := getattr(autograd, name))}
)


class Function(autograd.Function):
    """As the engine's; what it is called with and handed are arrays that have MXNet's methods."""

    def __call__(self, *inputs: Any) -> Any:
        """As the engine's, but an AssertionError for a second call."""
        assert not self._used, "a Function can be called once: make another one"
        with refusals():
            return adopt(super().__call__(*adopt(inputs)))

    def _go_back(self, heads: Any) -> Any:
        with body():
            return self.backward(*adopt(heads))


_grad = _ours(autograd.grad)


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[Any]:
    """As the engine's, but a list for a single variable too, which MXNet gives."""
    some = [variables] if isinstance(variables, Array) else variables
    found: list[Any] = _grad(heads, some, head_grads, retain_graph, create_graph, train_mode)
    return found


__getattr__ = lacks("mx.autograd", lambda: __all__)
