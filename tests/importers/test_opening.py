"""Files, archives, folders and pipes: what is whole is read, damage is told, nothing stays open."""

from __future__ import annotations

import gzip
import io
import os
import threading
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.importers.written import FORMATS, Written

import opscope
from opscope.errors import InputError
from opscope.importers import members

Data = dict[str, bytes]


def trace(name: str, number: int = 1) -> bytes:
    """A Kineto trace with so many operators of that name."""
    spans = [Written(name, 0, 10 * at, 10 * at + 5, -1) for at in range(number)]
    return FORMATS["kineto"].write(spans)


def a_zip(files: Data, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def found(path: Path) -> list[str]:
    """What is at a path, by name, without the path."""
    return [member.name.removeprefix(f"{path}/") for member in members(path)]


def fill(folder: Path, files: Iterable[str]) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(trace(f"lib::{Path(name).name}"))


def ops(*paths: Path) -> list[str]:
    """The names of all spans of a session."""
    session = opscope.load(*paths)
    return sorted(session.names[name] for name in session.spans["name"].tolist())


@pytest.mark.parametrize("name", ["trace.json.gz", "trace.json", "trace", "some.zip", "x.opscope"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_file_is_unpacked_whatever_it_is_called(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(trace("lib::a")) if packed else trace("lib::a"))
    assert ops(path) == ["lib::a"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_ranks_in_an_archive_are_one_session(tmp_path: Path, method: int) -> None:
    path = tmp_path / "ranks"
    files = {
        "ranks/rank1.json": trace("lib::one"),
        "ranks/rank0.json.gz": gzip.compress(trace("lib::zero")),
        "ranks/README.txt": b"how it was made",
        "__MACOSX/ranks/._rank0.json": b"\0\5\x16\7",
        "ranks/.hidden.json": b"x",
    }
    path.write_bytes(a_zip(files, method))
    assert found(path) == ["ranks/rank0.json.gz", "ranks/rank1.json"]
    assert ops(path) == ["lib::one", "lib::zero"]
    assert len(opscope.load(path).processes) == 2


def test_an_archive_without_any_telling_name_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(a_zip({"worker-0": trace("lib::a"), "worker-1": trace("lib::b")}))
    assert ops(path) == ["lib::a", "lib::b"]


def test_a_folder_of_ranks_and_archives_is_one_session(tmp_path: Path) -> None:
    fill(tmp_path, ["b/rank1.json", "a/rank0.pt.trace.json", "notes.txt", ".git/x.json"])
    (tmp_path / "c.zip").write_bytes(a_zip({"rank2.json": trace("lib::two")}))
    assert found(tmp_path) == ["c.zip/rank2.json", "a/rank0.pt.trace.json", "b/rank1.json"]
    assert ops(tmp_path) == ["lib::rank0.pt.trace.json", "lib::rank1.json", "lib::two"]


def test_beside_an_xplane_the_json_that_jax_cut_is_not_used(tmp_path: Path) -> None:
    run = "plugins/profile/2026_01_01/"
    names = [f"{run}vm.{end}" for end in ("xplane.pb", "trace.json.gz", "overview_page.pb")]
    fill(tmp_path, [*names, "other/rank0.json"])
    assert found(tmp_path) == ["other/rank0.json", f"{run}vm.xplane.pb"]
    path = tmp_path / "all.zip"
    path.write_bytes(a_zip(dict.fromkeys([*names, "other/rank0.json"], b"")))
    assert found(path) == ["other/rank0.json", f"{run}vm.xplane.pb"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("packed", [True, False])
def test_a_pipe_is_read_once(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = gzip.compress(trace("lib::a")) if packed else trace("lib::a")
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    assert ops(path) == ["lib::a"]
    writer.join()


def refused(*paths: Path) -> str:
    """Why these cannot be read."""
    with pytest.raises(InputError) as caught:
        opscope.load(*paths)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    assert refused(path) == f"cannot read {path}: No such file or directory"
    fill(tmp_path, ["a.json"])
    inner = tmp_path / "a.json" / "b.json"
    assert refused(inner) == f"cannot read {inner}: Not a directory"
    assert "cannot read" in refused(Path("a\0b"))


def test_a_folder_or_archive_without_traces(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert refused(tmp_path).startswith(f"{tmp_path} holds no trace: none of its files ends in")
    path = tmp_path / "empty.zip"
    path.write_bytes(a_zip({}))
    assert refused(path) == f"{path} is an empty archive"


def test_a_file_or_folder_that_may_not_be_read(tmp_path: Path) -> None:
    fill(tmp_path, ["closed/a.json", "open/b.json"])
    (tmp_path / "open" / "b.json").chmod(0)
    (tmp_path / "closed").chmod(0)
    try:
        if os.access(tmp_path / "closed", os.R_OK):
            pytest.skip("this user may read everything")
        for path in (tmp_path / "open" / "b.json", tmp_path / "closed", tmp_path / "closed/a.json"):
            assert refused(path) == f"cannot read {path}: Permission denied"
        assert "Permission denied" in refused(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_what_the_system_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, ["a.json"])

    def no(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "a.json"))

    monkeypatch.setattr(Path, "open", no)
    assert refused(tmp_path) == f"cannot read {tmp_path / 'a.json'}: Permission denied"
    monkeypatch.setattr(os, "scandir", no)
    assert "Permission denied" in refused(tmp_path)


@pytest.mark.parametrize("keep", [0.05, 0.5, 0.99])
def test_a_gz_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "cut.json.gz"
    packed = gzip.compress(trace("lib::a", 5000))
    path.write_bytes(packed[: int(len(packed) * keep)])
    session = opscope.load(path)
    assert 0 < len(session.spans) < 5000
    assert "compressed data are damaged or end early" in session.processes[0].damage


def test_a_gz_with_a_broken_byte_or_something_behind_it(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(trace("lib::a", 5000)))
    path = tmp_path / "a.json.gz"
    path.write_bytes(packed + b"something else")
    session = opscope.load(path)
    assert len(session.spans) == 5000
    assert "compressed data" in session.processes[0].damage
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    session = opscope.load(path)
    assert 0 < len(session.spans) <= 5000
    assert session.processes[0].damage


@pytest.mark.parametrize(
    "data", [b"\x1f\x8b", gzip.compress(b"x" * 999, mtime=0)[:10], b"\x1f\x8b\7" * 9]
)
def test_a_gz_of_which_nothing_is_left(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(data)
    assert refused(path).startswith(f"cannot read {path}: ")


def test_a_zip_that_was_cut_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    whole = a_zip({"a.json": trace("lib::a", 99), "b.json": trace("lib::b", 99)})
    path.write_bytes(whole[: len(whole) // 2])
    assert refused(path).startswith(f"cannot read {path}: the archive is cut or damaged (")
    assert "zip -FF" in refused(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_zip_with_a_broken_byte_never_fails_but_by_name(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    files = {"a.json": trace("lib::a", 300), "b.json.gz": gzip.compress(trace("lib::b", 9))}
    whole = a_zip(files, method)
    told = set()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            assert len(opscope.load(path).spans) <= 309
        except InputError as error:
            told.add(str(error))
    assert told
    assert all(str(path) in text for text in told)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_whose_check_sum_is_wrong_is_read_and_told(tmp_path: Path, method: int) -> None:
    whole = bytearray(a_zip({"a.json": trace("lib::a", 9)}, method))
    whole[whole.index(b"PK\1\2") + 16] ^= 0xFF
    whole[14] ^= 0xFF
    path = tmp_path / "a.zip"
    path.write_bytes(whole)
    session = opscope.load(path)
    assert len(session.spans) == 9
    assert "check sum" in session.processes[0].damage


def test_a_zip_that_is_locked_or_packed_in_an_unknown_way(tmp_path: Path) -> None:
    whole = bytearray(a_zip({"a.json": trace("lib::a")}))
    central = whole.index(b"PK\1\2")
    path = tmp_path / "a.zip"
    for here, there, value in ((6, 8, 1), (8, 10, 99)):
        changed = bytearray(whole)
        changed[here] = changed[central + there] = value
        path.write_bytes(changed)
        assert refused(path).startswith(f"cannot read {path}/a.json: ")


def test_an_archive_in_an_archive_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(a_zip({"b.zip": a_zip({"a.json": trace("lib::a")})}))
    assert "b.zip is neither" in (told := refused(path))
    assert "unpack" in told
