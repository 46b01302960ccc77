"""Transforms, contexts and stand-ins for tensors: what runs for them counts as it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.torch.modes import Cubed, counted, same, tripled
from tests.hosts.torch.ops import owned, rows, torch

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


class ByHand(torch.autograd.Function):
    """With a rule of its own for vmap."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        return slope * 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return ByHand.apply(x), in_dims[0]


# --- transforms -----------------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(torch.arange(3.0)),
    "vmap": lambda f: torch.func.vmap(f)(torch.arange(6.0).view(2, 3)),
    "vjp": lambda f: torch.func.vjp(f, torch.arange(3.0))[1](torch.ones(3)),
    "grad of vmap": lambda f: torch.func.grad(lambda x: torch.func.vmap(f)(x).sum())(
        torch.arange(6.0).view(2, 3)
    ),
    "vmap of grad": lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(
        torch.arange(6.0).view(2, 3)
    ),
}


@pytest.mark.parametrize(
    "transform",
    [
        "grad",
        "vjp",
        "vmap",
        pytest.param(
            "grad of vmap",
            marks=pytest.mark.xfail(reason="each counts twice: torch nests the classes it makes"),
        ),
        "vmap of grad",
    ],
)
def test_transforms_of_a_function_run_it_once_each(transform: str) -> None:
    def program() -> Any:
        del Cubed.runs[:]
        return TRANSFORMS[transform](Cubed.apply)

    _, session = same(program)
    counted(session, "Cubed", Cubed.runs.count("forward"), Cubed.runs.count("backward"))
    for row in rows(session, "Cubed", "forward"):
        assert owned(session, row)["aten::mul"] >= 2


def test_jvp_of_a_function() -> None:
    def program() -> Any:
        return torch.func.jvp(Cubed.apply, (torch.arange(3.0),), (torch.ones(3),))

    _, session = same(program)
    counted(session, "Cubed", 1)


def test_vmap_of_a_function_with_a_rule_of_its_own() -> None:
    def program() -> Any:
        return torch.func.vmap(ByHand.apply)(torch.arange(6.0).view(2, 3))

    _, session = same(program)
    assert len(rows(session, "ByHand")) in (1, 2)  # the mapped one may count around the plain one
    assert owned(session, rows(session, "ByHand")[-1])["aten::mul"] == 1


@pytest.mark.skipif(
    not hasattr(torch.library, "register_vmap"), reason="this torch has no `register_vmap`"
)
def test_vmap_of_a_custom_op_runs_it_once() -> None:
    """torch has no other transforms of what `register_autograd` makes."""
    runs: list[str] = []
    op = tripled(runs)

    def program() -> Any:
        del runs[:]
        return TRANSFORMS["vmap"](op)

    _, session = same(program)
    counted(session, op, runs.count("forward"), runs.count("backward"))
    for row in rows(session, op, "forward"):
        assert owned(session, row)["aten::mul"] == 1


@pytest.mark.parametrize(
    "context",
    [
        torch.no_grad,
        torch.inference_mode,
        torch.enable_grad,
        lambda: torch.autocast("cpu", torch.bfloat16),
        torch.autograd.detect_anomaly,
        lambda: torch.autograd.graph.save_on_cpu(),
        lambda: torch.autograd.set_multithreading_enabled(False),
    ],
    ids=["no_grad", "inference", "grad", "autocast", "anomaly", "saved", "single"],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning")
def test_inside_a_context(context: Any) -> None:
    op = tripled([])

    def program() -> Any:
        with context():
            x = torch.arange(3.0, requires_grad=True)
            y = Cubed.apply(op(x @ torch.eye(3)))
            if y.requires_grad:
                y.sum().backward()
            return y.detach().float(), x.grad

    (_, slope), session = same(program)
    times = int(slope is not None)
    counted(session, op, 1, times)
    counted(session, "Cubed", 1, times)
    for name in (op, "Cubed"):
        for row in rows(session, name, "backward"):
            assert row.forward_call == rows(session, name, "forward")[0].call


# --- no calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["meta", "fake", "fake with real", "make_fx"])
def test_what_only_computes_shapes_is_no_call(way: str) -> None:
    runs: list[str] = []
    op = tripled(runs)
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    proxy = pytest.importorskip("torch.fx.experimental.proxy_tensor")

    def program() -> Any:
        if way == "meta":
            y = op(torch.empty(3, device="meta"))
        elif way == "make_fx":
            return len(proxy.make_fx(op, tracing_mode="fake")(torch.ones(3)).graph.nodes)
        else:
            with fake.FakeTensorMode(allow_non_fake_inputs=True):
                y = op(torch.ones(3) if way == "fake with real" else torch.empty(3))
        return tuple(y.shape)

    _, session = same(program)
    assert runs == []
    counted(session, op, 0)


def test_a_function_on_stand_ins_is_no_call() -> None:
    fake = pytest.importorskip("torch._subclasses.fake_tensor")

    def program() -> Any:
        with fake.FakeTensorMode():
            return tuple(Cubed.apply(torch.empty(3)).shape)

    _, session = same(program)
    counted(session, "Cubed", 0)


def test_a_real_call_after_a_traced_one_counts() -> None:
    runs: list[str] = []
    op = tripled(runs)
    fake = pytest.importorskip("torch._subclasses.fake_tensor")

    def program() -> Any:
        with fake.FakeTensorMode():
            op(torch.empty(3))
        return op(torch.ones(3)), op(torch.empty(3, device="meta")).shape, op(torch.zeros(3))

    _, session = same(program)
    assert len(runs) == 4
    counted(session, op, 2)
