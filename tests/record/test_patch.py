"""Replacing an attribute for a while."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opscope.record.patch import patched, standing


class Thing:
    def method(self, number: int) -> int:
        """What it says."""
        return number

    missing: None


def doubled(original: Callable[..., int]) -> Callable[..., int]:
    def method(self: Thing, number: int) -> int:
        return 2 * original(self, number)

    return method


def test_replaced_inside_and_the_same_after() -> None:
    before = vars(Thing)["method"]
    with patched(Thing, "method", doubled):
        assert Thing().method(2) == 4
        assert Thing.method.__doc__ == "What it says."
        assert standing == [(Thing, "method")]
    assert vars(Thing)["method"] is before
    assert standing == []


def test_put_back_after_an_exception() -> None:
    before = vars(Thing)["method"]
    with pytest.raises(KeyError), patched(Thing, "method", doubled):
        raise KeyError
    assert vars(Thing)["method"] is before


def test_what_is_missing_stays_missing() -> None:
    with patched(Thing, "missing", doubled):
        assert not hasattr(Thing, "missing")
        assert standing == []


def test_what_others_put_in_its_place_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thing, "method", Thing.method)  # put back at the end of the test
    with patched(Thing, "method", doubled):
        ours = Thing.method

        def theirs(self: Thing, number: int) -> int:
            return 1 + ours(self, number)

        Thing.method = theirs  # type: ignore[method-assign]
    assert Thing.method is theirs
    with patched(Thing, "method", doubled):
        assert Thing().method(2) == 10
    assert Thing.method is theirs
    assert standing == []
