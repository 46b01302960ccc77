"""Being told when a module has been imported, without the module looking any different."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@contextmanager
def on_import(waiting: Mapping[str, Sequence[T]], ready: Callable[[T], None]) -> Iterator[None]:
    """Inside the block call `ready` for each of a module's things right after its first import."""
    if not waiting:
        yield
        return
    finder = _Finder(waiting, ready)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.done = True
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)


class _Finder(MetaPathFinder, Generic[T]):
    """Lets everyone else find the module, then wraps its loader."""

    def __init__(self, waiting: Mapping[str, Sequence[T]], ready: Callable[[T], None]) -> None:
        self.done = False
        self._waiting = dict(waiting)
        self._ready = ready
        self._here = threading.local()

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self.done or name not in self._waiting:
            return None
        busy: set[str] = self._here.__dict__.setdefault("busy", set())
        if name in busy:
            return None
        busy.add(name)
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(name, path, target) if find else None
                if spec is not None:
                    if spec.loader is not None:
                        spec.loader = _Loader(spec.loader, self.loaded)
                    return spec
        finally:
            busy.remove(name)
        return None

    def loaded(self, name: str) -> None:
        """The module is there."""
        if not self.done:
            for thing in self._waiting.pop(name, ()):
                self._ready(thing)


class _Loader(Loader):
    """The module's own loader, and a word to the finder when it is done."""

    def __init__(self, loader: Any, loaded: Callable[[str], None]) -> None:
        self._loader = loader
        self._loaded = loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            # From here on the module looks as if nobody had been in between.
            spec.loader = self._loader
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._loaded(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
