"""Which recorder a test runs on: the same tests hold for the one in Python and the one in C."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from opscope.record import extension


@pytest.fixture(scope="module", params=["python", "native"])
def recorder_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every recording of the module is made by this recorder, also in processes it starts."""
    kind: str = request.param
    if kind == "native" and extension.native is None:
        pytest.skip(f"the native recorder is not there: {extension.missing}")
    before = os.environ.get(extension.VARIABLE)
    os.environ[extension.VARIABLE] = kind
    yield kind
    if before is None:
        del os.environ[extension.VARIABLE]
    else:
        os.environ[extension.VARIABLE] = before
