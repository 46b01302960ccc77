"""Engines of every kind, a fresh profiler for each test, and a guard against hanging."""

from __future__ import annotations

import faulthandler
import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope.compat.mxnet as mx
from opscope import engine
from opscope.compat.mxnet import profiler

KINDS = ("threaded", "workers", "naive")


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    """A test that hangs ends the run with every thread's stack; none leaves hooks behind."""
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert not engine.hooks, f"hooks left behind: {dict(engine.hooks)}"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine in each kind, custom operators on threads of their own and on its workers."""
    if request.param == "naive":
        engine.use("naive")
    else:
        engine.use(workers=2, custom_on="workers" if request.param == "workers" else "pool")
    yield request.param
    gc.collect()
    engine.use()
    engine.get().failures.clear()


class Profiled:
    """`mx.profiler` as a fresh process has it, and what its documents and tables hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        profiler.set_config(filename=str(path))

    def events(self, path: Path | None = None) -> list[dict[str, Any]]:
        """The events of a document, which must be strict JSON."""
        text = (path or self.path).read_text("utf-8")
        found: list[dict[str, Any]] = json.loads(text, parse_constant=_refuse)["traceEvents"]
        return found

    def count(self, name: str, path: Path | None = None) -> int:
        """How many slices of that name a document has."""
        return sum(e["ph"] == "X" and e["name"] == name for e in self.events(path))

    def time(self, **how: Any) -> dict[str, dict[str, dict[str, Any]]]:
        """Domain -> name -> Count, Total, Min, Max, Avg."""
        whole = json.loads(profiler.dumps(format="json", **how), parse_constant=_refuse)
        assert whole["Unit"] == {"Time": "ms", "Memory": "kB"}
        found: dict[str, dict[str, dict[str, Any]]] = whole["Time"]
        return found

    def counts(self, domain: str, **how: Any) -> dict[str, int]:
        """How often each name of that domain was recorded."""
        return {name: row["Count"] for name, row in self.time(**how).get(domain, {}).items()}

    def run(self) -> None:
        profiler.set_state("run")

    def stop(self) -> None:
        """Off, once all work has ended."""
        mx.nd.waitall()
        profiler.set_state("stop")


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def profiled(tmp_path: Path) -> Iterator[Profiled]:
    forget()
    yield Profiled(tmp_path / "trace.json")
    forget()


def forget() -> None:
    """The profiler as it is right after the import."""
    profiler._output.follow(False)
    profiler.recording.end()
    profiler.recording.forget()
    profiler.recording.config.__init__()  # type: ignore[misc]
    profiler._output.__init__()  # type: ignore[misc]
