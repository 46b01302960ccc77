"""Operators in C++."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.torch.ops import custom, entry, owned, record, rows, torch

import opscope
from opscope.cli import main

SOURCE = """
#include <ATen/ATen.h>
#include <torch/library.h>
#include <chrono>
static at::Tensor work(const at::Tensor& x) {
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (std::chrono::steady_clock::now() < until) {}
  return x.neg();
}
static at::Tensor many(const at::Tensor& x, int64_t n) {
  at::Tensor y = x;
  for (int64_t i = 0; i < n; i++) y = y.neg();
  return y;
}
static at::Tensor composite(const at::Tensor& x) { return x.sin(); }
TORCH_LIBRARY(opscope_native, m) {
  m.def("work(Tensor x) -> Tensor");
  m.def("work.many(Tensor x, int n) -> Tensor");
  m.def("composite(Tensor x) -> Tensor", composite);
}
TORCH_LIBRARY_IMPL(opscope_native, CPU, m) {
  m.impl("work", work);
  m.impl("work.many", many);
}
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Operators in C++; compiling them takes most of a minute."""
    for program in ("c++", "ninja"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here")
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("torch.utils.cpp_extension needs setuptools")
    folder = tmp_path_factory.mktemp("native")
    source = folder / "native.cpp"
    source.write_text(SOURCE, "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.utils import cpp_extension

        try:
            cpp_extension.load(
                "opscope_native_test",
                [str(source)],
                is_python_module=False,
                build_directory=str(folder),
                extra_cflags=["-O0"],
            )
        except RuntimeError as error:
            pytest.skip(f"operators in C++ cannot be built here: {str(error)[:200]}")
    return torch.ops.opscope_native


def test_an_operator_in_cpp(native: Any) -> None:
    x = torch.ones(3)
    session = record(lambda: (native.work(x), native.work(x, 3), native.work.many(x, 2)))
    found = entry(session, "opscope_native::work")
    assert found.native
    assert found.kind == "TORCH_LIBRARY"
    assert Path(found.file).name == "native.cpp"
    # The dispatcher tells where the block is in which the function was registered.
    assert SOURCE.splitlines()[found.line - 1].startswith("TORCH_LIBRARY_IMPL")
    calls = rows(session, "opscope_native::work")
    assert [owned(session, row)["aten::neg"] for row in calls] == [1, 3, 2]
    first = calls[0]
    assert first.native_ns is not None
    assert first.native_ns > first.wall_ns / 2  # it only spins
    for row in calls:
        assert (row.python_ns or 0, row.wait_ns or 0) == (0, 0)
        assert row.native_ns is not None
        assert row.native_ns + (row.sub_ns or 0) == row.wall_ns


def test_an_operator_in_cpp_that_autograd_looks_through(native: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    session = record(lambda: native.composite(x).sum().backward())
    assert entry(session, "opscope_native::composite").native
    (forward,) = rows(session, "opscope_native::composite", "forward")
    (backward,) = rows(session, "opscope_native::composite", "backward")
    assert owned(session, forward) == {"aten::sin": 1}
    assert owned(session, backward)["aten::cos"] == 1
    assert backward.forward_call == forward.call


def test_an_operator_in_cpp_inside_another_one(native: Any) -> None:
    outer = custom("around", lambda x: native.work(x, 4))
    session = record(lambda: outer(torch.ones(3)))
    (above,), (below,) = rows(session, outer), rows(session, "opscope_native::work")
    assert below.parent == above.call
    assert owned(session, above) == {"opscope_native::work": 1}
    assert owned(session, below) == {"aten::neg": 4}


def test_the_table_of_the_command_line_shows_it(native: Any, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "native.opscope"
    with opscope.profile(output=file):
        native.work(torch.ones(3))
    assert main(["report", str(file)]) in (0, None)
    assert "opscope_native::work" in capsys.readouterr().out
