"""Loading: what is there by two names is read once."""

from __future__ import annotations

from pathlib import Path

import pytest

import opscope
from opscope.errors import UsageError


@opscope.custom_op("work")
def work() -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recordings of one call each, one of them also by another name."""
    for name in ("one.opscope", "two.opscope"):
        with opscope.profile(host="python", output=tmp_path / name):
            work()
    (tmp_path / "newest.opscope").symlink_to("two.opscope")
    return tmp_path


def calls(*paths: Path) -> int:
    (row,) = opscope.summary(opscope.load(*paths))
    return int(row["calls"])


def test_a_file_and_its_folder(folder: Path) -> None:
    one = folder / "one.opscope"
    assert calls(one) == 1
    assert calls(folder) == 2
    assert calls(one, folder) == calls(folder, one) == 2
    assert calls(one, folder / "newest.opscope") == 2


def test_a_path_that_is_named_twice(folder: Path) -> None:
    one = folder / "one.opscope"
    for again in (one, folder / "." / "one.opscope", folder / ".." / folder.name / "one.opscope"):
        with pytest.raises(UsageError, match="named twice"):
            opscope.load(one, again)
    with pytest.raises(UsageError, match=r"newest.opscope' is named twice"):
        opscope.load(folder / "two.opscope", folder / "newest.opscope")


def test_a_session_is_told_in_a_line(folder: Path) -> None:
    session = opscope.load(folder)
    assert repr(session) == "<Session: spans 2, operators 1, processes 2>"
