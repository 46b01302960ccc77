"""Both recorders, for every test of this folder."""

from __future__ import annotations

import pytest
from tests.recorders import recorder_kind

__all__ = ["recorder_kind"]


@pytest.fixture(autouse=True, scope="module")
def _on_both(recorder_kind: str) -> None:
    """Every test of this folder runs on both recorders."""
