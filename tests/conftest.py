"""For all tests. Garbage is collected when Python likes, and tests count what is recorded. Chance
belongs into fuzz/ and `--hypothesis-profile random`: a suite must say the same twice."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from hypothesis import settings

from opscope import profiler
from opscope.engine.custom import _registered

settings.register_profile("same", derandomize=True)
settings.register_profile("random", derandomize=False)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def _what_is_loaded_is_not_gone_through() -> None:
    """With every framework loaded a collection takes a quarter of a second, and many tests ask for
    one."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _collections_are_not_recorded(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the module of the test says `COLLECTIONS = True`."""
    if not getattr(request.module, "COLLECTIONS", False):
        monkeypatch.setattr(profiler, "collections_seen", lambda recorder: nullcontext())


@pytest.fixture(autouse=True, scope="module")
def _operators_of_a_module_are_its_own() -> Iterator[None]:
    """Two modules may register the same name, in whatever order they run."""
    before = dict(_registered)
    yield
    _registered.clear()
    _registered.update(before)
