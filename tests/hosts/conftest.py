"""A scene for every test."""

from __future__ import annotations

import pytest
from tests.hosts.checks import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
