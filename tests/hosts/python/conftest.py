"""Operators to see whose they are, and ways to act in the middle of a call."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.hosts.checks import Scene
from tests.hosts.python.ways import Act
from tests.recorders import recorder_kind

from opscope import custom_op

__all__ = ["recorder_kind"]


@pytest.fixture(autouse=True, scope="module")
def _on_both(recorder_kind: str) -> None:
    """Every test of this folder runs on both recorders."""


@pytest.fixture
def note(scene: Scene) -> Callable[[int], None]:
    """An operator that works for `ns`; `scene.owners()` tells whose it was."""

    @custom_op("note")
    def note(ns: int) -> None:
        scene.tick(ns)

    return note


@pytest.fixture
def sub(scene: Scene) -> Callable[[int], None]:
    """The same by another name."""

    @custom_op("sub")
    def sub(ns: int) -> None:
        scene.tick(ns)

    return sub


@pytest.fixture
def consumed(scene: Scene) -> Callable[[], None]:
    """What a consumer does between two steps: an operator that must belong to nobody."""

    @custom_op("consumer")
    def consumer() -> None:
        scene.tick(100)

    return consumer


@pytest.fixture(params=["here", "elsewhere"])
def act(request: pytest.FixtureRequest) -> Act:
    """Does something (starts, stops ...) on the calling thread, or on another one meanwhile."""

    def here(fn: Callable[[], object]) -> None:
        fn()

    def elsewhere(fn: Callable[[], object]) -> None:
        thread = threading.Thread(target=fn)
        thread.start()
        thread.join()

    return here if request.param == "here" else elsewhere
