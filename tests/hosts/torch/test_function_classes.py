"""What a program sees of its own autograd.Functions is the same while they are recorded."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.torch.ops import owned, record, rows, torch

Function = torch.autograd.Function


def ones() -> Any:
    return torch.ones(3, requires_grad=True)


class Sine(Function):
    """One operator each way."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        return slope * torch.cos(ctx.saved_tensors[0])


def same(program: Callable[[], Any]) -> Any:
    """What the program answers, the same recorded as not; and the session."""
    plain = program()
    answers: list[Any] = []
    session = record(lambda: answers.append(program()))
    assert answers == [plain]
    return session


def one_each_way(session: Any, cls: Any, times: int = 1) -> None:
    forward, backward = rows(session, cls, "forward"), rows(session, cls, "backward")
    assert len(rows(session, cls)) == 2 * times
    assert sorted(row.forward_call for row in backward) == [row.call for row in forward]
    assert {row.flags for row in rows(session, cls)} == {("estimated",)}


def test_contexts_and_nodes() -> None:
    class Careful(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, scale: float) -> Any:
            seen.append((type(ctx).__name__, type(ctx) is Careful._backward_cls))
            seen.append((ctx.needs_input_grad, ctx.name(), ctx._forward_cls is Careful))
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, None, y)
            ctx.mark_non_differentiable(mask := x > 0)
            ctx.scale, ctx.anything = scale, ["kept"]
            return x * scale, mask, y + 1

        @staticmethod
        def backward(ctx: Any, first: Any, mask: Any, second: Any) -> Any:
            x, nothing, y = ctx.saved_tensors
            seen.append((sorted(vars(ctx)), ctx.anything, nothing, x.shape == y.shape))
            seen.append((first is None, mask is None, second is None, ctx.needs_input_grad))
            return None if first is None else first * ctx.scale, second, None

    seen: list[Any] = []

    def program() -> Any:
        seen.clear()
        x, y = ones(), ones()
        first, mask, second = Careful.apply(x, y, 3.0)
        node = first.grad_fn
        seen.append(
            (type(node) is Careful._backward_cls, node.name(), node._forward_cls is Careful)
        )
        seen.append((mask.requires_grad, [edge[0].name() for edge in node.next_functions]))
        first.sum().backward(retain_graph=True)
        second.sum().backward()
        return [*seen, x.grad.tolist(), y.grad.tolist()]

    session = same(program)
    (forward,) = rows(session, Careful, "forward")
    backward = rows(session, Careful, "backward")
    assert [row.forward_call for row in backward] == [forward.call] * 2
    assert [owned(session, row)["aten::mul"] for row in backward] == [1, 0]


def test_changed_in_place_and_handed_through() -> None:
    class InPlace(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return slope * 2

    def program() -> Any:
        x = ones()
        y = x.clone()
        z = InPlace.apply(y)
        z.sum().backward()
        return z is y, x.grad.tolist(), y.tolist()

    one_each_way(same(program), InPlace)


def test_once_differentiable() -> None:
    class Once(Sine):
        backward = staticmethod(torch.autograd.function.once_differentiable(Sine.backward))

    def program() -> Any:
        x = ones()
        Once.apply(x).sum().backward()
        (slope,) = torch.autograd.grad(Once.apply(x).square().sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable") as caught:
            slope.sum().backward()
        return str(caught.value), x.grad.tolist()

    one_each_way(same(program), Once, times=2)


def test_ways_to_call() -> None:
    class Overridden(Sine):
        @classmethod
        def apply(cls, x: Any, *more: Any) -> Any:
            return super().apply(x * 1, *more)

    class Below(Overridden):
        pass

    class Static(Sine):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return Sine.forward(ctx, x)

    bound = Sine.apply
    base = super(Sine, Sine).apply

    def program() -> None:
        x = ones()
        for call in (bound, base, Overridden.apply, Below.apply, Static.apply, Sine.apply):
            call(x).sum().backward()

    session = record(program)
    one_each_way(session, Sine, times=3)
    for cls in (Overridden, Below, Static):
        one_each_way(session, cls)
    for row in rows(session, "Sine", "forward") + rows(session, "Static", "forward"):
        assert owned(session, row) == {"aten::sin": 1}


def test_nobody_hears_of_our_classes() -> None:
    heard: list[str] = []

    class Meta(type(Function)):  # type: ignore[misc]
        def __init__(cls, name: str, bases: Any, body: Any) -> None:
            heard.append(f"meta {name}")
            super().__init__(name, bases, body)

    class Base(Sine, metaclass=Meta):
        def __init_subclass__(cls, **more: Any) -> None:
            heard.append(f"init {cls.__name__}")
            super().__init_subclass__(**more)

    class Below(Base):
        __slots__ = ()

    before = list(heard)
    during: list[int] = []

    def program() -> None:
        for cls in (Base, Below):
            cls.apply(ones()).sum().backward()
            during.append(len(cls.__subclasses__()))

    session = record(program)
    one_each_way(session, Base)
    one_each_way(session, Below)
    assert heard == before
    assert during == [1, 0]
    gc.collect()
    assert Below.__subclasses__() == []
    assert Base.__subclasses__() == [Below]


def test_the_base_class_has_no_more_subclasses_afterwards() -> None:
    known = set(Function.__subclasses__())
    record(lambda: Sine.apply(ones()).sum().backward())
    gc.collect()
    assert set(Function.__subclasses__()) == known


def test_classes_can_go_afterwards() -> None:
    def program() -> weakref.ref[Any]:
        gone = type("Gone", (Sine,), {"__module__": __name__})
        gone.apply(ones()).sum().backward()
        return weakref.ref(gone)

    plain = program()
    made: list[weakref.ref[Any]] = []
    record(lambda: made.append(program()))
    gc.collect()
    assert plain() is None
    assert made[0]() is None


def test_what_goes_wrong_goes_wrong_as_ever() -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, where: str) -> Any:
            ctx.where = where
            if where == "forward":
                raise KeyError("mine")
            return x.detach()

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            if ctx.where == "backward":
                raise KeyError("mine")
            return slope if ctx.where == "count" else (slope, None)

    class Empty(Function):
        pass

    def told(call: Callable[[], Any]) -> tuple[str, str]:
        try:
            call()
        except Exception as error:
            return type(error).__name__, str(error)
        return "", "nothing went wrong"

    def program() -> Any:
        x = ones()
        return [
            told(lambda: Fails.apply(x, "forward")),
            told(lambda: Fails.apply(x, "backward").sum().backward()),
            told(lambda: Fails.apply(x, "count").sum().backward()),
            told(lambda: Fails.apply(x)),
            told(lambda: Fails.apply()),
            told(lambda: Empty.apply(x)),
            told(lambda: Fails()),
            told(lambda: pickle.dumps(Fails.apply(x, "").grad_fn)),
        ]

    session = same(program)
    assert "nothing went wrong" not in dict(program()[:-1]).values()
    failed = [row.phase for row in rows(session, Fails) if "failed" in row.flags]
    assert failed.count("backward") >= 1
    assert failed.count("forward") >= 2


def test_keywords() -> None:
    """torch takes them from 2.13 on, and finds their places in the code of forward."""

    class Keywords(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: float, *, shift: float = 1.0) -> Any:
            return x.detach() * scale + shift

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return slope, *[None] * (len(ctx.needs_input_grad) - 1)

    def program() -> Any:
        try:
            return Keywords.apply(ones(), scale=2.0, shift=3.0).tolist()
        except TypeError as error:
            return str(error)

    plain, answers = program(), []
    session = record(lambda: answers.append(program()))
    assert answers == [plain]
    assert len(rows(session, Keywords, "forward")) == 1


def test_transforms_of_functions() -> None:
    class Square(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.square()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return slope * 2 * ctx.saved_tensors[0]

    def program() -> Any:
        x = torch.arange(3.0)
        return [
            torch.func.grad(lambda x: Square.apply(x).sum())(x).tolist(),
            torch.func.vmap(Square.apply)(x).tolist(),
            torch.func.vmap(torch.func.grad(Square.apply))(x).tolist(),
            torch.func.grad(torch.func.grad(Square.apply))(x[1]).tolist(),
            torch.func.jacrev(Square.apply)(x).tolist(),
        ]

    same(program)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_forward_mode() -> None:
    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def jvp(ctx: Any, slope: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * slope

    def program() -> Any:
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(torch.arange(3.0), torch.ones(3))
            return torch.autograd.forward_ad.unpack_dual(Cube.apply(dual)).tangent.tolist()

    session = same(program)
    assert [row.phase for row in rows(session, Cube)] == ["forward"]


def test_a_class_that_was_renamed() -> None:
    renamed = type("Before", (Sine,), {"__module__": __name__})
    renamed.__name__ = "After"
    session = record(lambda: renamed.apply(ones()).sum().backward())
    one_each_way(session, renamed)


@pytest.mark.parametrize("mode", ["full", "light"])
def test_a_context_that_is_set_up_after_another_function_ran(mode: str) -> None:
    import opscope

    class Outer(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return Sine.apply(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return Sine.backward(ctx, slope)

    def program() -> None:
        threads = [
            threading.Thread(target=lambda: Outer.apply(ones()).sum().backward()) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
            thread.join()

    with opscope.profile(host=("torch", "python"), mode=mode) as run:
        program()
    session = run.session
    forward = [row.call for row in rows(session, Outer, "forward")]
    backward = [row.forward_call for row in rows(session, Outer, "backward")]
    assert len(forward) == 2
    assert backward == forward
