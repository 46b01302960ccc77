"""`autograd.Function`: an operator as one class, whose forward runs where it is called."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

from opscope import engine as nd
from opscope.engine import autograd
from opscope.engine.custom import defined


@pytest.fixture(autouse=True)
def _each_kind(custom_kind: str) -> None:
    """Every test on every way of running custom operators."""


def leaf(*values: float, grad_req: str = "write") -> nd.Array:
    x = nd.array(values or (1.0, 2.0, 3.0))
    x.attach_grad(grad_req)
    return x


def gradient(x: nd.Array) -> list[float]:
    assert x.grad is not None
    found: list[float] = x.grad.asnumpy().tolist()
    return found


class Product(autograd.Function):
    """Two inputs and two outputs."""

    def forward(self, a: Any, b: Any) -> Any:
        self.save_for_backward(a, b)
        return a * b, a + b

    def backward(self, by_product: Any, by_sum: Any) -> Any:
        a, b = self.saved_tensors
        return by_product * b + by_sum, by_product * a + by_sum


class Twice(autograd.Function):
    """Its gradient is not the true one, so that one sees whose it is."""

    def forward(self, x: Any) -> Any:
        return x * 2.0

    def backward(self, slope: Any) -> Any:
        return slope * 10.0


def test_several_inputs_and_outputs() -> None:
    a, b = leaf(), leaf(4, 5, 6)
    with autograd.record():
        product, total = Product()(a, b)
        z = product * 2.0 + total * 3.0
    z.backward()
    assert product.asnumpy().tolist() == [4, 10, 18]
    assert gradient(a) == [11, 13, 15]
    assert gradient(b) == [5, 7, 9]


def test_an_output_that_was_not_used_has_a_gradient_of_zeros() -> None:
    a, b = leaf(), leaf(4, 5, 6)
    with autograd.record():
        product, _ = Product()(a, b)
    product.backward()
    assert gradient(a) == [4, 5, 6]


@pytest.mark.parametrize("first", [True, False])
def test_an_input_without_a_gradient_takes_nothing_from_the_other(first: bool) -> None:
    plain, x = nd.array([4.0, 5.0, 6.0]), leaf()
    with autograd.record():
        product, _ = Product()(plain, x) if first else Product()(x, plain)
    product.backward()
    assert gradient(x) == [4, 5, 6]
    assert plain.grad is None


def test_one_array_as_both_inputs() -> None:
    x = leaf()
    with autograd.record():
        product, _ = Product()(x, x)
    product.backward()
    assert gradient(x) == [2, 4, 6]


def test_gradients_are_added_where_that_is_asked_for() -> None:
    x = leaf(grad_req="add")
    for _ in range(3):
        with autograd.record():
            y = Twice()(x)
        y.backward()
    assert gradient(x) == [30, 30, 30]


def test_a_kept_tape_goes_back_again() -> None:
    x = leaf()
    with autograd.record():
        y = Twice()(x)
    y.backward(retain_graph=True)
    y.backward(nd.array([1.0, 2.0, 3.0]))
    assert gradient(x) == [10, 20, 30]
    with pytest.raises(nd.EngineError, match="the tape behind 'Twice' was freed"):
        y.backward()


def test_the_gradient_as_an_array_of_its_own() -> None:
    x = leaf()
    with autograd.record():
        y = Twice()(x)
    found = autograd.grad(y, [x])
    assert found[0].asnumpy().tolist() == [10, 10, 10]
    assert gradient(x) == [0, 0, 0]


def test_unrecorded_anything_goes_in_and_out() -> None:
    class Loose(autograd.Function):
        def forward(self, x: Any, factor: float) -> Any:
            return {"result": x * factor}

    assert Loose()(leaf(), 3.0)["result"].asnumpy().tolist() == [3, 6, 9]


def test_forward_runs_here_and_unrecorded_and_backward_too() -> None:
    seen: list[Any] = []

    class Looks(Twice):
        def forward(self, x: Any) -> Any:
            seen.append((autograd.is_recording(), autograd.is_training(), threading.get_ident()))
            return super().forward(x)

        def backward(self, slope: Any) -> Any:
            seen.append((autograd.is_recording(), autograd.is_training()))
            return super().backward(slope)

    with autograd.record(train_mode=False):
        y = Looks()(leaf())
        assert autograd.is_recording()
    y.backward()
    nd.waitall()
    assert seen == [(False, False, threading.get_ident()), (False, True)]


def test_the_gradient_may_be_computed_by_recording_inside() -> None:
    class Square(autograd.Function):
        def forward(self, x: Any) -> Any:
            self.save_for_backward(x)
            return x * x

        def backward(self, slope: Any) -> Any:
            inner = self.saved_tensors[0] + 0.0
            inner.attach_grad()
            with autograd.record():
                y = inner * inner
            y.backward()
            assert inner.grad is not None
            return slope * inner.grad

    x = leaf()
    with autograd.record():
        with autograd.pause():
            assert Square()(x).node is None
        y = Square()(x)
    y.backward()
    assert gradient(x) == [2, 4, 6]


def test_waits_inside() -> None:
    class Waits(autograd.Function):
        def forward(self, x: Any) -> Any:
            y = x * 2.0
            nd.waitall()
            self.save_for_backward(x, y)
            return y

        def backward(self, slope: Any) -> Any:
            x, y = (array.asnumpy() for array in self.saved_tensors)
            found = nd.array(slope.asnumpy() * x * y)
            nd.waitall()
            return found

    x = leaf()
    with autograd.record():
        y = Waits()(Waits()(x))
    y.backward(x)
    assert gradient(x) == [16, 512, 3888]  # x * (2x * 4x) * (x * 2x)


def test_waiting_for_all_in_forward_waits_for_what_was_pushed_before() -> None:
    """It is the caller's own code, so it waits for all of the caller's work."""
    go = threading.Event()
    before = nd.empty((1,))
    seen: list[Any] = []

    class Waits(autograd.Function):
        def forward(self, x: Any) -> Any:
            go.set()
            nd.waitall()
            seen.append(before.storage.var.settled)
            return x * 2.0

    if nd.get().kind == "threaded":
        nd.push_sync(lambda: go.wait(30), writes=[before.storage.var])
    Waits()(leaf())
    assert seen == [True]


class Op(nd.CustomOp):
    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], Twice()(in_data[0]))
        nd.waitall()

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        self.assign(in_grad[0], req[0], Twice()(out_grad[0]))


@nd.register("CallsAFunction")
class Prop(nd.CustomOpProp):
    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> nd.CustomOp:
        return Op()


def test_in_and_around_custom_operators_and_itself() -> None:
    class Around(autograd.Function):
        def forward(self, x: Any) -> Any:
            return nd.custom(Twice()(x), op_type="CallsAFunction")

        def backward(self, slope: Any) -> Any:
            return Twice()(nd.custom(slope, op_type="CallsAFunction"))

    x = leaf()
    with autograd.record():
        y = Twice()(nd.custom(Around()(x), op_type="CallsAFunction"))
    y.backward()
    assert y.asnumpy().tolist() == [16, 32, 48]
    assert gradient(x) == [80, 80, 80]  # Twice 10, CallsAFunction 2, Around 4


def test_what_forward_raises_is_raised_at_once_and_recording_goes_on() -> None:
    class Bad(autograd.Function):
        def forward(self, x: Any) -> Any:
            raise ZeroDivisionError("at once")

    with autograd.record():
        with pytest.raises(ZeroDivisionError, match="at once"):
            Bad()(leaf())
        assert autograd.is_recording()
    assert nd.running_calls() == []
    nd.waitall()


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "raises": (lambda slope: 1 / 0, ZeroDivisionError, "division"),
    "one too few": (lambda slope: slope, nd.EngineError, "as many arrays as forward takes: 2, n"),
    "one too many": (lambda slope: (slope,) * 3, nd.EngineError, "takes: 2, not 3"),
    "None": (lambda slope: (slope, None), TypeError, "Bad.backward must return arrays, not NoneT"),
    "NumPy": (lambda slope: slope.asnumpy(), TypeError, "must return arrays, not ndarray"),
    "a wrong shape": (lambda slope: (slope, nd.ones((7,))), nd.ShapeError, "does not fit"),
}


@pytest.mark.parametrize("how", BAD)
def test_what_is_wrong_with_backward_raises_at_the_wait(how: str) -> None:
    wrong, kind, text = BAD[how]

    class Bad(autograd.Function):
        def forward(self, a: Any, b: Any) -> Any:
            return a * b

        def backward(self, slope: Any) -> Any:
            return wrong(slope)

    a, b = leaf(), leaf()
    with autograd.record():
        y = Bad()(a, b)
    y.backward()
    with pytest.raises(kind, match=text):
        b.grad.asnumpy()  # type: ignore[union-attr]
    nd.waitall()  # told once


def test_none_where_no_gradient_is_wanted() -> None:
    class Scale(autograd.Function):
        def forward(self, x: Any, factor: Any) -> Any:
            self.save_for_backward(factor)
            return x * factor

        def backward(self, slope: Any) -> Any:
            return [slope * self.saved_tensors[0], None]

    x = leaf()
    with autograd.record():
        y = Scale()(x, nd.array([4.0, 5.0, 6.0]))
    y.backward()
    assert gradient(x) == [4, 5, 6]


def test_without_a_backward_or_a_forward() -> None:
    class NoBackward(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x * 2.0

    x = leaf()
    with autograd.record():
        y = NoBackward()(x)
    y.backward()
    with pytest.raises(NotImplementedError, match="NoBackward has no backward"):
        gradient(x)
    with pytest.raises(NotImplementedError, match="Function has no forward"):
        autograd.Function()(x)


def test_one_object_is_one_call() -> None:
    function = Twice()
    function(leaf())
    with pytest.raises(nd.EngineError, match="this Twice was called before: make one per call"):
        function(leaf())


@pytest.mark.parametrize("where", ["leaf", "inner"])
def test_an_array_of_the_tape_cannot_be_an_output(where: str) -> None:
    class Same(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x

    x = leaf()
    with (
        autograd.record(),
        pytest.raises(nd.EngineError, match="returned an array that is on the tape: return a copy"),
    ):
        Same()(x if where == "leaf" else x * 2.0)


def test_recorded_it_takes_and_gives_arrays() -> None:
    class Numbers(autograd.Function):
        def forward(self, x: Any) -> Any:
            return nd.ones((3,)) if isinstance(x, float) else x.asnumpy()

    with autograd.record():
        with pytest.raises(TypeError, match="Numbers is called with arrays, not float"):
            Numbers()(3.0)
        with pytest.raises(TypeError, match=r"Numbers.forward must return arrays, not ndarray"):
            Numbers()(leaf())


def test_its_operators_are_gathered_with_those_around_it() -> None:
    x = leaf()
    with nd.bulk(16), autograd.record():
        y = Twice()(x + 1.0) * 3.0
    y.backward()
    assert y.asnumpy().tolist() == [12, 18, 24]
    assert gradient(x) == [30, 30, 30]


def test_a_call_is_told_of_as_one_of_a_custom_operator(heard: Any) -> None:
    x = leaf()
    with autograd.record():
        y = Twice()(x)
    y.backward()
    nd.waitall()
    calls = [fact for moment, _, fact in heard if moment == "call_began"]
    forward, backward = calls
    assert (forward.op.name, forward.op.kind) == ("Twice", "autograd.Function")
    assert forward.op.qualified == f"{__name__}.Twice"
    assert forward.op.file == __file__
    with open(__file__, encoding="utf-8") as source:
        assert source.readlines()[forward.op.line - 1].startswith("class Twice(")
    assert (forward.direction, forward.task, forward.forward) == ("forward", None, None)
    assert (backward.direction, backward.forward) == ("backward", forward)
    assert forward.op is backward.op
    began = [moment for moment, _, fact in heard if fact is forward]
    assert began == ["call_began", "body_began", "body_ended", "call_ended"]


def test_a_class_made_again_at_its_place_is_the_same_operator(heard: Any) -> None:
    def make(factor: float) -> autograd.Function:
        class Made(autograd.Function):
            def forward(self, x: Any) -> Any:
                return x * factor

        return Made()

    make(2.0)(leaf())
    make(3.0)(leaf())

    class Made(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x * 4.0

    Made()(leaf())
    ops = [fact.op for moment, _, fact in heard if moment == "call_began"]
    assert ops[0] is ops[1]
    assert ops[2].name == ops[0].name
    assert ops[2].qualified != ops[0].qualified


def test_numbers_are_shared_by_all_that_could_be_mistaken_for_each_other() -> None:
    name = f"somewhere.Shared{len(nd.registered())}"  # one that no run of this test had
    first = defined("Shared", name, "autograd.Function", autograd.Function, "a.py", 1)
    nd.register(name)(type("Props", (nd.CustomOpProp,), {}))
    third = defined("Shared", name, "autograd.Function", autograd.Function, "b.py", 1)
    (second,) = (info for info in nd.registered() if info.name == name)
    assert second.registration == first.registration + 1
    assert third.registration == first.registration + 2
    again = defined("Shared", name, "autograd.Function", autograd.Function, "a.py", 1)
    assert again is first


def test_an_output_that_was_saved_keeps_no_tape_alive() -> None:
    """Nothing is left to the collector, whether gradients were asked for or not."""

    class Saves(autograd.Function):
        def forward(self, x: Any) -> Any:
            y = x * 2.0
            self.save_for_backward(x, y)
            return y

        def backward(self, slope: Any) -> Any:
            x, y = self.saved_tensors
            return slope * x * y

    x = leaf()
    collects = gc.isenabled()
    gc.disable()
    try:
        for back in (True, False):
            function = Saves()
            alive = weakref.ref(function)
            with autograd.record():
                y = function(x)
            del function
            if back:
                y.backward()
                nd.waitall()
            else:
                assert alive() is not None
                del y
            assert alive() is None
    finally:
        if collects:
            gc.enable()
    assert gradient(x) == [2, 8, 18]
