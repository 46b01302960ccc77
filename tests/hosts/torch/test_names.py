"""What an operator is does not hang on its name, and what it is called survives everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.torch.ops import (
    SPACE,
    UNARY,
    custom,
    entry,
    fresh,
    library,
    negative,
    owned,
    record,
    rows,
    torch,
)

import opscope
from opscope.analyse import span_records

HERE = Path(__file__).name


def function(name: str) -> Any:
    body = {
        "__module__": __name__,
        "forward": staticmethod(lambda ctx, x: torch.neg(x)),
        "backward": staticmethod(lambda ctx, slope: torch.cos(slope)),
    }
    return type(name, (torch.autograd.Function,), body)


# --- what only has the name -----------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["record_function", "fast"])
@pytest.mark.parametrize("grad", [False, True])
def test_an_annotation_with_the_name_of_a_function_is_no_call(mark: str, grad: bool) -> None:
    cls = function(fresh("Same").replace(":", "_"))
    name = cls.__name__
    make = (
        torch.profiler.record_function
        if mark == "record_function"
        else torch._C._profiler._RecordFunctionFast
    )
    x = torch.ones(3, requires_grad=grad)

    def program() -> None:
        with make(name):
            torch.exp(x)
            with make(name):
                y = cls.apply(x)
            with make(f"{name}Backward"):
                torch.tan(x)
        with make(name):
            torch.tanh(x)
        if grad:
            y.sum().backward()

    session = record(program)
    (forward,) = rows(session, name, "forward")
    assert owned(session, forward) == {"aten::neg": 1}
    backward = rows(session, name, "backward")
    assert len(backward) == (1 if grad else 0)
    for row in backward:
        assert owned(session, row)["aten::cos"] == 1
        assert row.forward_call == forward.call
    assert not rows(session, name, "none")
    marks = [r for r in span_records(session) if r["name"] == name and r["kind"] != "call"]
    assert len(marks) == 3
    assert {r["owner"] for r in marks} == {None}
    if mark == "record_function":
        assert {r["kind"] for r in marks} == {"range"}


@pytest.mark.parametrize("mark", ["record_function", "fast"])
def test_an_annotation_inside_the_function_is_part_of_it(mark: str) -> None:
    made = {
        "record_function": torch.profiler.record_function,
        "fast": torch._C._profiler._RecordFunctionFast,
    }[mark]
    name = fresh("Marked").replace(":", "_")

    def forward(ctx: Any, x: Any) -> Any:
        with made(name):
            return torch.neg(x)

    cls = type(
        name,
        (torch.autograd.Function,),
        {"__module__": __name__, "forward": staticmethod(forward)},
    )
    session = record(lambda: cls.apply(torch.ones(3, requires_grad=True)))
    (row,) = rows(session, name)
    assert owned(session, row)["aten::neg"] == 1
    assert sum(r["name"] == name and r["kind"] != "call" for r in span_records(session)) == 1


def test_an_annotation_with_the_name_of_an_operator_is_no_call() -> None:
    hooked, unhooked = custom("named", negative), library("named", negative)
    x = torch.ones(3)

    def program() -> None:
        for op in (hooked, unhooked):
            with torch.profiler.record_function(op._qualname):
                op(x)
            with torch._C._profiler._RecordFunctionFast(hooked._qualname):
                torch.exp(x)

    session = record(program)
    for op in (hooked, unhooked):
        (row,) = rows(session, op)
        assert owned(session, row) == {"aten::neg": 1}


# --- names ----------------------------------------------------------------------------------------

NAMES = {
    "quotes": "Quo\"ted'\\",
    "newline": "New\nline\ttab",
    "emoji": "Gauß🦊\u202eabc",
    "colons": "A::B::pure_python",
    "path": "_backward_MyOp",
    "long": "Long" + "x" * 296,
    "markup": "[red]<b>&amp;{0}%s",
    "Custom": "Custom",
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_survives(kind: str, tmp_path: Path) -> None:
    name = NAMES[kind]
    cls, x = function(name), torch.ones(3, requires_grad=True)
    file = tmp_path / "names.opscope"

    def program() -> None:
        with torch.profiler.record_function(f"range of {name}"):
            cls.apply(x).sum().backward()

    with opscope.profile(output=file) as run:
        program()
    for session in (run.session, opscope.load(file)):
        (forward,), (backward,) = rows(session, name, "forward"), rows(session, name, "backward")
        assert forward.path == (name,)
        assert backward.forward_call == forward.call
        assert owned(session, forward) == {"aten::neg": 1}
        assert f"range of {name}" in session.names
    assert {row["op"] for row in run.summary()} == {name}
    assert sum(row["calls"] for row in run.summary()) == 2
    table = str(run)
    assert "\n" not in name or name not in table
    assert name[:3] in table

    jsonl, chrome = tmp_path / "spans.jsonl", tmp_path / "trace.json"
    opscope.export(run.session, jsonl)
    opscope.export(run.session, chrome)
    lines = [json.loads(line) for line in jsonl.read_text("utf-8").splitlines()]
    assert sum(line["kind"] == "call" and line["name"] == name for line in lines) == 2
    assert sum(line["name"] == f"range of {name}" for line in lines) == 1
    slices = json.loads(chrome.read_text("utf-8"))["traceEvents"]
    shown = [s["args"] for s in slices if s.get("args", {}).get("kind") == "call"]
    assert [args["op"] for args in shown] == [name, name]


def test_an_operator_with_a_long_name() -> None:
    op = custom("l" * 300, negative)
    (row,) = rows(record(lambda: op(torch.ones(3))), op)
    assert row.op == op._qualname
    assert len(row.op) > 300


# --- kinds and places -----------------------------------------------------------------------------


def line_of(function: Any) -> int:
    line: int = function.__code__.co_firstlineno
    return line


def kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.neg(x)


def test_where_a_custom_op_is() -> None:
    op = torch.library.custom_op(fresh("placed"), kernel, mutates_args=(), schema=UNARY)
    found = entry(record(lambda: op(torch.ones(3))), op._qualname)
    assert (found.kind, Path(found.file).name) == ("custom_op", HERE)
    assert found.line == line_of(kernel)
    assert not found.native


@pytest.mark.skipif(not hasattr(torch.library, "triton_op"), reason="this torch has no `triton_op`")
@pytest.mark.filterwarnings("ignore")
def test_where_a_triton_op_is() -> None:
    op = torch.library.triton_op(fresh("placed"), kernel, mutates_args=())
    session = record(lambda: op(torch.ones(3)))
    found = entry(session, op._qualname)
    assert (found.kind, Path(found.file).name) == ("triton_op", HERE)
    assert found.line == line_of(kernel)
    assert owned(session, rows(session, op)[0]) == {"aten::neg": 1}


def test_where_a_function_is() -> None:
    cls = function("Placed")
    found = entry(record(lambda: cls.apply(torch.ones(3))), "Placed")
    assert (found.kind, Path(found.file).name) == ("autograd.Function", HERE)
    assert found.line == line_of(cls.__dict__["forward"].__func__)
    assert found.qualified == f"{__name__}.Placed"


@pytest.mark.parametrize("key", ["CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"])
def test_where_a_kernel_of_a_library_is(key: str) -> None:
    op = library("placed", negative, key=key)
    session = record(lambda: op(torch.ones(3)))
    found = entry(session, op._qualname)
    assert found.kind == "torch.library"
    assert not found.native
    assert Path(found.file).name == "ops.py"  # where `impl` was called
    (row,) = rows(session, op)
    assert owned(session, row) == {"aten::neg": 1}
    assert (row.python_ns, row.wait_ns, row.native_ns) == (None, None, None)
    assert row.untracked_ns is not None
    assert row.untracked_ns + (row.sub_ns or 0) == row.wall_ns


def test_where_a_kernel_given_to_torch_library_impl_is() -> None:
    name = fresh("functional")
    torch.library.define(name, UNARY)

    @torch.library.impl(name, "cpu")
    def kernel(x: Any) -> Any:
        return torch.neg(x)

    packet = getattr(getattr(torch.ops, SPACE), name.partition("::")[2])
    session = record(lambda: packet(torch.ones(3)))
    found = entry(session, name)
    assert (found.kind, found.native) == ("torch.library", False)
    (row,) = rows(session, name)
    assert owned(session, row) == {"aten::neg": 1}
    assert row.untracked_ns is not None


def test_overloads_of_a_library_are_one_operator_by_name() -> None:
    bare = fresh("overloaded").partition("::")[2]
    lib = torch.library.Library(SPACE, "FRAGMENT")
    lib.define(f"{bare}(Tensor x) -> Tensor")
    lib.define(f"{bare}.twice(Tensor x, Tensor y) -> Tensor")
    lib.impl(bare, negative, "CPU")
    lib.impl(f"{bare}.twice", lambda x, y: torch.neg(torch.neg(x)), "CPU")
    packet = getattr(getattr(torch.ops, SPACE), bare)
    x = torch.ones(3)
    session = record(lambda: (packet(x), packet(x, x), packet.twice(x, x)))
    found = rows(session, f"{SPACE}::{bare}")
    assert [owned(session, row)["aten::neg"] for row in found] == [1, 2, 2]
    lib._destroy()
