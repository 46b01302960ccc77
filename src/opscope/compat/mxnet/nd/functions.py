"""The engine's operators as functions: whatever it offers or defines appears here by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import Any

from opscope import engine
from opscope.compat.mxnet.base import refusing
from opscope.compat.mxnet.context import checked
from opscope.compat.mxnet.nd.array import adopt
from opscope.engine import Array
from opscope.engine.operators.names import FUNCTIONS
from opscope.engine.operators.table import TABLE

Function = Callable[..., Any]


def every() -> set[str]:
    """Every name that `find` knows, also those that begin with an underscore."""
    return {*FUNCTIONS, *TABLE}


def names() -> list[str]:
    """Every operator that `mx.nd` has."""
    return sorted(name for name in every() if not name.startswith("_"))


def find(name: str) -> Function | None:
    """The operator of that name as a function; None if the engine has none.

    It takes arrays and parameters as MXNet's does, in order or by name, and `out`. It does not
    block, and raises MXNetError where the engine refuses.
    """
    if name in FUNCTIONS:
        return _ours(name, FUNCTIONS[name])
    return _ours(name, _row(name)) if name in TABLE else None


@cache
def _ours(name: str, function: Function) -> Function:
    def call(*args: Any, **params: Any) -> Any:
        params.pop("name", None)  # of a node of a graph, which there is not
        if "ctx" in params:
            checked(params.pop("ctx"))
        return adopt(function(*args, **params))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return refusing(call)


@cache
def _row(name: str) -> Function:
    """A row of the engine's table that comes without a function: arrays, then its parameters."""
    known = signature(TABLE[name].kernel)
    places = [
        p.name for p in known.parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]

    def call(*args: Any, out: Any = None, **params: Any) -> Any:
        arrays = [value for value in args if isinstance(value, Array)]
        plain = [value for value in args if not isinstance(value, Array)]
        params = dict(zip(places[1 + len(arrays) :], plain, strict=False)) | params
        try:
            known.bind(None, *arrays, **params)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        push = engine.several if TABLE[name].several else engine.apply
        return push(name, *arrays, out=out, **params)

    call.__doc__ = f"The operator {name}. Does not block."
    return call
