"""What the stand-in does not have, said in words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

#: Parts of MXNet that its programs import by name.
_MODULES = (
    *("attribute", "callback", "contrib", "executor", "gluon", "image", "init", "initializer"),
    *("io", "kv", "kvstore", "lr_scheduler", "metric", "mod", "model", "module", "monitor", "mon"),
    *("np", "npx", "numpy", "opt", "optimizer", "recordio", "rtc", "runtime", "sym", "symbol"),
    *("util", "viz", "visualization", "nd.contrib", "nd.image", "nd.linalg", "nd.sparse"),
)


def lacks(where: str, has: Callable[[], Iterable[str]]) -> Callable[[str], Any]:
    """A module's `__getattr__`: every name it is asked for is one that is not there."""

    def missing(name: str) -> Any:
        raise AttributeError(words(where, name, has()))

    return missing


def words(where: str, name: str, has: Iterable[str]) -> str:
    """The message: what is missing, why, and what there is."""
    known = ", ".join(sorted(one for one in has if not one.startswith("__")))
    return (
        f"{where} does not have {name!r} here: opscope.compat.mxnet stands in for MXNet in "
        f"imperative programs with custom operators, not for all of MXNet. "
        f"{where} has: {known or 'nothing'}"
    )


def importable(package: str) -> None:
    """Let `from package import gluon` pass, which could only raise an ImportError, without words.

    What it gives has nothing and says so when it is used; `package.gluon` says so at once.
    MXNet's second names of modules that are there can be imported too: `package.ndarray`.
    """
    for name in _MODULES:
        module = ModuleType(f"{package}.{name}", "A part of MXNet that the stand-in does not have.")
        module.__dict__["__getattr__"] = lacks(f"mx.{name}", lambda: ())
        sys.modules.setdefault(module.__name__, module)
    sys.modules[f"{package}.nd.op"] = sys.modules[f"{package}.nd._internal"]
    short, long = f"{package}.nd", f"{package}.ndarray"
    for name in list(sys.modules):
        if name == short or name.startswith(f"{short}."):
            sys.modules[long + name[len(short) :]] = sys.modules[name]
