"""What cannot be a session is an InputError that names the file. So with what cannot be written."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from opscope.errors import InputError, UsageError
from opscope.store import FileSink, is_session, load, parse


def refused(path: Any) -> str:
    with pytest.raises(InputError) as caught:
        load([path])
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_a_newer_file_names_the_cure(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "new.opscope"
    path.write_bytes(whole[:8] + (2).to_bytes(2, "little") + whole[10:])
    assert f"{path} was written by a newer opscope (format 2;" in refused(path)
    assert "pip install -U opscope" in refused(path)


@pytest.mark.parametrize("data", [b"{}", b"\x89PNG\r\n", b"opscope", b"\0" * 64, b"\x89opscopf"])
def test_a_foreign_file_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign.json"
    path.write_bytes(data)
    assert not is_session(data)
    assert f"{path} is not an opscope session: it begins with" in refused(path)


def test_a_folder_a_missing_file_a_loop_and_odd_paths_are_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert refused(tmp_path) == f"cannot read {tmp_path}: Is a directory"
    assert refused(tmp_path / "no") == f"cannot read {tmp_path / 'no'}: No such file or directory"
    assert refused(loop).startswith(f"cannot read {loop}: ")
    assert "null" in refused("nul\0")
    with pytest.raises(InputError, match="no file was named"):
        load([])


def test_an_unreadable_file_is_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "secret.opscope"
    path.write_bytes(whole)
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        assert refused(path) == f"cannot read {path}: Permission denied"
    else:
        pytest.skip("whoever runs this may read everything")


def test_one_bad_file_of_several_is_named(whole: bytes, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.opscope", tmp_path / "bad.opscope"
    good.write_bytes(whole)
    bad.write_bytes(b"no")
    with pytest.raises(InputError, match=r"bad\.opscope is not an opscope session"):
        load([good, bad])


def test_an_output_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "s.opscope"
    path.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists: choose another name, or overwrite it with"):
        FileSink(path)
    assert path.read_bytes() == b"mine"
    FileSink(path, force=True).close()
    assert load([path]).processes[0].damage == ""


@pytest.mark.parametrize("force", [False, True])
def test_an_output_that_cannot_be_is_a_usage_error(tmp_path: Path, force: bool) -> None:
    for path, reason in (
        (tmp_path, "folder|directory"),
        (tmp_path / "no" / "s.opscope", "No such file"),
        ("nul\0", "null"),
    ):
        with pytest.raises(UsageError, match=f"cannot write .*({reason})"):
            FileSink(path, force=force)


@pytest.mark.parametrize(
    "payload", [b"", b"nul", b"[]", b"{}", b"7", b'[[1,"a"]]', b'"x"', b"\xff"]
)
def test_a_whole_frame_without_sense_is_told(whole: bytes, payload: bytes) -> None:
    intact = parse(whole, "x")
    for tag in (b"PROC", b"NAME", b"LANE", b"OPER", b"OPEN", b"LINK", b"TIME", b"SIGH", b"DONE"):
        crc = zlib.crc32(payload, zlib.crc32(tag))
        frame = struct.pack("<4sII", tag, len(payload), crc) + payload
        session = parse(whole[:12] + frame + whole[12:], "x")
        assert session.spans.tolist() == intact.spans.tolist()
        assert session.names == intact.names
        if payload[:1] != b"[" and payload != b"{}":
            assert "makes no sense" in session.processes[0].damage, tag
