"""Custom operators: what a prop says wrongly is told at the call, by operator and method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import engine as nd
from opscope.engine import autograd

from .test_custom import add_one, define


def oops(*_: Any) -> Any:
    raise KeyError("lost")


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (oops, "raised KeyError: 'lost'"),
        (lambda self, s: None, "2 or 3 lists .*, not None"),
        (lambda self, s: (s,), "2 or 3 lists"),
        (lambda self, s: (s, s, s, s), "2 or 3 lists"),
        (lambda self, s: (s, 3, s), "a list for the outputs, not 3"),
        (lambda self, s: (s, s), "gave 0 for the auxiliary states, and there are 1"),
        (lambda self, s: (s, [], s), "gave 0 for the outputs, and there are 1"),
        (lambda self, s: ([], s, s), "gave 0 for the inputs, and there are 1"),
        (lambda self, s: (s, s * 2, s), "gave 2 for the outputs"),
    ],
)
@pytest.mark.parametrize("method", ["infer_shape", "infer_type"])
def test_counts_kinds_and_raising(any_kind: str, method: str, answer: Any, match: str) -> None:
    prop = define("i_wrong", add_one, states=("state",))
    setattr(prop, method, answer)
    kind = nd.ShapeError if method == "infer_shape" else nd.EngineError
    with pytest.raises(kind, match=f"{method} of 'i_wrong' (must give )?.*{match}") as caught:
        nd.custom(nd.ones(2), nd.ones(2), op_type="i_wrong")
    if answer is oops:
        assert isinstance(caught.value.__cause__, KeyError)
    nd.waitall()


@pytest.mark.parametrize(
    ("method", "answer", "match"),
    [
        ("infer_shape", lambda self, s: (s, ["ab"]), "shape holds ints"),
        ("infer_shape", lambda self, s: (s, [(2, -1)]), "cannot hold -1"),
        ("infer_shape", lambda self, s: (s, [None]), "None"),
        ("infer_shape", lambda self, s: ([(9,)], s), r"wants shape \(9,\) for the input 'data'"),
        ("infer_type", lambda self, t: (t, ["noise"]), "noise"),
        ("infer_type", lambda self, t: (t, [None]), "None is no type"),
        ("infer_type", lambda self, t: (t, [np.complex64]), "numbers, not complex64"),
        ("infer_type", lambda self, t: ([np.int8], t), "wants type int8 for the input 'data'"),
    ],
)
def test_values(method: str, answer: Any, match: str) -> None:
    setattr(define("i_values", add_one), method, answer)
    with pytest.raises(nd.EngineError, match=f"{method} of 'i_values' .*{match}"):
        nd.custom(nd.ones(2), op_type="i_values")


def test_states_are_checked_too() -> None:
    define("i_state", add_one, states=("state",))
    for state, match in (
        (
            nd.ones(3),
            r"infer_shape of 'i_state' wants shape \(2,\) for the auxiliary state 'state'",
        ),
        (nd.ones(2, "int8"), "infer_type of 'i_state' wants type float32"),
    ):
        with pytest.raises(nd.EngineError, match=match):
            nd.custom(nd.ones(2), state, op_type="i_state")


@pytest.mark.parametrize("method", ["list_arguments", "list_outputs", "list_auxiliary_states"])
@pytest.mark.parametrize("answer", [None, "data", [3]])
def test_names(method: str, answer: Any) -> None:
    setattr(define("i_names", add_one), method, lambda self: answer)
    with pytest.raises(nd.EngineError, match=f"{method} of 'i_names' must give a list of names"):
        nd.custom(nd.ones(2), op_type="i_names")


@pytest.mark.parametrize("answer", [None, 3, [0, 7], [-1], "0", ["0"], [[0]]])
def test_dependencies(any_kind: str, answer: Any) -> None:
    ran: list[int] = []
    prop = define("i_needs", lambda *args: ran.append(1))
    prop.declare_backward_dependency = lambda self, *parts: answer  # type: ignore[method-assign]
    x = nd.ones(2)
    x.attach_grad()
    with (
        autograd.record(),
        pytest.raises(nd.EngineError, match="declare_backward_dependency of 'i_needs'"),
    ):
        nd.custom(x, op_type="i_needs")
    nd.waitall()
    assert ran == []  # told before anything is pushed


def test_what_the_prop_was_asked() -> None:
    asked: list[Any] = []
    prop = define("i_asked", add_one, arguments=("a", "b"))

    def note(answer: Any) -> Any:
        return lambda self, *args: asked.append(args) or answer(*args)

    prop.infer_shape = note(lambda s: (s, [s[0]], []))  # type: ignore[method-assign]
    prop.infer_type = note(lambda t: (tuple(t), (t[1],), ()))  # type: ignore[method-assign]
    prop.declare_backward_dependency = note(lambda g, i, o: [*g, *i, *o])  # type: ignore[method-assign]
    a, b = nd.ones((2, 1)), nd.ones((2, 1), "float64")
    a.attach_grad()
    with autograd.record():
        result = nd.custom(a, b, op_type="i_asked")
    assert asked == [
        ([[2, 1], [2, 1]],),
        ([np.float32, np.float64],),
        ([0], [1, 2], [3]),
    ]
    assert result.dtype == np.float64
