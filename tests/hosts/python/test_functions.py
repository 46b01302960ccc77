"""Marked functions of every sort, and that they look like what they were."""

from __future__ import annotations

import inspect
import pickle
from functools import partial

import pytest
from tests.hosts.checks import Scene, parts

from opscope import UsageError, custom_op
from opscope.hosts.python.operators import Marked
from opscope.testing import assert_restored


@custom_op
def at_top(a: int, /, b: int = 2, *rest: int, key: str = "k") -> str:
    """What it says."""
    return f"{a}{b}{rest}{key}"


class Things:
    @custom_op
    def method(self, scene: Scene) -> Things:
        scene.tick(7)
        return self

    @custom_op
    @staticmethod
    def static(scene: Scene) -> str:
        scene.tick(7)
        return "static"

    @staticmethod
    @custom_op
    def static_outside(scene: Scene) -> str:
        scene.tick(7)
        return "static"

    @custom_op
    @classmethod
    def of_class(cls, scene: Scene) -> type:
        scene.tick(7)
        return cls

    @classmethod
    @custom_op
    def of_class_outside(cls, scene: Scene) -> type:
        scene.tick(7)
        return cls

    def __call__(self, scene: Scene) -> str:
        scene.tick(7)
        return "called"

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


THINGS = Things()


CASES = {
    "method": (lambda scene: THINGS.method(scene), THINGS, "Things.method"),
    "static": (lambda scene: Things.static(scene), "static", "Things.static"),
    "static outside": (
        lambda scene: THINGS.static_outside(scene),
        "static",
        "Things.static_outside",
    ),
    "class": (lambda scene: Things.of_class(scene), Things, "Things.of_class"),
    "class outside": (lambda scene: THINGS.of_class_outside(scene), Things, None),
    "partial": (custom_op(partial(lambda scene, n: scene.tick(n), n=7)), None, "<lambda>"),
    "bound": (custom_op(partial(Things.__call__, THINGS)), "called", "Things.__call__"),
    "object": (custom_op(THINGS), "called", "Things"),
    "lambda": (custom_op(lambda scene: scene.tick(7)), None, "<lambda>"),
    "builtin": (lambda scene: custom_op(sum)(scene.tick(n) or n for n in (7,)), 7, "sum"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_sort_of_function(case: str, scene: Scene) -> None:
    fn, answer, name = CASES[case]
    with scene:
        assert fn(scene) == answer
    (row,) = scene.calls()
    assert parts(row) == {"wall": 7, "python": 7}
    assert row.flags == ()
    assert name in (None, row.op)


def test_a_marked_function_looks_like_the_function() -> None:
    assert str(inspect.signature(at_top)).endswith(
        "b: 'int' = 2, *rest: 'int', key: 'str' = 'k') -> 'str'"
    )
    assert (at_top.__name__, at_top.__doc__) == ("at_top", "What it says.")
    assert pickle.loads(pickle.dumps(at_top)) is at_top
    assert at_top(1, 3, 4, key="x") == "13(4,)x"
    with pytest.raises(TypeError):
        at_top(b=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("thing", [Things, 3, None, b"bytes", property(lambda self: 1)])
def test_what_cannot_be_marked(thing: object) -> None:
    with pytest.raises(UsageError):
        custom_op(thing)  # type: ignore[call-overload]
    with pytest.raises(UsageError):
        custom_op("name")(thing)  # type: ignore[type-var]


def test_a_call_that_cannot_be_begun_just_runs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, recorder: object) -> int:
        raise KeyError("no room")

    with assert_restored(), scene.profile as run, monkeypatch.context() as patch:
        patch.setattr(Marked, "name_in", refuse)
        assert custom_op(lambda: 5)() == 5
    assert len(run.session.spans) == 0
    assert run.session.processes[0].broken == ("python: KeyError: 'no room'",)
