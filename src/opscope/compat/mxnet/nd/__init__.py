"""`mx.nd`: arrays, and every operator of the engine as a function."""

from __future__ import annotations

from typing import Any

from opscope.compat.mxnet.absent import words
from opscope.compat.mxnet.nd import _internal, functions, pairs, random
from opscope.compat.mxnet.nd.array import NDArray
from opscope.compat.mxnet.nd.creation import (
    Custom,
    arange,
    array,
    concatenate,
    empty,
    eye,
    full,
    ones,
    waitall,
    zeros,
)

op = _internal
random_uniform, random_normal = random.uniform, random.normal

__all__ = [
    "Custom",
    "NDArray",
    "arange",
    "array",
    "concatenate",
    "empty",
    "eye",
    "full",
    "ones",
    "op",
    "random",
    "random_normal",
    "random_uniform",
    "waitall",
    "zeros",
]

_PAIRS = {
    name: function
    for name, function in vars(pairs).items()
    if getattr(function, "__module__", "") == pairs.__name__ and not name.startswith("_")
}


def __getattr__(name: str) -> Any:
    found = None
    if not name.startswith("_"):
        found = _PAIRS.get(name) or functions.find(name)
    if found is None:
        raise AttributeError(words("mx.nd", name, __dir__()))
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_PAIRS, *functions.names()})
