"""The engine in use, as plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from .current import get
from .engine import Done
from .graph import Var


def push_async(
    fn: Callable[[Done], object] | None,
    reads: Iterable[Var] = (),
    writes: Iterable[Var] = (),
    name: str = "task",
    priority: int = 0,
) -> None:
    """See `Engine.push_async`."""
    get().push_async(fn, reads, writes, name, priority)


def push_sync(
    fn: Callable[[], object] | None,
    reads: Iterable[Var] = (),
    writes: Iterable[Var] = (),
    name: str = "task",
    priority: int = 0,
) -> None:
    """See `Engine.push_sync`."""
    get().push_sync(fn, reads, writes, name, priority)


def new_var() -> Var:
    """See `Engine.new_var`."""
    return get().new_var()


def delete_var(var: Var, callback: Callable[[], object] | None = None) -> None:
    """See `Engine.delete_var`."""
    get().delete_var(var, callback)


def wait_for_var(var: Var) -> None:
    """See `Engine.wait_for_var`. Blocks."""
    get().wait_for_var(var)


def waitall() -> None:
    """See `Engine.wait_all`. Blocks."""
    get().wait_all()


def bulk(size: int) -> AbstractContextManager[None]:
    """See `Engine.bulk`."""
    return get().bulk(size)
