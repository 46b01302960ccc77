"""A host that waits for a module, for tests."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from opscope.model import Sight
from opscope.record import Recorder

number = itertools.count().__next__


class Late:
    """A host that waits for a module, and writes down what happens to it."""

    def __init__(self, module: str | None, log: list[str], name: str = "late") -> None:
        self.name = name
        self.module = module
        self.log = log

    def probe(self) -> Sight:
        return Sight(self.name, "1", ("calls",))

    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        module = sys.modules.get(self.module or "", None)
        self.log.append(f"attached, value {getattr(module, 'VALUE', None)}")
        yield
        self.log.append("detached")
