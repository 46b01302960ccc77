"""Finding a script or module, and running it as Python itself would."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourcelessFileLoader
from importlib.machinery import SourceFileLoader as SourceLoader
from importlib.util import find_spec
from pathlib import Path
from pkgutil import get_importer
from types import CodeType, ModuleType
from typing import Any

from opscope.errors import InputError

#: What runs a program that was found.
Run = Callable[[], None]


def script(path: str, args: Sequence[str]) -> Run:
    """What `python path args` runs: a file, or a folder or archive with a `__main__` in it.

    Raises InputError when there is no such thing; reads and runs nothing yet.
    """
    argv = [path, *args]
    try:
        if get_importer(path) is not None:
            place = os.path.abspath(path)
            found = PathFinder.find_spec("__main__", [place])
            if found is None:
                raise InputError(f"cannot run {path}: there is no __main__ in it")
            return partial(_run_found, found, argv, place)
        with open(path, "rb"):
            return partial(_run_file, argv)
    except OSError as error:
        raise InputError(f"cannot run {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"cannot run {path!r}: {error}") from None


def module(name: str, args: Sequence[str]) -> Run:
    """What `python -m name args` runs. Raises InputError when there is no such module."""
    _set_first_place(os.getcwd())
    found = _find(name)
    if found is not None and found.submodule_search_locations is not None:
        if (inside := _find(f"{name}.__main__")) is None:
            raise InputError(f"cannot run -m {name}: it is a package, and has no __main__")
        found = inside
    if found is None:
        raise InputError(f"cannot run -m {name}: no module of that name is on the path")
    return partial(_run_module, found, args)


def _run_file(argv: list[str]) -> None:
    path = os.path.abspath(argv[0])
    sys.argv = argv
    _set_first_place(str(Path(path).resolve().parent))
    loader: Any
    if path.endswith(".pyc"):
        loader = SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = SourceLoader("__main__", path)
        with io.open_code(path) as file:
            source = file.read()
        code = compile(source, path, "exec", dont_inherit=True)
    _run_code(code, __file__=path, __loader__=loader, __cached__=None)


def _run_found(found: ModuleSpec, argv: list[str], place: str) -> None:
    sys.argv = argv
    _set_first_place(place, always=True)
    _run_spec(found)


def _run_module(found: ModuleSpec, args: Sequence[str]) -> None:
    sys.argv = ["-m", *args]
    if found.parent:
        found = find_spec(found.name) or found  # imports the packages around it
    sys.argv[0] = found.origin or found.name
    _run_spec(found)


def _run_spec(found: ModuleSpec) -> None:
    get_code = getattr(found.loader, "get_code", None)
    code = get_code(found.name) if get_code is not None else None
    if code is None:
        raise ImportError(f"no code object available for {found.name}")
    _run_code(
        code,
        __file__=found.origin,
        __loader__=found.loader,
        __cached__=found.cached,
        __package__=found.parent,
        __spec__=found,
    )


def _run_code(code: CodeType, **facts: Any) -> None:
    """Run it as `__main__`, which stays there: threads and work at exit may come after it."""
    main = ModuleType("__main__")
    vars(main).update(facts, __builtins__=builtins)
    sys.modules["__main__"] = main
    exec(code, vars(main))


def _find(name: str) -> ModuleSpec | None:
    try:
        found = _find_quietly(name)
    except KeyError:  # a folder in a folder, neither with an __init__: finding it asks the outer
        found = None
    outer = name.rpartition(".")[0]
    if found is None and outer:
        around = _find(outer)
        if around is not None and around.submodule_search_locations is not None:
            # A package may say only when it is imported where its modules are.
            with suppress(ImportError, AttributeError, TypeError, ValueError):
                return find_spec(name)
    return found


def _find_quietly(name: str) -> ModuleSpec | None:
    """Without importing the packages around it: that belongs to the program's run."""
    path: Sequence[str] | None = None
    found: ModuleSpec | None = None
    places = name.split(".")
    for end in range(1, len(places) + 1):
        if end > 1 and path is None:
            return None
        found = _look(".".join(places[:end]), path)
        if found is None:
            return None
        path = found.submodule_search_locations
    return found


def _look(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        found: ModuleSpec | None = find(name, path) if find is not None else None
        if found is not None:
            return found
    return None


def _set_first_place(place: str, *, always: bool = False) -> None:
    """Put the program's place first on the path, where ours stood (or nothing, if so asked)."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = place
    elif always:
        sys.path.insert(0, place)
