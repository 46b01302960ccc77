"""Operators of the dispatcher that are nobody's but a user's, told by their names."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opscope.hosts.torch.operators import HOST
from opscope.importers.torch_names import BUILT_IN
from opscope.model import Op

#: `KEY: registered at FILE:LINE :: SCHEMA [ how ]`, as the dispatcher tells of each kernel.
_KERNEL = re.compile(r"^(\w+)[^:\n]*: registered at (.+?):(\d+) ::", re.MULTILINE)
_NAMED = re.compile(r"^[A-Za-z_]\w*::[A-Za-z_]\w*$")
_NATIVE = frozenset((".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hip", ".hpp", ".mm"))
#: torch's own files, through which kernels in Python are registered.
_THROUGH = ("torch/library.py", "torch/_library/")


@dataclass(frozen=True, slots=True)
class Found:
    """An operator and whether its function is written in Python."""

    op: Op
    python: bool


class Dispatcher:
    """Asks torch about names, each once."""

    def __init__(self) -> None:
        self._known: dict[str, Found | None] = {}

    def find(self, name: str) -> Found | None:
        """The custom operator of that name; None where it is torch's, or no operator."""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> Found | None:
        if not _NAMED.match(name) or name.partition("::")[0] in BUILT_IN:
            return None
        c: Any = sys.modules["torch"]._C
        text = ""
        for full in (name, *self._overloads(name)):
            try:
                text = c._dispatch_dump(full)
            except RuntimeError:
                continue
            if "registered at" in text:
                break
        kernels = [found for found in _KERNEL.findall(text) if found[0] not in ("debug", "alias")]
        if not text or (not kernels and "schema:" not in text):
            return None
        python = any(Path(file).suffix not in _NATIVE for _, file, _ in kernels)
        places = [(file, int(line)) for _, file, line in kernels if not _through(file)]
        places = [place for place in places if place[0] != os.devnull]
        file, line = places[0] if places else ("", 0)
        if not python and _built_with_torch(file):
            return None
        kind = "torch.library" if python else "TORCH_LIBRARY"
        return Found(Op(HOST, kind, name, name, "", 1, file, line, native=not python), python)

    def _overloads(self, name: str) -> list[str]:
        names: list[str] = sys.modules["torch"]._C._dispatch_get_all_op_names()
        return [full for full in names if full.startswith(name + ".")]


def _through(file: str) -> bool:
    path = Path(file).as_posix()
    return any(part in path for part in _THROUGH)


def _built_with_torch(file: str) -> bool:
    """Whether a source file is torch's own, by the folder that torch was built in."""
    text: str = sys.modules["torch"]._C._dispatch_dump("aten::add.Tensor")
    found = re.search(r"debug: registered at (.+?)(?:aten|build|torch|c10)/", text)
    return bool(file) and found is not None and file.startswith(found.group(1))
