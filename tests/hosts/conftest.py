"""A scene for every test; made-up frameworks and hosts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.hosts.checks import Scene, fresh
from tests.hosts.late import number
from tests.recorders import recorder_kind

from opscope.hosts import registry

__all__ = ["recorder_kind"]


@pytest.fixture(autouse=True)
def scene() -> Iterator[Scene]:
    with fresh() as made:
        yield made


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that can be imported and has not been."""
    name = f"fake_framework_{number()}"
    (tmp_path / f"{name}.py").write_text("VALUE = 7\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes these the hosts there are."""

    def offer(*hosts: object) -> None:
        monkeypatch.setattr(registry, "_OURS", [lambda host=host: host for host in hosts])

    return offer
