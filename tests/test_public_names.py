"""The public names of the package, at run time and for type checkers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import opscope

PUBLIC = {
    "HostError",
    "InputError",
    "OpscopeError",
    "Session",
    "UsageError",
    "__version__",
    "carry",
    "compare",
    "custom_op",
    "explain",
    "export",
    "load",
    "profile",
    "schedule",
    "summary",
    "to_pandas",
    "to_polars",
}


def names_bound(body: list[ast.stmt]) -> dict[str, str]:
    """What the imports of a block bind, each with the module it comes from; other names with ''."""
    bound: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name: node.module or "" for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound[node.name] = ""
        elif isinstance(node, ast.Assign):
            bound |= {target.id: "" for target in node.targets if isinstance(target, ast.Name)}
    return bound


@pytest.fixture(scope="module")
def tree() -> ast.Module:
    return ast.parse(Path(str(opscope.__file__)).read_text("utf-8"))


@pytest.fixture(scope="module")
def typed(tree: ast.Module) -> dict[str, str]:
    """What type checkers alone see imported."""
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    ]
    return {name: module for block in blocks for name, module in names_bound(block.body).items()}


def test_all_is_what_the_documentation_says() -> None:
    assert set(opscope.__all__) == PUBLIC


def test_all_is_sorted_and_says_nothing_twice() -> None:
    assert list(opscope.__all__) == sorted(set(opscope.__all__))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_name_is_there(name: str) -> None:
    assert getattr(opscope, name) is not None


def test_dir_shows_every_name_before_any_was_used() -> None:
    code = "import opscope; print(*dir(opscope), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown = done.stdout.split()
    assert set(shown) >= PUBLIC
    assert shown == sorted(set(shown))


def test_a_star_import_brings_these_and_no_more() -> None:
    space: dict[str, object] = {}
    exec("from opscope import *", space)
    assert space.keys() - {"__builtins__"} == PUBLIC


def test_an_unknown_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'opscope' has no attribute 'nothing'"):
        opscope.nothing  # noqa: B018
    assert not hasattr(opscope, "nothing")


def test_type_checkers_see_every_lazy_name(tree: ast.Module, typed: dict[str, str]) -> None:
    lazy = PUBLIC - names_bound(tree.body).keys()
    assert lazy <= typed.keys()


def test_type_checkers_see_the_same_object(typed: dict[str, str]) -> None:
    for name, module in typed.items():
        if name in PUBLIC:
            assert getattr(import_module(module), name) is getattr(opscope, name), name


def test_the_version_is_a_version_and_stands_in_one_place() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", opscope.__version__)
    assert opscope.__version__ is import_module("opscope._version").__version__
