"""`import opscope` is quick: nothing but the standard library is even looked for."""

from __future__ import annotations

import json
import subprocess
import sys

FRAMEWORKS = {"torch", "jax", "jaxlib", "mxnet"}
OPTIONAL = {"polars", "pandas", "pyarrow"}

# A finder in front of all others writes down what is asked for, so that a package which happens not
# to be installed here is noticed too. What a .pth file loaded before is not counted.
PROBE = """
import json, sys

asked = set()

class Listener:
    @staticmethod
    def find_spec(name, path=None, target=None):
        asked.add(name.partition(".")[0])

before = set(sys.modules)
sys.meta_path.insert(0, Listener)
{code}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps(sorted((asked | loaded) - sys.stdlib_module_names)))
"""


def strangers(code: str) -> set[str]:
    """Top-level packages beyond the standard library that a new interpreter looks for or loads."""
    command = [sys.executable, "-c", PROBE.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    names: list[str] = json.loads(done.stdout)
    return set(names)


def test_the_bare_import_loads_nothing_else() -> None:
    assert strangers("import opscope") == {"opscope"}


def test_the_version_costs_nothing() -> None:
    assert strangers("import opscope; opscope.__version__; opscope.UsageError") == {"opscope"}


def test_the_public_names_load_no_framework() -> None:
    code = "import opscope\nfor name in opscope.__all__: getattr(opscope, name)"
    assert strangers(code) & (FRAMEWORKS | OPTIONAL) == set()


def test_the_probe_notices() -> None:
    assert strangers("import json") == set()
    assert "numpy" in strangers("import numpy")
    assert "absent" in strangers("try: import absent.part\nexcept ImportError: pass")
    assert "absent" in strangers("import importlib.util\nimportlib.util.find_spec('absent')")
