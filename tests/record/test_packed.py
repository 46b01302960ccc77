"""Looking through packed rows: in C the same as in Python."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from opscope.model import SPAN
from opscope.record import extension, packed


@pytest.fixture
def look(recorder_kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as it is without the extension, or with it."""
    if recorder_kind == "python":
        with monkeypatch.context() as patch:
            patch.setattr(extension, "native", None)
            importlib.reload(packed)
    yield packed
    importlib.reload(packed)


def rows(ids: list[int]) -> bytes:
    table = np.zeros(len(ids), SPAN)
    table["id"] = ids
    return table.tobytes()


def test_which_is_which(look: ModuleType, recorder_kind: str) -> None:
    in_c = extension.native is not None and look.joined is extension.native.joined
    assert in_c == (recorder_kind == "native")


def test_joined(look: ModuleType) -> None:
    assert look.joined([]) == b""
    assert look.joined([b"", b""]) == b""
    assert look.joined([b"", b"ab", b""]) == b"ab"
    assert look.joined([b"ab", b"", b"c" * 3_000_000]) == b"ab" + b"c" * 3_000_000


def test_newest(look: ModuleType) -> None:
    assert look.newest(b"") == 0
    assert look.newest(rows([3, 2**62, 7])) == 2**62


def test_among(look: ModuleType) -> None:
    dice = random.Random(3)
    for size in (0, 1, 2, 50, 3000):
        there = [dice.randrange(1, 4000) for _ in range(size)]
        for wanted in (0, 1, 3, 1000):
            asked = [dice.randrange(1, 4000) for _ in range(wanted)]
            found = look.among(asked, rows(there))
            assert set(found) == set(asked) & set(there)
