"""Modes and subclasses do not change what a call is, and are not changed either."""

from __future__ import annotations

from typing import Any

import pytest
from tests.hosts.torch.modes import Cubed, both, counted, same, tripled
from tests.hosts.torch.ops import custom, library, negative, owned, rows, torch

_python_dispatch = pytest.importorskip("torch.utils._python_dispatch")
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


class Dispatch(_python_dispatch.TorchDispatchMode):
    """Counts, and passes on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Torchy(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Dispatch, Torchy])
def test_under_a_mode(mode: Any) -> None:
    op = tripled([])

    def program() -> Any:
        with mode() as found:
            return *both(op)(), found.seen

    (*_, seen), session = same(program)
    assert seen
    counted(session, op, 1, 1)
    counted(session, "Cubed", 1, 1)


def test_under_two_modes_at_once() -> None:
    op = tripled([])

    def program() -> Any:
        with Dispatch(), Torchy(), Dispatch():
            return both(op)()

    _, session = same(program)
    counted(session, op, 1, 1)
    counted(session, "Cubed", 1, 1)
    for row in rows(session, op, "forward"):
        assert owned(session, row)["aten::mul"] == 1


@pytest.mark.xfail(reason="the call inside reaches to the end of what it was called in")
def test_a_mode_that_runs_operators_in_its_handler() -> None:
    """They run on the way to the operator's function, whose call has not begun."""
    inner = custom("in_mode", negative)
    outer = custom("outer", lambda x: torch.sin(x))

    class Busy(_python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if func is outer._opoverload:
                inner(args[0])
                torch.exp(args[0])
            return func(*args, **(kwargs or {}))

    x = torch.ones(3)

    def program() -> Any:
        with Busy():
            return outer(x)

    _, session = same(program)
    counted(session, outer, 1)
    counted(session, inner, 1)
    (row,) = rows(session, outer)
    (below,) = rows(session, inner)
    assert owned(session, row)["aten::sin"] == 1
    assert owned(session, below) == {"aten::neg": 1}
    assert below.parent in (None, row.call)
    assert (row.dispatch_ns or 0) <= row.wall_ns - (row.sub_ns or 0)


def test_an_unhooked_operator_under_a_mode_is_one_call() -> None:
    op = library("unhooked", negative, key="CPU")
    x = torch.ones(3)

    def program() -> Any:
        with Dispatch() as found:
            return op(x), len(found.seen)

    program()  # the first time torch imports much
    _, session = same(program)
    counted(session, op, 1)


class Wrapped(torch.Tensor):
    """A subclass that hears of every operator below autograd."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner: Any) -> None:
        self.inner = inner.detach()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils._pytree import tree_map_only

        args, kwargs = tree_map_only(Wrapped, lambda t: t.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, Wrapped, func(*args, **kwargs))


class Shown(torch.Tensor):
    """A subclass that hears of every function of torch."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_below_autograd() -> None:
    runs: list[str] = []
    op = tripled(runs)

    def program() -> Any:
        x = Wrapped(torch.arange(3.0))
        return op(x).inner, Cubed.apply(x).inner

    _, session = same(program)
    assert len(runs) == 2  # once without, once with opscope
    counted(session, op, 1)
    counted(session, "Cubed", 1)


def test_a_subclass_above_autograd() -> None:
    op = tripled([])

    def program() -> Any:
        x = torch.arange(3.0, requires_grad=True)
        y = Cubed.apply(op(x.as_subclass(Shown)))
        y.sum().backward()
        return torch.Tensor(y.detach()), x.grad

    _, session = same(program)
    counted(session, op, 1, 1)
    counted(session, "Cubed", 1, 1)
