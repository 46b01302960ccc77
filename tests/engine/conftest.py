"""Engines of every kind, a listener for hooks, and a guard against hanging."""

from __future__ import annotations

import faulthandler
import gc
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from opscope import engine as nd
from opscope.engine.engine import Engine
from opscope.engine.naive import NaiveEngine
from opscope.engine.threaded import ThreadedEngine, live

KINDS = ("threaded-1", "threaded-4", "naive")
CUSTOM_KINDS = ("pool-1", "pool-4", "workers-1", "workers-4", "naive")


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    """A test that hangs ends the run with every thread's stack; none leaves hooks behind."""
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert not nd.hooks, f"hooks left behind: {dict(nd.hooks)}"
    for engine in list(live):
        with engine._lock:
            engine._graph.check()


def make(kind: str) -> Engine:
    return NaiveEngine() if kind == "naive" else ThreadedEngine(int(kind.split("-")[1]))


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of each kind, apart from the one that arrays use."""
    made = make(request.param)
    yield made
    made.start()
    made.stop()


@pytest.fixture(params=KINDS)
def any_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine that arrays use, in each kind."""
    kind, _, workers = request.param.partition("-")
    nd.use(kind, workers=int(workers) if workers else None)
    yield request.param
    _back_to_default()


@pytest.fixture(params=CUSTOM_KINDS)
def custom_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine that arrays use, in each way of running custom operators."""
    where, _, workers = request.param.partition("-")
    if where == "naive":
        nd.use("naive")
    else:
        nd.use(workers=int(workers), custom_on=where, idle_s=0.2)
    yield request.param
    _back_to_default()


def _back_to_default() -> None:
    gc.collect()
    nd.get().start()
    nd.use()
    nd.get().failures.clear()


class Heard(list[tuple[str, str, object]]):
    """(moment, thread name, fact) in the order it was told."""

    def names(self, moment: str) -> list[str]:
        return [getattr(fact, "name", fact) for told, _, fact in self if told == moment]  # type: ignore[misc]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Everything that the hooks tell during the test."""
    found = Heard()
    added: list[tuple[str, Callable[..., object]]] = []
    for moment in nd.MOMENTS:

        def hook(fact: object, moment: str = moment) -> None:
            found.append((moment, threading.current_thread().name, fact))

        nd.hooks.add(moment, hook)
        added.append((moment, hook))
    yield found
    for moment, hook in added:
        nd.hooks.remove(moment, hook)
