"""An autograd.Function and a custom_op for tests of what may stand around calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tests.hosts.torch.ops import differentiable, record, rows, torch

from opscope.model import Session


class Cubed(torch.autograd.Function):
    """An autograd.Function that transforms can look into."""

    generate_vmap_rule = True
    runs: ClassVar[list[str]] = []

    @staticmethod
    def forward(x: Any) -> Any:
        Cubed.runs.append("forward")
        return x * x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        Cubed.runs.append("backward")
        (x,) = ctx.saved_tensors
        return slope * 3 * x * x

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return tangent * 3 * x * x


def tripled(runs: list[str]) -> Any:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        runs.append("forward")
        return torch.mul(x, 3.0)

    def gradient(slope: Any) -> Any:
        runs.append("backward")
        return slope * 3.0

    op = differentiable("tripled", kernel, gradient)
    op.register_fake(torch.empty_like)
    if hasattr(op, "register_vmap"):
        op.register_vmap(lambda info, in_dims, x: (op(x), in_dims[0]))
    return op


def same(program: Callable[[], Any]) -> tuple[Any, Session]:
    """The program's answer, which is the same recorded as not, and the session."""
    plain = program()
    answers: list[Any] = []
    session = record(lambda: answers.append(program()))
    assert equal(answers[0], plain), (answers[0], plain)
    return plain, session


def equal(left: Any, right: Any) -> bool:
    """Whether two answers of a program are the same to the bit."""
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(equal, left, right))
    return torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right


def counted(session: Session, op: Any, forward: int, backward: int = 0) -> None:
    assert len(rows(session, op, "forward")) == forward
    assert len(rows(session, op, "backward")) == backward
    assert len(rows(session, op)) == forward + backward
    assert all(not {"failed", "incomplete"} & set(row.flags) for row in rows(session, op))


def both(op: Any) -> Callable[[], Any]:
    """Forward and backward of a custom_op and of a Function."""

    def program() -> Any:
        x = torch.arange(3.0, requires_grad=True)
        y = Cubed.apply(op(x))
        y.sum().backward()
        return y.detach(), x.grad

    return program
