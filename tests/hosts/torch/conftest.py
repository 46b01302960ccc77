"""Fixtures that several modules of tests of the torch host use."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes windows as short as can be; the number of events in each as it was emptied."""
    from opscope.hosts.torch import windows as module
    from opscope.hosts.torch.kineto import Kineto

    sizes: list[int] = []
    stop = Kineto.stop

    def counted(self: Kineto) -> list[Any]:
        events = stop(self)
        sizes.append(len(events))
        return events

    monkeypatch.setattr(Kineto, "stop", counted)
    for name in ("_FIRST_S", "_LEAST_S", "_MOST_S"):
        monkeypatch.setattr(module, name, 0.001)
    return sizes
