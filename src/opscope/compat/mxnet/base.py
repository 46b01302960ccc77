"""MXNetError, and how errors of the engine and of operators become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from opscope.compat.mxnet.absent import lacks
from opscope.engine import EngineError

__all__ = ["MXNetError"]

__getattr__ = lacks("mx.base", lambda: __all__)


class MXNetError(RuntimeError):
    """What the engine refuses, and what operators raised, told at a wait; see `__cause__`."""


@contextmanager
def refusals() -> Iterator[None]:
    """What the engine refuses at a call is an MXNetError; TypeError, IndexError ... stay."""
    try:
        yield
    except EngineError as error:
        raise MXNetError(str(error)) from error


@contextmanager
def outcomes() -> Iterator[None]:
    """A wait: whatever an operator raised is an MXNetError."""
    try:
        yield
    except MXNetError:
        raise
    except Exception as error:
        raise MXNetError(f"{type(error).__name__}: {error}") from error


def refusing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """As `refusals`, for a whole function."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except EngineError as error:
            raise MXNetError(str(error)) from error

    return call
