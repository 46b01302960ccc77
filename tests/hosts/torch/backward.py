"""Operators that can be differentiated, of every kind; the tags of their calls can be counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.hosts.torch.ops import fresh, library, owned, rows, torch

import opscope
from opscope.analyse import CallRow
from opscope.model import Session

TAGGED = "(Tensor x, int tag) -> Tensor"


def times(function: Callable[[Any], Any], x: Any, tag: int) -> Any:
    """`function` so many times, one after the other."""
    for _ in range(tag):
        x = function(x)
    return x


def tagged_function(name: str, *, apart: bool = False) -> Any:
    """An autograd.Function; with `apart` its context is set up in a function of its own."""

    def together(ctx: Any, x: Any, tag: int) -> Any:
        ctx.tag = tag
        return times(torch.sin, x, tag)

    def forward(x: Any, tag: int) -> Any:
        return times(torch.sin, x, tag)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.tag = inputs[1]

    def backward(ctx: Any, slope: Any) -> Any:
        return times(torch.cos, slope, ctx.tag), None

    body = {"forward": forward if apart else together, "backward": backward}
    if apart:
        body["setup_context"] = setup_context
    methods = {name: staticmethod(function) for name, function in body.items()}
    return type(name, (torch.autograd.Function,), {"__module__": __name__, **methods})


class Op:
    """`op(x, tag)`; `kind` and `shown` are what it is and what its forward calls are called."""

    def __init__(self, kind: str, name: str, call: Callable[..., Any]) -> None:
        self.kind, self.shown, self._qualname, self.call = kind, name, name, call

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


def _function(kind: str) -> Op:
    name = fresh("Tagged").replace(":", "_")
    return Op(kind, name, tagged_function(name, apart=kind == "setup_context").apply)


def _custom(kind: str) -> Op:
    name = fresh("tagged")
    op = torch.library.custom_op(
        name, lambda x, tag: times(torch.sin, x, tag), mutates_args=(), schema=TAGGED
    )
    op.register_autograd(
        lambda ctx, slope: (times(torch.cos, slope, ctx.tag), None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "tag", inputs[1]),
    )
    return Op(kind, name, op)


def _composite(kind: str) -> Op:
    op = library("tagged", lambda x, tag: times(torch.sin, x, tag), TAGGED)
    return Op(kind, op._qualname, op)


def _marked(kind: str) -> Op:
    name = fresh("tagged")
    return Op(kind, name, opscope.custom_op(name)(lambda x, tag: times(torch.sin, x, tag)))


#: `KINDS[kind](kind)` makes a fresh operator. In a composite one and in a marked function autograd
#: sees every `sin`, and each of their nodes runs a `cos`; torch tells of no backward of their own.
KINDS: dict[str, Callable[[str], Op]] = {
    "function": _function,
    "setup_context": _function,
    "register_autograd": _custom,
    "composite": _composite,
    "marked": _marked,
}


def fwd(op: Op) -> str:
    """The phase of its forward calls."""
    return "none" if op.kind == "marked" else "forward"


def tags(session: Session, op: Any, phase: str) -> Counter[int]:
    """How many calls there are of each tag."""
    name = "aten::cos" if phase == "backward" else "aten::sin"
    return Counter(owned(session, row)[name] for row in rows(session, op, phase))


def forward_of(session: Session, op: Any, backward: CallRow) -> tuple[str, int] | None:
    """Phase and tag of the forward call that a backward call points to."""
    found = [row for row in rows(session, op) if row.call == backward.forward_call]
    return (found[0].phase, owned(session, found[0])["aten::sin"]) if found else None
