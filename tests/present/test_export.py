"""Exports: the ending chooses, nothing is overwritten unasked, nothing is left half-written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, TextIO

import pytest
from tests.builders import session, span

from opscope.errors import UsageError
from opscope.model import Kind, Session
from opscope.present import FORMATS, export
from opscope.present import export as export_function
from opscope.present.export import Format


@pytest.fixture
def made() -> Session:
    return session([span(1, "A", Kind.CALL, 0, 10), span(2, "x", Kind.OP, 2, 4, owner=1)])


def test_the_ending_chooses(made: Session, tmp_path: Path) -> None:
    for name in ("t.json", "t.json.gz", "spans.jsonl", "a.spans.jsonl", "b.jsonl", "links.jsonl"):
        export(made, tmp_path / name)
    export(made, str(tmp_path / "s.CSV"))
    trace = json.loads((tmp_path / "t.json").read_bytes())
    assert trace["traceEvents"]
    assert (
        gzip.decompress((tmp_path / "t.json.gz").read_bytes()) == (tmp_path / "t.json").read_bytes()
    )
    spans = (tmp_path / "spans.jsonl").read_text()
    assert json.loads(spans.splitlines()[0])["id"] == 1
    assert (tmp_path / "a.spans.jsonl").read_text() == (tmp_path / "b.jsonl").read_text() == spans
    assert (tmp_path / "links.jsonl").read_text() == ""
    assert (tmp_path / "s.CSV").read_text().startswith("id,owner,")
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith("tmp")]


def test_equal_sessions_make_equal_files(made: Session, tmp_path: Path) -> None:
    export(made, tmp_path / "a.json.gz")
    export(made, tmp_path / "b.json.gz")
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    assert packed[3:8] == bytes(5), "neither a name nor a time"


def test_an_unknown_ending_is_answered_with_what_there_is(made: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        export(made, tmp_path / "x.txt")
    assert all(entry.ending in str(caught.value) for entry in FORMATS)


def test_nothing_is_overwritten_unasked(made: Session, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text("precious")
    with pytest.raises(UsageError, match="already"):
        export(made, file)
    assert file.read_text() == "precious"
    export(made, file, force=True)
    assert json.loads(file.read_bytes())


def test_a_failed_write_leaves_what_was_there(
    made: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Session, file: TextIO) -> None:
        file.write("half of it")
        raise OSError(28, "No space left on device")

    module: Any = __import__("sys").modules[export_function.__module__]
    monkeypatch.setattr(module, "FORMATS", (Format(".json", "", fail),))
    file = tmp_path / "t.json"
    file.write_text("precious")
    with pytest.raises(UsageError, match="No space left"):
        export(made, file, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
    assert file.read_text() == "precious"


def test_a_folder_that_is_not_there(made: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        export(made, tmp_path / "no" / "t.json")


@pytest.mark.parametrize(
    "name", [f"{'n' * 300}.json", "nul\0.json", "file/t.json"], ids=["long", "NUL", "in a file"]
)
def test_a_name_that_no_file_can_have(made: Session, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        export(made, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_link_that_leads_nowhere_is_not_overwritten_unasked(
    made: Session, tmp_path: Path
) -> None:
    link = tmp_path / "t.json"
    link.symlink_to("nowhere")
    with pytest.raises(UsageError, match="already"):
        export(made, link)
    assert link.is_symlink()
    export(made, link, force=True)
    assert not link.is_symlink()
