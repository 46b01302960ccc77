"""A scene, and work to hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.hosts.checks import Scene, fresh
from tests.recorders import recorder_kind

from opscope import custom_op

__all__ = ["recorder_kind"]


@pytest.fixture(autouse=True, scope="module")
def _on_both(recorder_kind: str) -> None:
    """Every test of this folder runs on both recorders."""


@pytest.fixture
def scene() -> Iterator[Scene]:
    with fresh() as made:
        yield made


@pytest.fixture
def work(scene: Scene) -> Callable[[int], int]:
    """Python for `ns`, then an operator for `ns`; returns `ns`."""

    @custom_op("note")
    def note(ns: int) -> None:
        scene.tick(ns)

    def work(ns: int) -> int:
        scene.tick(ns)
        note(ns)
        return ns

    return work
