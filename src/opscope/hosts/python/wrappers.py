"""The four kinds of marked function, each wrapped into its own kind."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from types import CodeType
from typing import Any

from opscope.hosts.python.operators import HOST, Marked, end
from opscope.hosts.python.steps import Step, Steps
from opscope.model import Flag
from opscope.record import scope, watch

Function = Callable[..., Any]


def function(fn: Function, marked: Marked) -> Function:
    """A plain function. While nobody records it costs one look-up and the forwarding."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        # A thread that looks for running calls leaves this one alone once `over` is set.
        recorder = watch.recorder
        if recorder is None or HOST in recorder.off or (frame := marked.begin(recorder)) is None:
            try:
                result = fn(*args, **kwargs)
            except BaseException:
                over = True
                if scope.late:
                    _end_late(Flag.FAILED)
                raise
            over = True
            if scope.late:
                _end_late(Flag(0))
            return result
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            over = True
            end(frame, Flag.FAILED)
            if scope.late:
                _end_late(Flag.FAILED)
            raise
        over = True  # noqa: F841
        end(frame)
        if scope.late:
            _end_late(Flag(0))
        return result

    return call


def _end_late(flags: int) -> None:
    """End the caller's call if recording began meanwhile and found it running."""
    wrapper = sys._getframe(1)
    frame = scope.late.get(wrapper)
    if frame is not None:
        end(frame, flags)
        scope.late.pop(wrapper, None)


def generator(fn: Function, marked: Marked) -> Function:
    """A generator function. The same loop as `stepwise`, but with no `yield from` in between: that
    would close what `throw(GeneratorExit)` has to reach, and hide what `close` returns."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = fn(*args, **kwargs)
        del args, kwargs  # or they would live as long as the generator
        steps = Steps(marked)
        flags = Flag.FAILED
        action: Any = inner.send
        value: Any = None
        try:
            while True:
                steps.enter()
                try:
                    item = [action(value)]
                except StopIteration as stop:
                    flags = Flag(0)
                    return stop.value
                finally:
                    value = None
                    steps.leave()
                action = inner.send
                try:
                    value = yield item.pop()
                except BaseException as error:
                    action, value = inner.throw, error
        except GeneratorExit:
            flags = Flag(0)  # closed early: an ordinary way for a generator to end
            raise
        finally:
            steps.finish(flags)

    return call


def coroutine(fn: Function, marked: Marked) -> Function:
    """A coroutine function."""

    @wraps(fn)
    async def call(*args: Any, **kwargs: Any) -> Any:
        inner = fn(*args, **kwargs)
        del args, kwargs
        steps = Steps(marked)
        flags = Flag.FAILED
        try:
            result = await Step(steps, inner)
            flags = Flag(0)
            return result
        except GeneratorExit:
            flags = Flag(0)
            raise
        finally:
            steps.finish(flags)

    return call


def async_generator(fn: Function, marked: Marked) -> Function:
    """An async generator function: suspended between two items and while it awaits."""

    @wraps(fn)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        items = fn(*args, **kwargs)
        del args, kwargs
        steps = Steps(marked)
        flags = Flag.FAILED
        action: Any = _hidden(items)
        value: Any = None
        try:
            while True:
                try:
                    item = [await Step(steps, action(value))]
                except StopAsyncIteration:
                    flags = Flag(0)
                    return
                finally:
                    value = None
                action = items.asend
                try:
                    value = yield item.pop()
                except BaseException as error:
                    action, value = items.athrow, error
        except GeneratorExit:
            flags = Flag(0)
            raise
        finally:
            steps.finish(flags)

    return call


def _hidden(items: AsyncGenerator[Any, Any]) -> Callable[[None], Any]:
    """`items.asend` for the first time, without the event loop hearing of `items`.

    The loop closes every async generator it knows when it ends; this one is its wrapper's affair.
    """

    def first(nothing: None) -> Any:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            return items.asend(nothing)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    return first


#: All wrappers of a kind share their code: how running calls are found on the stacks.
FUNCTION_CODE: CodeType = function(lambda: None, None).__code__  # type: ignore[arg-type]
GENERATOR_CODE: CodeType = generator(lambda: None, None).__code__  # type: ignore[arg-type]
