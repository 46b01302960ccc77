"""`mx.nd._internal`: every operator under its registered name, `_plus_scalar` and its like too."""

from __future__ import annotations

from typing import Any

from opscope.compat.mxnet.absent import words
from opscope.compat.mxnet.nd import functions


def __getattr__(name: str) -> Any:
    found = functions.find(name)
    if found is None:
        raise AttributeError(words("mx.nd._internal", name, functions.every()))
    return found


def __dir__() -> list[str]:
    return sorted(functions.every())
