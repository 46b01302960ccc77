"""A scene for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.hosts.checks import Scene, fresh


@pytest.fixture(autouse=True)
def scene() -> Iterator[Scene]:
    with fresh() as made:
        yield made
