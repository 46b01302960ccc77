"""Who may import whom: the table, held for every module under src/opscope.

Everything counts: imports inside functions, under TYPE_CHECKING, relative ones, and modules named
by a string. `breaches` and `load_edges` take plain texts, so made-up modules show that they notice.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1] / "src" / "opscope"
LONGEST = 400  # lines of one module

PURE = {"errors", "model"}
WAY = {"record", "store", "attribution", "importers", "analyse", "present"}
ENDS = {
    "__init__",
    "_version",
    "cli",
    "compat",
    "engine",
    "hosts",
    "profiler",
    "sessions",
    "testing",
}
ALL = PURE | WAY | ENDS

# layer: (ours, third party). The standard library and one's own layer are free, `_version` is too.
TABLE: dict[str, tuple[set[str], set[str]]] = {
    "_version": (set(), set()),
    "errors": (set(), set()),
    "model": ({"errors"}, {"numpy"}),
    "record": (PURE, {"numpy"}),
    "store": (PURE, {"numpy"}),
    "attribution": (PURE, {"numpy"}),
    "importers": (PURE | {"attribution"}, {"numpy", "msgspec"}),
    "analyse": (PURE | {"attribution"}, {"numpy"}),
    "present": (PURE | {"analyse"}, {"numpy", "rich", "jinja2", "polars", "pandas"}),
    "engine": (set(), {"numpy"}),
    "hosts": (PURE | {"record", "attribution", "importers", "engine"}, {"numpy"}),
    "profiler": (ALL - {"cli", "compat"}, {"numpy"}),
    "sessions": (ALL - {"cli", "compat", "profiler", "testing"}, {"numpy"}),
    "testing": (ALL - {"cli", "compat"}, {"numpy"}),
    "compat": (ALL - {"cli"}, {"numpy"}),
    "__init__": ({"profiler", "sessions", "errors"}, set()),  # lazily anything of ours
    "__main__": ({"cli"}, set()),
    "cli": (ALL, {"click", "rich"}),
}

# hosts/NAME.py, hosts/NAME_more.py and hosts/NAME/ may import these as well, and nobody else may.
FRAMEWORKS = {"torch": {"torch"}, "jax": {"jax", "jaxlib"}, "mxnet": {"mxnet"}}

# Modules that import by a name which cannot be read off their text: path and reason.
BLIND: dict[str, str] = {}

UNREADABLE = "?"


@dataclass(frozen=True)
class Import:
    line: int
    target: str  # absolute and dotted, or UNREADABLE
    at_once: bool  # runs while the module is being imported


def dotted(path: str) -> str:
    parts = PurePosixPath("opscope", path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str:
    """The row of the table: 'opscope.model.kinds' is in 'model', 'opscope' itself in '__init__'."""
    return module.split(".")[1] if "." in module else "__init__"


@dataclass
class Finder(ast.NodeVisitor):
    """Collects the imports of one module."""

    path: str
    known: set[str]
    found: list[Import] = field(default_factory=list)
    at_once: bool = True

    def __post_init__(self) -> None:
        module = dotted(self.path)
        is_package = PurePosixPath(self.path).stem == "__init__"
        self.package = module if is_package else module.rpartition(".")[0]
        self.by_string = {"__import__", "import_module"}

    def add(self, node: ast.AST, target: str) -> None:
        self.found.append(Import(getattr(node, "lineno", 0), target, self.at_once))

    def absolute(self, name: str, package: str) -> str:
        """'..model' seen from `package`; a name without leading dots is absolute already."""
        up = len(name) - len(name.lstrip("."))
        if not up:
            return name
        parts = package.split(".")
        return ".".join([*parts[: len(parts) - up + 1], *filter(None, name[up:].split("."))])

    def later(self, node: ast.AST) -> None:
        before, self.at_once = self.at_once, False
        self.generic_visit(node)
        self.at_once = before

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = later

    def visit_If(self, node: ast.If) -> None:
        for_types = ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        before, self.at_once = self.at_once, self.at_once and not for_types
        for child in node.body:
            self.visit(child)
        self.at_once = before
        self.visit(node.test)
        for child in node.orelse:
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute("." * node.level + (node.module or ""), self.package)
        if base == "importlib":
            self.by_string |= {a.asname or a.name for a in node.names if a.name == "import_module"}
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            self.add(node, inner if inner in self.known else base)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in self.by_string:
            arguments = [*node.args, *(k.value for k in node.keywords if k.arg == "name")]
            anchors = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "package")]
            self.add(node, self.target(arguments[0], anchors) if arguments else UNREADABLE)
        self.generic_visit(node)

    def target(self, name: ast.expr, anchors: list[ast.expr]) -> str:
        """What import_module(name, anchor) imports, as far as it stands in the text."""
        anchor = anchors[0] if anchors else None
        package = self.package
        if isinstance(anchor, ast.Constant) and isinstance(anchor.value, str):
            package = anchor.value
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return self.absolute(name.value, package)
        if isinstance(name, ast.JoinedStr):  # f"opscope.hosts.{which}": the part before the braces
            first = name.values[0]
            if isinstance(first, ast.Constant) and "." in str(first.value):
                return self.absolute(str(first.value), package).rstrip(".")
            own = {"__package__", "__name__"}
            if isinstance(first, ast.FormattedValue) and ast.unparse(first.value) in own:
                return self.package
        return UNREADABLE


def imports(path: str, source: str, known: set[str]) -> list[Import]:
    tree = ast.parse(source, path)
    finder = Finder(path, known)
    finder.visit(tree)
    blind = [found for found in finder.found if found.target == UNREADABLE]
    if not blind:
        return finder.found
    # import_module(table[key]): every module of ours that the text names as a string may be meant.
    named = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"opscope(\.\w+)+", node.value)
    }
    if not named:
        return finder.found
    readable = [found for found in finder.found if found.target != UNREADABLE]
    return readable + [Import(blind[0].line, name, blind[0].at_once) for name in sorted(named)]


def third_party(path: str) -> set[str]:
    parts = PurePosixPath(path).with_suffix("").parts
    extra = FRAMEWORKS.get(parts[1].split("_")[0], set()) if parts[0] == "hosts" else set()
    return TABLE[parts[0]][1] | extra


def breaches(sources: Mapping[str, str]) -> Iterator[str]:
    """What breaks the table, one line each. `sources`: path below src/opscope to text."""
    known = {dotted(path) for path in sources}
    for path, source in sorted(sources.items()):
        layer = layer_of(dotted(path))
        if layer not in TABLE:
            yield f"{path}: the table has no row for {layer}"
            continue
        for found in imports(path, source, known):
            top = found.target.split(".")[0]
            if found.target == UNREADABLE:
                allowed = path in BLIND
            elif top == "opscope":
                other = layer_of(found.target)
                lazy = layer == "__init__" and not found.at_once
                allowed = lazy or other in TABLE[layer][0] | {layer, "_version"}
            else:
                allowed = top in sys.stdlib_module_names or top in third_party(path)
            if not allowed:
                yield f"{path}:{found.line}: {layer} may not import {found.target}"


def load_edges(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """For each module, the modules that Python has to finish first. A package counts for whoever
    reaches into it from outside, not for its own modules."""
    known = {dotted(path) for path in sources}
    edges: dict[str, set[str]] = {}
    for path, source in sources.items():
        module = dotted(path)
        needs = edges.setdefault(module, set())
        for found in imports(path, source, known):
            parts = found.target.split(".")
            if not found.at_once or parts[0] != "opscope":
                continue
            for depth in range(1, len(parts) + 1):
                prefix = ".".join(parts[:depth])
                around = depth < len(parts) and f"{module}.".startswith(f"{prefix}.")
                if prefix in known and prefix != module and not around:
                    needs.add(prefix)
    return edges


def cycle(sources: Mapping[str, str]) -> list[str]:
    try:
        TopologicalSorter(load_edges(sources)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def ours() -> dict[str, str]:
    files = sorted(ROOT.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}


def test_every_import_is_in_the_table(ours: dict[str, str]) -> None:
    assert {"__init__.py", "errors.py", "model/__init__.py"} <= ours.keys()
    assert list(breaches(ours)) == []


def test_everything_beside_the_modules_has_a_row_too() -> None:
    entries = {path.name.split(".")[0] for path in ROOT.iterdir()}
    assert entries - TABLE.keys() - {"__pycache__", "py"} == set()  # py.typed


def test_no_module_waits_for_itself(ours: dict[str, str]) -> None:
    assert cycle(ours) == []


def test_no_module_is_too_long(ours: dict[str, str]) -> None:
    long = {path: text.count("\n") for path, text in ours.items() if text.count("\n") > LONGEST}
    assert long == {}


def test_blind_imports_name_modules_that_exist(ours: dict[str, str]) -> None:
    assert BLIND.keys() <= ours.keys()


# The checks above, checked.

HOUSE = dict.fromkeys(
    (
        "__init__.py",
        "_version.py",
        "errors.py",
        "profiler.py",
        "model/__init__.py",
        "cli/__init__.py",
    ),
    "",
) | dict.fromkeys(("model/kinds.py", "record/__init__.py", "hosts/__init__.py", "store/x.py"), "")


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("model/kinds.py", "import opscope.record", "model may not import opscope.record"),
        ("model/kinds.py", "from opscope.record import x", "model may not import opscope.record"),
        ("model/kinds.py", "from opscope import record", "model may not import opscope.record"),
        ("model/kinds.py", "from opscope import profile", "model may not import opscope"),
        ("model/kinds.py", "from ..record import x", "model may not import opscope.record"),
        ("model/__init__.py", "from .. import record", "model may not import opscope.record"),
        ("errors.py", "from . import model", "errors may not import opscope.model"),
        ("errors.py", "import numpy", "errors may not import numpy"),
        ("model/kinds.py", "import os, rich.table", "model may not import rich.table"),
        ("model/kinds.py", "try:\n    import rich\nexcept ImportError: pass", ":2: model may not"),
        ("engine/graph.py", "from opscope.errors import HostError", "engine may not import"),
        ("present/html.py", "from opscope.store import x", "present may not import opscope.store"),
        ("importers/chrome/arrows.py", "import jinja2", "importers may not import jinja2"),
        ("profiler.py", "import opscope.cli", "profiler may not import opscope.cli"),
        ("compat/mxnet/nd.py", "import opscope.cli", "compat may not import opscope.cli"),
        ("cli/run.py", "import numpy", "cli may not import numpy"),
        ("__main__.py", "from opscope.profiler import profile", "__main__ may not import"),
        ("cli/run.py", "import opscope.__main__", "cli may not import opscope.__main__"),
        # hidden from the top of the module
        ("model/kinds.py", "def f():\n    import opscope.record", ":2: model may not import"),
        (
            "model/kinds.py",
            "class A:\n    async def f(self):\n        import torch",
            "import torch",
        ),
        ("model/kinds.py", "if TYPE_CHECKING:\n    from opscope.record import x", ":2: model"),
        ("model/kinds.py", "if typing.TYPE_CHECKING:\n    import torch", "import torch"),
        # by string
        ("model/kinds.py", "importlib.import_module('opscope.record')", "opscope.record"),
        ("model/kinds.py", "import_module(name='torch.nn')", "model may not import torch.nn"),
        ("model/kinds.py", "from importlib import import_module as get\nget('torch')", "torch"),
        ("model/kinds.py", "import importlib as i\ni.import_module('torch')", "import torch"),
        ("model/kinds.py", "x = __import__('torch')", "model may not import torch"),
        ("model/kinds.py", "builtins.__import__('torch')", "model may not import torch"),
        ("model/kinds.py", "import_module('..record', __package__)", "opscope.record"),
        ("model/kinds.py", "import_module('.record', 'opscope')", "opscope.record"),
        ("model/kinds.py", "import_module(f'opscope.hosts.{x}')", "import opscope.hosts"),
        ("model/kinds.py", "T = {'a': 'opscope.record'}\nimport_module(T[x])", "opscope.record"),
        ("model/kinds.py", "import_module(x)", "model may not import ?"),
        # frameworks
        ("hosts/__init__.py", "import torch", "hosts may not import torch"),
        ("hosts/torch/late.py", "import jax", "hosts may not import jax"),
        ("hosts/python.py", "def f():\n    import torch", "hosts may not import torch"),
        ("profiler.py", "import torch", "profiler may not import torch"),
        ("engine/torch.py", "import torch", "engine may not import torch"),
        # the front door
        ("__init__.py", "from opscope.model import Session", "__init__ may not import"),
        ("__init__.py", "def f():\n    import numpy", "__init__ may not import numpy"),
        ("__init__.py", "import_module('opscope.store')", "__init__ may not import opscope.store"),
        # the table itself
        ("helpers.py", "", "the table has no row for helpers"),
        ("helpers/things.py", "", "the table has no row for helpers"),
    ],
)
def test_the_table_is_held(path: str, source: str, complaint: str) -> None:
    (line,) = breaches({**HOUSE, path: source})
    assert line.startswith(path)
    assert complaint in line


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("errors.py", "import os.path, dataclasses\nfrom collections import abc"),
        ("errors.py", "from opscope._version import __version__"),
        ("model/kinds.py", "import numpy as np\nfrom numpy.typing import NDArray"),
        ("model/kinds.py", "from opscope import errors\nfrom ..errors import UsageError"),
        ("model/__init__.py", "from opscope.model.kinds import Kind\nfrom . import kinds"),
        ("hosts/torch.py", "import torch"),
        ("hosts/torch_late.py", "def f():\n    import torch.autograd"),
        ("hosts/jax/callbacks.py", "import jax, jaxlib"),
        ("hosts/__init__.py", "def f(name):\n    return import_module(f'{__name__}.{name}')"),
        ("profiler.py", "from opscope import hosts, store\nimport opscope.present.html"),
        ("cli/run.py", "import click, rich\nfrom opscope import compat, profile"),
        ("__init__.py", "from opscope.errors import OpscopeError\nfrom . import profiler"),
        ("__init__.py", "if TYPE_CHECKING:\n    from opscope.model import Session"),
        (
            "__init__.py",
            "T = {'a': 'opscope.model'}\ndef __getattr__(n): return import_module(T[n])",
        ),
        ("store/x.py", "'''Not opscope.cli.'''\nx = 'opscope.cli'"),
    ],
)
def test_the_table_leaves_the_rest_alone(path: str, source: str) -> None:
    assert list(breaches({**HOUSE, path: source})) == []


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a.py": "from opscope import b", "b.py": "import opscope.a"}, {"opscope.a", "opscope.b"}),
        (
            {"m/__init__.py": "from .a import x", "m/a.py": "from opscope.m import y"},
            {"opscope.m.a"},
        ),
        (
            {"m/__init__.py": "import opscope.p", "m/a.py": "", "p.py": "import opscope.m.a"},
            {"opscope.p"},
        ),
        (
            {
                "a.py": "try:\n  from . import b\nfinally: pass",
                "b.py": "class B:\n  from . import a",
            },
            set(),
        ),
    ],
)
def test_cycles_are_found(sources: dict[str, str], expected: set[str]) -> None:
    found = cycle({"__init__.py": "", **sources})
    assert found
    assert expected <= set(found)


@pytest.mark.parametrize(
    "sources",
    [
        {"a.py": "from opscope import b", "b.py": "def f():\n    import opscope.a"},
        {"a.py": "from opscope import b", "b.py": "if TYPE_CHECKING:\n    import opscope.a"},
        {
            "m/__init__.py": "from .a import x",
            "m/a.py": "from .b import y",
            "m/b.py": "import numpy",
        },
        {"m/__init__.py": "from . import a", "m/a.py": "from . import b", "m/b.py": ""},
    ],
)
def test_what_is_no_cycle(sources: dict[str, str]) -> None:
    assert cycle({"__init__.py": "", **sources}) == []
