"""Operators for tests of the torch host, a recording of a program, and what tests look up in it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from tests.hosts.checks import check

import opscope
from opscope.analyse import CallRow, calls, span_records
from opscope.model import Kind, Op, Session
from opscope.testing import assert_restored

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

#: Whether torch can profile threads that its profiler was not started on: from 2.7 on.
SEES_THREADS = "profile_all_threads" in torch._C._profiler._ExperimentalConfig.__init__.__doc__
sees_threads = pytest.mark.skipif(
    not SEES_THREADS,
    reason="this torch cannot profile threads that its profiler was not started on",
)
SPACE = "opscope_tests"
UNARY = "(Tensor x) -> Tensor"
_number = itertools.count(1).__next__
_library = torch.library.Library(SPACE, "FRAGMENT")


# --- operators ------------------------------------------------------------------------------------


def fresh(name: str) -> str:
    """A name for an operator that no other has."""
    return f"{SPACE}::{name}_{_number()}"


def custom(name: str, kernel: Callable[..., Any], schema: str = UNARY) -> Any:
    """A `torch.library.custom_op` whose function is `kernel`; its name is `op._qualname`."""
    return torch.library.custom_op(fresh(name), kernel, mutates_args=(), schema=schema)


def differentiable(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """The same with `backward(slope)`, or `backward(slope, x)` where it takes two."""
    op = custom(name, forward)
    takes = backward.__code__.co_argcount

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def gradient(ctx: Any, slope: Any) -> Any:
        return backward(*(slope, *ctx.saved_tensors)[:takes])

    op.register_autograd(own(gradient), setup_context=keep)
    return op


def own(function: Any) -> Any:
    """The function, with code that no other function has: what runs is known by its code."""
    function.__code__ = function.__code__.replace(co_name=fresh("code"))
    return function


def library(
    name: str,
    kernel: Callable[..., Any],
    schema: str = UNARY,
    key: str = "CompositeImplicitAutograd",
) -> Any:
    """An operator of `torch.library.Library(...).impl`, of which only torch's events tell; its name
    is `op._qualname`."""
    full = fresh(name)
    bare = full.partition("::")[2]
    _library.define(bare + schema)
    _library.impl(bare, kernel, key)

    class Found:
        _qualname = full
        _packet = getattr(getattr(torch.ops, SPACE), bare)

        def __call__(self, *args: Any) -> Any:
            return self._packet(*args)

    return Found()


def negative(x: Any) -> Any:
    """A kernel that runs one operator, `aten::neg`."""
    return torch.neg(x)


# --- recording ------------------------------------------------------------------------------------


def record(program: Callable[[], object]) -> Session:
    """What is recorded of the program: sound, with no hook switched off and none left behind."""
    with assert_restored(), nothing_hooked(), opscope.profile(host=("torch", "python")) as run:
        program()
    assert run.session.processes[0].broken == ()
    check(run.session)
    return run.session


@contextmanager
def nothing_hooked() -> Iterator[None]:
    """Fails when the block leaves anything of torch's replaced."""
    before = _surroundings()
    yield
    after = _surroundings()
    assert [place for place in before if before[place] is not after[place]] == []
    assert before.keys() <= after.keys()
    assert [place for place in after if "opscope/hosts" in _file_of(after[place])] == []
    assert not torch.autograd.profiler._is_profiler_enabled


def _surroundings() -> dict[str, Any]:
    from torch.autograd import function, profiler
    from torch.utils import checkpoint

    single, node, definition = (
        function._SingleLevelFunction,
        function.BackwardCFunction,
        torch._library.custom_ops.CustomOpDef,
    )
    return {
        "_SingleLevelFunction.apply": vars(single).get("apply"),
        "BackwardCFunction.apply": vars(node).get("apply"),
        "BackwardCFunction.apply_boxed": vars(node).get("apply_boxed"),
        "CustomOpDef.register_kernel": vars(definition).get("register_kernel"),
        "_CheckpointFrame.__init__": vars(checkpoint._CheckpointFrame).get("__init__"),
        **{
            f"profile.{name}": vars(profiler.profile).get(name)
            for name in ("_prepare_trace", "_start_trace", "__exit__")
        },
        **{
            f"{name} on {device}": kernel
            for name, found in list(torch._library.custom_ops.OPDEFS.items())
            for device, kernel in list(found._backend_fns.items())
            if name.startswith(SPACE)
        },
    }


def _file_of(function: Any) -> str:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return "" if code is None else code.co_filename.replace("\\", "/")


@contextmanager
def wrong_yet(wrong: bool, why: str) -> Iterator[None]:
    """Where `wrong`, the assertions in the block fail; the test fails once they do not."""
    if not wrong:
        yield
        return
    with pytest.raises(AssertionError):
        yield
    pytest.xfail(why)


# --- looking up -----------------------------------------------------------------------------------


def rows(session: Session, op: Any, phase: str | None = None) -> list[CallRow]:
    """The calls of an operator (or of what is shown under that name), by their start."""
    name = op if isinstance(op, str) else getattr(op, "_qualname", None) or op.__name__
    return [r for r in _calls(session) if r.op == name and phase in (None, r.phase)]


_last: list[tuple[Session, tuple[CallRow, ...]]] = []


def _calls(session: Session) -> tuple[CallRow, ...]:
    if not _last or _last[0][0] is not session:
        _last[:] = [(session, calls(session))]
    return _last[0][1]


def owned(session: Session, call: CallRow | int | None) -> Counter[str]:
    """Names and counts of the operators and calls that one call itself owns; 0: nobody owns."""
    number = call.call if isinstance(call, CallRow) else call or 0
    spans = session.spans
    mine = spans[(spans["owner"] == number) & np.isin(spans["kind"], (Kind.OP, Kind.CALL))]
    return Counter(session.names[name] for name in mine["name"])


def entry(session: Session, name: str) -> Op:
    (op,) = [op for op in session.ops if op.name == name]
    return op


def tasks(session: Session) -> Counter[tuple[str, int]]:
    """How many tasks there are of each (name, owner)."""
    return Counter(
        (record["name"], record["owner"] or 0)
        for record in span_records(session)
        if record["kind"] == "task"
    )
