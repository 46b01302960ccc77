"""Names: any text that is not empty, and what makes two operators one or two."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.hosts.checks import Scene, check, parts

from opscope import UsageError, custom_op, load, summary
from opscope.profiler import profile

ODD = {
    "mxnet's own": "Custom",
    "looks like a path": "A::B",
    "looks like a slice": "A::pure_python",
    "looks backward": "_backward_G",
    "quotes": '"it\'s"`',
    "newline": "a\nb\r\t",
    "nul": "a\0b",
    "emoji": "👩‍🔬🧪",
    "surrogate": "half \ud83d of one",
    "long": "x" * 300,
    "space": " ",
    "key of another": "python:A#1",
}


@pytest.mark.parametrize("name", ["", 3, None, b"x", ["x"]])
def test_no_name(name: object) -> None:
    with pytest.raises(UsageError):
        custom_op(name)  # type: ignore[call-overload]


@pytest.mark.parametrize("case", ODD)
def test_any_text_is_a_name(case: str, scene: Scene) -> None:
    name = ODD[case]
    inner = custom_op(name)(lambda: scene.tick(3))
    with scene, custom_op(name):
        inner()
    assert [row.path for row in scene.calls(name)] == [(name,), (name, name)]
    assert {row["key"] for row in scene.profile.summary()} == {
        f"python:{name}#1",
        f"python:{name}#2",
    }
    assert [parts(row).get("python", 0) for row in scene.calls()] == [0, 3]


@pytest.mark.parametrize("case", ODD)
def test_any_name_survives_the_file_and_the_table(
    case: str, tmp_path: object, scene: Scene
) -> None:
    path = f"{tmp_path}/run.opscope"
    with profile(output=path) as recorded, custom_op(ODD[case]):
        pass
    session = load(path)
    check(session)
    assert [row["op"] for row in summary(session)] == [ODD[case]]
    assert str(recorded)


def test_equal_in_the_first_127_bytes(scene: Scene) -> None:
    stem = "n" * 127
    with scene:
        for end in ("a", "b"):
            with custom_op(stem + end):
                scene.tick(1)
    assert [row.op for row in scene.calls()] == [stem + "a", stem + "b"]
    assert len({row.key for row in scene.calls()}) == 2


def keys(scene: Scene, *functions: Callable[[], object]) -> list[str | None]:
    with scene:
        for function in functions:
            function()
    return [row.key for row in scene.calls()]


def test_two_functions_of_one_name_are_two_operators(scene: Scene) -> None:
    def one() -> None: ...
    def two() -> None: ...

    two.__qualname__ = one.__qualname__
    named, unnamed = custom_op("twins"), custom_op
    found = keys(scene, named(one), named(two), unnamed(one), unnamed(two), named(one))
    assert len(set(found)) == 4
    assert found[0] == found[-1]


def test_equal_code_in_two_files_is_two_operators(scene: Scene) -> None:
    made = []
    for file in ("a.py", "b.py"):
        space: dict[str, Callable[[], object]] = {}
        exec(compile("def f(): pass", file, "exec"), space)
        made.append(custom_op("equal code")(space["f"]))
    assert len(set(keys(scene, *made))) == 2
    assert [op.file for op in scene.session.ops] == ["a.py", "b.py"]


def test_two_builtins_of_one_name_are_two_operators(scene: Scene) -> None:
    named = custom_op("built in")
    found = keys(scene, partial(named(len), ()), partial(named(sum), ()), partial(named(len), ""))
    assert found[0] == found[2] != found[1]


class Constant:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self) -> int:
        return self.number


def test_the_same_code_again_is_one_operator(scene: Scene) -> None:
    closures = [custom_op(lambda n=n: n) for n in range(3)]
    partials = [custom_op(partial(Constant.__call__, Constant(n))) for n in range(3)]
    objects = [custom_op("object")(Constant(n)) for n in range(3)]
    found = keys(scene, *closures, *partials, *objects)
    assert [len(set(found[n : n + 3])) for n in (0, 3, 6)] == [1, 1, 1]
    assert len(set(found)) == 3


def test_display_names_leave_out_the_way_to_a_local_function(scene: Scene) -> None:
    class Local:
        @custom_op
        def method(self) -> None: ...

    keys(scene, Local().method)
    (op,) = scene.session.ops
    assert op.name == "Local.method"
    assert "<locals>" in op.qualified
    assert op.file == __file__
