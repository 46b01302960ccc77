"""`custom_op`: a decorator and a block that make plain Python a custom operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from opscope.errors import UsageError
from opscope.hosts.python import wrappers
from opscope.hosts.python.block import Block
from opscope.hosts.python.operators import checked_name, operator_of

F = TypeVar("F", bound=Callable[..., Any])


@overload
def custom_op(target: F) -> F: ...
@overload
def custom_op(target: str) -> Block: ...
def custom_op(target: Any) -> Any:
    """Make a function, a generator, an async generator or a coroutine a custom operator.

    `@custom_op` takes the function's own name, `@custom_op("name")` another one, and
    `with custom_op("name"):` marks a block. Functions keep their signature, behaviour and kind;
    while nothing is recorded a marked function costs one look-up. A generator or coroutine is the
    current call only while it runs: being suspended is `wait`.

    Raises UsageError for an empty name, a class, or something that cannot be called.
    """
    if isinstance(target, str):
        return Block(checked_name(target), _mark)
    return _mark(target, None)


def _mark(target: Any, name: str | None) -> Any:
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_mark(target.__func__, name))
    if inspect.isclass(target):
        raise UsageError(
            f"custom_op marks functions; mark a method of {target.__qualname__} instead"
        )
    if not callable(target):
        checked_name(target)
    return _wrap_for(target)(target, operator_of(target, name))


def _wrap_for(target: Any) -> Callable[..., Any]:
    """How to wrap something of its kind; what an object does when called tells the kind of it."""
    while isinstance(target, partial):
        target = target.func
    for place in (target, type(target).__call__):
        if inspect.isasyncgenfunction(place):
            return wrappers.async_generator
        if inspect.iscoroutinefunction(place):
            return wrappers.coroutine
        if inspect.isgeneratorfunction(place):
            return wrappers.generator
    return wrappers.function
