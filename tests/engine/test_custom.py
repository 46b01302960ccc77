"""Custom operators on a pool, on the workers, and inline: results, nesting, waiting, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine import autograd
from opscope.engine.threaded import ThreadedEngine

Forward = Callable[
    [nd.CustomOp, bool, list[str], list[nd.Array], list[nd.Array], list[nd.Array]], None
]


def define(
    name: str,
    forward: Any,
    backward: Any = None,
    need_top_grad: bool = True,
    arguments: tuple[str, ...] = ("data",),
    outputs: tuple[str, ...] = ("output",),
    states: tuple[str, ...] = (),
    infer_shape: Any = None,
) -> type[nd.CustomOpProp]:
    """Register an operator from plain functions `forward(op, is_train, req, ins, outs, aux)`."""

    class Op(nd.CustomOp):
        pass

    Op.forward = forward  # type: ignore[method-assign]
    if backward is not None:
        Op.backward = backward  # type: ignore[method-assign]

    class Prop(nd.CustomOpProp):
        def __init__(self, **params: str) -> None:
            super().__init__(need_top_grad)
            self.params = params

        def list_arguments(self) -> list[str]:
            return list(arguments)

        def list_outputs(self) -> list[str]:
            return list(outputs)

        def list_auxiliary_states(self) -> list[str]:
            return list(states)

        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> nd.CustomOp:
            op = Op()
            op.params, op.ctx = self.params, ctx  # type: ignore[attr-defined]
            return op

    if infer_shape is not None:
        Prop.infer_shape = infer_shape  # type: ignore[method-assign]
    elif states:
        Prop.infer_shape = lambda self, shapes: (
            shapes,
            [shapes[0]] * len(outputs),
            [shapes[0]] * len(states),
        )  # type: ignore[method-assign]
    return nd.register(name)(Prop)


def add_one(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
    op.assign(outs[0], req[0], ins[0] + 1)


def test_sub_operators_are_pushed_and_the_result_is_right(custom_kind: str) -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        x = ins[0]
        for _ in range(10):
            x = x + 1
        op.assign(outs[0], req[0], x)

    define("t_ten", forward)
    a = nd.zeros((2, 2))
    for n in range(1, 6):
        a = nd.custom(a, op_type="t_ten")
        b = a * 2
        assert b.asnumpy().tolist() == [[20 * n] * 2] * 2
    assert nd.Custom is nd.custom


def test_waiting_inside(custom_kind: str) -> None:
    seen = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        y = ins[0] * 3
        y.wait_to_read()
        value = y.asnumpy()
        nd.waitall()  # for what this call pushed, and not for this call
        seen.append(value.tolist())
        op.assign(outs[0], req[0], np.asarray(value) + 1)
        outs[0].wait_to_read()
        nd.waitall()

    define("t_waits", forward)
    result = nd.custom(nd.ones(2), op_type="t_waits")
    assert result.asnumpy().tolist() == [4, 4]
    assert seen == [[3, 3]]


def test_wait_all_inside_waits_for_what_nested_calls_pushed() -> None:
    nd.use(workers=2, custom_on="pool")
    order = []

    def inner(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        nd.push_sync(lambda: (time.sleep(0.02), order.append("stray")))  # no array holds it
        op.assign(outs[0], req[0], ins[0])

    def outer(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        nd.custom(ins[0], op_type="t_stray")
        nd.waitall()
        order.append("outer")
        op.assign(outs[0], req[0], ins[0])

    define("t_stray", inner)
    define("t_over_stray", outer)
    release = threading.Event()
    nd.push_sync(release.wait)  # somebody else's work goes on meanwhile
    nd.custom(nd.ones(1), op_type="t_over_stray").wait_to_read()
    assert order == ["stray", "outer"]
    release.set()
    nd.use()


def test_nested_and_recursive_three_deep(custom_kind: str) -> None:
    depths: list[int] = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        depth = int(op.params["depth"])
        x = ins[0] + 1
        if depth:
            x = nd.custom(x, op_type="t_recursive", depth=depth - 1)
            if depth == 2:
                x.wait_to_read()
        call = nd.running_calls()[-1] if custom_kind == "naive" else None
        levels = 0
        while call is not None:
            call, levels = call.outer, levels + 1
        depths.append(levels)
        op.assign(outs[0], req[0], x * 2)

    define("t_recursive", forward)
    result = nd.custom(nd.zeros(1), op_type="t_recursive", depth=3)
    assert result.asscalar() == (0 + 4) * 2**4
    if custom_kind == "naive":
        assert depths == [4, 3, 2, 1]
    assert nd.running_calls() == []


def test_sixty_four_blocking_calls_meet_and_the_threads_leave() -> None:
    for where in ("pool", "workers"):
        engine = nd.use(workers=2, custom_on=where, idle_s=0.05)
        assert isinstance(engine, ThreadedEngine)
        meet = threading.Barrier(64)

        def forward(
            op: Any,
            is_train: Any,
            req: Any,
            ins: Any,
            outs: Any,
            aux: Any,
            meet: threading.Barrier = meet,
        ) -> None:
            meet.wait(50)
            (ins[0] + 1).wait_to_read()
            meet.wait(50)
            op.assign(outs[0], req[0], ins[0] + 1)

        define("t_meet", forward)
        a = nd.ones(2)
        results = [nd.custom(a, op_type="t_meet") for _ in range(64)]
        assert all(result.asnumpy().tolist() == [2, 2] for result in results)
        pool = engine._bodies if where == "pool" else engine._ops
        deadline = time.monotonic() + 30
        while len(pool.members) > pool.core:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert nd.custom(a, op_type="t_ten_or_one", n=1) is not None
        nd.waitall()
        assert engine._ops.blocked == 0
    nd.use()


define("t_ten_or_one", add_one)


def test_two_hundred_in_flight(custom_kind: str) -> None:
    define("t_plain", add_one)
    results = [nd.custom(nd.full(2, n), op_type="t_plain") for n in range(200)]
    nd.waitall()
    assert [result[0].asscalar() for result in results] == [n + 1 for n in range(200)]


def test_chain_of_calls_and_later_writes_keep_their_order(custom_kind: str) -> None:
    def slow_reader(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        source = ins[0]

        def late() -> None:
            time.sleep(0.005)

        # A sub-operator that only reads the input, and ends after the body.
        nd.push_sync(late, (source.storage.var,))
        kept = source * 1
        op.assign(outs[0], req[0], kept)

    define("t_slow_reader", slow_reader)
    a = nd.zeros(3)
    results = []
    for n in range(10):
        a[:] = n
        results.append(nd.custom(a, op_type="t_slow_reader"))
    assert [result[0].asscalar() for result in results] == list(range(10))


def test_the_outer_task_waits_for_readers_of_its_inputs() -> None:
    nd.use(workers=2)
    go, order = threading.Event(), []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        nd.push_sync(lambda: (go.wait(), order.append("sub")), (ins[0].storage.var,))
        op.assign(outs[0], req[0], 1)

    define("t_late_reader", forward)
    a = nd.ones(1)
    nd.custom(a, op_type="t_late_reader")
    nd.push_sync(lambda: order.append("write"), (), (a.storage.var,))
    threading.Timer(0.02, go.set).start()
    nd.waitall()
    assert order == ["sub", "write"]
    nd.use()


class Oops(Exception):
    pass


def fails_at(place: str) -> Any:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        if place == "python":
            raise Oops("in the body")
        if place == "push":
            nd.dot(ins[0], nd.ones((7, 7)))
        bad = nd.random.normal(0, -1, shape=ins[0].shape)
        if place == "wait":
            bad.wait_to_read()
        op.assign(outs[0], req[0], ins[0] + bad)

    return forward


@pytest.mark.parametrize(
    ("place", "kind"),
    [("python", Oops), ("push", nd.ShapeError), ("wait", ValueError), ("no wait", ValueError)],
)
def test_errors_at_four_places_raise_at_the_wait_outside(
    custom_kind: str, place: str, kind: type[Exception]
) -> None:
    define("t_fails", fails_at(place))
    for wait in ("asnumpy", "wait_to_read"):
        result = nd.custom(nd.ones((2, 2)), op_type="t_fails") * 2
        with pytest.raises(kind):
            getattr(result, wait)()
        nd.waitall()
    nd.custom(nd.ones((2, 2)), op_type="t_fails")
    with pytest.raises(kind):
        nd.waitall()
    nd.waitall()
    assert nd.running_calls() == []


def test_errors_three_deep_and_a_body_that_forgives(custom_kind: str) -> None:
    define("t_fails", fails_at("python"))

    def middle(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        op.assign(outs[0], req[0], nd.custom(ins[0], op_type="t_fails"))

    def forgiving(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        try:
            nd.custom(ins[0], op_type="t_middle").wait_to_read()
        except Oops:
            op.assign(outs[0], req[0], 42)

    define("t_middle", middle)
    define("t_forgiving", forgiving)
    with pytest.raises(Oops):
        nd.custom(nd.ones(1), op_type="t_middle").asnumpy()
    assert nd.custom(nd.ones(1), op_type="t_forgiving").asscalar() == 42
    nd.waitall()


def test_a_body_may_wait_for_what_was_queued_behind_it() -> None:
    nd.use(workers=1, custom_on="workers")
    go, event = threading.Event(), threading.Event()

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        event.wait()
        op.assign(outs[0], req[0], 1)

    define("t_behind", forward)
    a = nd.empty(1)
    nd.push_sync(go.wait)
    result = nd.custom(a, op_type="t_behind")
    nd.push_sync(event.set)
    go.set()
    assert result.asscalar() == 1
    nd.use()


def test_a_body_that_raises_still_waits_for_what_it_pushed() -> None:
    nd.use(workers=2)
    go, order = threading.Event(), []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        nd.push_sync(lambda: (go.wait(), order.append("sub")), (), (outs[0].storage.var,))
        raise Oops

    define("t_raises_late", forward)
    result = nd.custom(nd.ones(1), op_type="t_raises_late")
    threading.Timer(0.02, go.set).start()
    with pytest.raises(Oops):
        result.wait_to_read()
    assert order == ["sub"]
    nd.use()


def test_wait_all_inside_raises_only_what_this_call_pushed(custom_kind: str) -> None:
    seen: list[str] = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        nd.waitall()
        seen.append("not ours")
        nd.random.normal(0, -1)
        try:
            nd.waitall()
        except ValueError:
            seen.append("ours")
        op.assign(outs[0], req[0], ins[0])

    define("t_own_errors", forward)
    nd.push_sync(lambda: 1 / 0)
    result = nd.custom(nd.ones(1), op_type="t_own_errors")
    result.wait_to_read()
    assert seen == ["not ours", "ours"]
    with pytest.raises(ZeroDivisionError):
        nd.waitall()
    nd.waitall()


def test_base_exceptions_of_a_body() -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        raise KeyboardInterrupt

    define("t_interrupted", forward)
    a = nd.ones(1)
    nd.use(workers=1)
    result = nd.custom(a, op_type="t_interrupted")
    with pytest.raises(KeyboardInterrupt):
        result.wait_to_read()
    nd.use("naive")
    with pytest.raises(KeyboardInterrupt):
        nd.custom(a, op_type="t_interrupted")
    nd.waitall()
    assert nd.running_calls() == []
    assert (a + 1).asscalar() == 2
    nd.use()


def test_gradient_through_a_custom_operator(custom_kind: str) -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        assert is_train is autograd.is_training() is True
        assert not autograd.is_recording()
        op.assign(outs[0], req[0], nd.sigmoid(ins[0]))

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        y = outs[0]
        op.assign(in_grads[0], req[0], grads[0] * y * (1 - y))

    define("t_sigmoid", forward, backward)
    values = np.array([[0.5, -1.0], [2.0, 0.0]])
    x, other = nd.array(values), nd.array(values)
    x.attach_grad()
    other.attach_grad()
    for _ in range(2):
        with autograd.record():
            y = (nd.custom(x * 2, op_type="t_sigmoid") * 3 + x).sum()
            z = (nd.sigmoid(other * 2) * 3 + other).sum()
        autograd.backward([y, z])
        np.testing.assert_allclose(x.grad.asnumpy(), other.grad.asnumpy(), rtol=1e-12)


def test_loss_without_gradient_from_above_and_null_requests(custom_kind: str) -> None:
    requests: list[list[str]] = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        op.assign(outs[0], req[0], ins[0])

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        assert grads[0].asnumpy().tolist() == [0, 0]  # not needed, not computed
        requests.append(list(req))
        op.assign(in_grads[0], req[0], outs[0] - ins[1])
        op.assign(in_grads[1], req[1], 99)

    define("t_loss", forward, backward, need_top_grad=False, arguments=("data", "label"))
    x, label = nd.array([3.0, 5.0]), nd.array([1.0, 1.0])
    x.attach_grad()
    with autograd.record():
        y = nd.custom(label=label, data=x, op_type="t_loss")
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]
    assert requests == [["write", "null"]]
    assert label.asnumpy().tolist() == [1, 1]


def test_states_written_in_forward_are_seen_in_backward(custom_kind: str) -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        aux[0][:] = ins[0] * 10
        op.assign(outs[0], req[0], ins[0])

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        op.assign(in_grads[0], req[0], grads[0] * aux[0])
        in_grads[0].wait_to_read()
        time.sleep(0.01)
        op.assign(aux[0], "add", 1)

    define("t_state", forward, backward, states=("moving",))
    x, state = nd.array([1.0, 2.0]), nd.zeros(2)
    x.attach_grad()
    with autograd.record():
        y = nd.custom(x, state, op_type="t_state")
    assert state.asnumpy().tolist() == [10, 20]
    y.backward()
    assert state.asnumpy().tolist() == [11, 21]
    assert x.grad.asnumpy().tolist() == [10, 20]


def test_backward_sees_only_what_it_declared(custom_kind: str) -> None:
    seen: list[list[float]] = []

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        seen.append([part[0].asscalar() for part in (grads, ins, outs)])
        op.assign(in_grads[0], req[0], 1)

    prop = define("t_declares", add_one, backward)
    x = nd.array([5.0])
    x.attach_grad()
    for part in range(3):
        prop.declare_backward_dependency = (  # type: ignore[method-assign]
            lambda self, *parts, part=part: parts[part]
        )
        with autograd.record():
            y = nd.custom(x, op_type="t_declares")
        y.backward(nd.array([7.0]))
        nd.waitall()
    assert seen == [[7, 0, 0], [0, 5, 0], [0, 0, 6]]


def test_several_outputs_and_unused_ones(custom_kind: str) -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        op.assign(outs[0], req[0], ins[0] + ins[1])
        op.assign(outs[1], req[1], ins[0] - ins[1])

    def backward(
        op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any
    ) -> None:
        op.assign(in_grads[0], req[0], grads[0] + grads[1])
        op.assign(in_grads[1], req[1], grads[0] - grads[1])

    define("t_two", forward, backward, arguments=("a", "b"), outputs=("sum", "difference"))
    a, b = nd.array([5.0]), nd.array([2.0])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        first, second = nd.custom(a, b, op_type="t_two")
        y = second * 3
    y.backward()
    assert (first.asscalar(), second.asscalar()) == (7, 3)
    assert (a.grad.asscalar(), b.grad.asscalar()) == (3, -3)
    same = nd.custom(a, a, op_type="t_two")  # one array twice
    assert (same[0].asscalar(), same[1].asscalar()) == (10, 0)


def test_no_inputs_and_parameters_arrive_as_strings(custom_kind: str) -> None:
    seen: list[dict[str, str]] = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        seen.append(op.params)
        op.assign(outs[0], req[0], float(op.params["value"]))

    define(
        "t_source",
        forward,
        arguments=(),
        infer_shape=lambda self, shapes: ([], [tuple(eval(self.params["shape"]))]),
    )
    result = nd.custom(op_type="t_source", value=2.5, shape=(2, 1), flag=True, none=None)
    assert result.asnumpy().tolist() == [[2.5], [2.5]]
    assert seen == [{"value": "2.5", "shape": "(2, 1)", "flag": "True", "none": "None"}]


def test_assign_requests() -> None:
    op, a = nd.CustomOp(), nd.ones(2)
    op.assign(a, "null", 5)
    op.assign(a, "add", nd.ones(2))
    assert a.asnumpy().tolist() == [2, 2]
    op.assign(a, "inplace", np.array([7, 8]))
    assert a.asnumpy().tolist() == [7, 8]
    with pytest.raises(ValueError, match="req"):
        op.assign(a, "maybe", 0)


@pytest.mark.parametrize(
    "name",
    [
        "Custom",
        "A::B",
        'say "x"\\',
        "nul\0",
        "line\nbreak",
        "\ud800",
        "x" * 300,
        "DeleteVariable",
        "🦔",
    ],
)
def test_any_name_works(custom_kind: str, name: str) -> None:
    define(name, add_one)
    assert nd.custom(nd.ones(1), op_type=name).asscalar() == 2


def test_registration() -> None:
    for wrong in ("", 3, None):
        with pytest.raises(nd.RegistrationError):
            nd.register(wrong)  # type: ignore[arg-type]
    with pytest.raises(nd.RegistrationError, match="CustomOpProp"):
        nd.register("t_wrong")(int)  # type: ignore[type-var]
    with pytest.raises(nd.RegistrationError, match="t_nonesuch"):
        nd.custom(nd.ones(1), op_type="t_nonesuch")
    calls: list[nd.Call] = []
    nd.hooks.add("call_began", calls.append)
    try:
        for n in (1, 2, 3):

            def forward(
                op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any, n: int = n
            ) -> None:
                op.assign(outs[0], req[0], n)

            prop = define("t_again", forward)
            assert nd.custom(nd.ones(1), op_type="t_again").asscalar() == n
            assert calls[-1].op.registration == n
            assert calls[-1].op.prop is prop
    finally:
        nd.hooks.remove("call_began", calls.append)
    info = next(info for info in nd.registered() if info.name == "t_again")
    assert info.registration == 3
    assert info.file == __file__
    assert info.line > 0


def test_wrong_arrays_shapes_and_props_raise_at_once() -> None:
    define("t_plain", add_one)
    define("t_pair", add_one, arguments=("a", "b"))
    define("t_shape", add_one, infer_shape=lambda self, shapes: ([(9,)], [(9,)], []))
    define("t_count", add_one, infer_shape=lambda self, shapes: (shapes, [], []))
    a = nd.ones(2)
    for wrong, match in (
        (lambda: nd.custom(op_type="t_plain"), "takes 1"),
        (lambda: nd.custom(a, a, op_type="t_plain"), "takes 1"),
        (lambda: nd.custom(a, c=a, op_type="t_pair"), "no input 'c'"),
        (lambda: nd.custom(a, a=a, op_type="t_pair"), "twice"),
        (lambda: nd.custom(a, op_type="t_shape"), "wants shape"),
        (lambda: nd.custom(a, op_type="t_count"), "outputs"),
    ):
        with pytest.raises(nd.EngineError, match=match):
            wrong()
    with pytest.raises(TypeError):
        nd.custom(np.ones(2), op_type="t_plain")  # type: ignore[arg-type]

    @nd.register("t_bare")
    class Bare(nd.CustomOpProp):
        pass

    with pytest.raises(NotImplementedError, match="Bare"):
        nd.custom(a, op_type="t_bare")
    nd.waitall()


def test_bulk_inside_a_body_and_around_calls(custom_kind: str) -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        x = ins[0] * 1
        with nd.bulk(4):
            for _ in range(10):
                x += 1
            nd.waitall()
            x += 1
        op.assign(outs[0], req[0], x)

    define("t_bulk", forward)
    with nd.bulk(8):
        a = nd.zeros(1) + 5
        a = nd.custom(a, op_type="t_bulk")
        a = nd.custom(a + 1, op_type="t_bulk")
    assert a.asscalar() == 5 + 11 + 1 + 11


def test_an_engine_cannot_be_stopped_by_what_it_runs(custom_kind: str) -> None:
    seen: list[str] = []

    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        for act in (nd.use, nd.get().stop):
            try:
                act()
            except nd.EngineError as error:
                seen.append(str(error))
                continue
            nd.get().start()
        op.assign(outs[0], req[0], ins[0])

    define("t_stops", forward)
    nd.custom(nd.ones(1), op_type="t_stops").wait_to_read()
    assert len(seen) == (1 if custom_kind == "naive" else 2)


def test_stress_of_nested_calls_equals_the_naive_result() -> None:
    def forward(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        depth = int(op.params["depth"])
        x = ins[0]
        for n in range(3):
            x = x * 0.5 + n
        if depth:
            x = x + nd.custom(x, op_type="t_stress", depth=depth - 1)
        if depth == 1:
            x.wait_to_read()
        op.assign(outs[0], req[0], x)

    define("t_stress", forward)

    def work() -> list[float]:
        arrays = [nd.full(3, float(n), "float64") for n in range(8)]
        for n in range(60):
            arrays[n % 8] = nd.custom(arrays[(n * 3) % 8], op_type="t_stress", depth=n % 3)
            arrays[(n + 1) % 8] += arrays[n % 8]
            arrays[(n + 1) % 8] /= 2
        return [array.asnumpy().tolist() for array in arrays]

    results = []
    for settings in (
        {"kind": "naive"},
        {"workers": 1},
        {"workers": 3},
        {"workers": 1, "custom_on": "workers"},
        {"workers": 3, "custom_on": "workers"},
    ):
        nd.use(**settings)  # type: ignore[arg-type]
        results.append(work())
    nd.use()
    assert all(result == results[0] for result in results)
