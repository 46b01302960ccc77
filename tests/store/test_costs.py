"""What recording cost goes through the file, and a damaged figure costs nothing else."""

from __future__ import annotations

import pytest

from opscope.store import MemorySink


def test_costs_come_back() -> None:
    sink = MemorySink()
    sink.put("costs", {"call": [100, 2000], "write": [0, 30]})
    (process,) = sink.session().processes
    assert process.costs == {"call": (100, 2000), "write": (0, 30)}
    assert process.damage == ""


@pytest.mark.parametrize("data", [{"call": [1]}, {"call": ["x", 2]}, [1, 2], {"call": None}])
def test_nonsense_is_told(data: object) -> None:
    sink = MemorySink()
    sink.put("costs", data)
    (process,) = sink.session().processes
    assert process.costs == {}
    assert "makes no sense" in process.damage
