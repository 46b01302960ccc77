"""What a file is, told by its beginning."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.builders import session as made
from tests.builders import span
from tests.importers.written import FORMATS, Written

import opscope
from opscope.errors import InputError
from opscope.importers import Member, members, read
from opscope.importers.reading import kind_of
from opscope.model import Kind

TRACES = Path(__file__).parents[3] / "shared" / "traces"
FOREST = [Written("lib::a", 0, 0, 50, -1), Written("aten::b", 0, 10, 20, 0)]
needs_chrome = pytest.mark.skipif(
    importlib.util.find_spec("opscope.importers.chrome") is None, reason="no importer of Chrome's"
)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_known_by_what_is_in_it(name: str) -> None:
    assert kind_of(FORMATS[name].write(FOREST)) == FORMATS[name].kind


@pytest.mark.parametrize("folder", ["kineto", "mxnet", "hostile"])
def test_real_files_are_known(folder: str) -> None:
    if not TRACES.exists():
        pytest.skip(f"no {TRACES}")
    wanted = {"kineto": "kineto", "mxnet": "mxnet", "hostile": "chrome"}[folder]
    for path in sorted((TRACES / folder).iterdir()):
        if path.name.endswith((".json.gz", ".json")) and "truth" not in path.name:
            (member,) = members(path)
            assert kind_of(member.head()) == wanted, path.name


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b'{"schemaVersion": 1, "traceEvents": []}', "kineto"),
        (b'{"traceEvents": [], "baseTimeNanoseconds": 5}', "kineto"),
        (b'[{"ph":"X","cat":"Operator","name":"aten::a"}]', "kineto"),
        (b'[{"ph":"X","cat":"Kernel","name":"k"}]', "kineto"),
        (b'[{"ph":"X","name":"a","args":{"External id":3}}]', "kineto"),
        (b'{"traceEvents":[{"cat":"operator","ph":"b"}]}', "mxnet"),
        (b'[{"ph":"X","cat":"FEE","name":"f (a.py:1)"}]', "viztracer"),
        (b'[{"ph":"X","cat":"other","name":"operator"}]', "chrome"),
        (b'[{"ph":"X","name":"Custom Operator"}]', "chrome"),
        (b"[]", "chrome"),
        (b"{}", "chrome"),
        (b'\xef\xbb\xbf  [{"ph":"X"}]', "chrome"),
        (b'\0\0\n[{"ph":"X"}]', "chrome"),
        (b'\n\n{"traceEvents": []}', "chrome"),
        (b'me": "cut head", "ph": "X", "ts": 1}, {', "chrome"),
        (b"\x0a\x80\x01\x08\x07\x12\x05/host", "xplane"),
        (b"\x0a\x05\x12\x03abc", "xplane"),
        (b"\nA text that begins with an empty line", None),
        (b"\n", None),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x08", None),
        (b"\x0a\x00", None),
        (b"", None),
        (b"\0" * 100, None),
        (b"\x7fELF\x02\x01", None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"PK\x03\x04", None),
        (b"\x1f\x8b", None),
        (b"name,calls\n", None),
        (b"<html>", None),
    ],
)
def test_kinds_by_their_beginning(head: bytes, kind: str | None) -> None:
    assert kind_of(head) == kind


@needs_chrome
def test_what_opscope_exported_is_no_profile_of_mxnet_s(tmp_path: Path) -> None:
    lines = [span(1, "Scale", Kind.CALL, 0, 100), span(2, "dot", Kind.OP, 10, 20, owner=1)]
    path = tmp_path / "trace.json"
    opscope.export(made(lines), path)
    assert kind_of(path.read_bytes()) == "opscope"
    again = opscope.load(path)
    assert [again.names[name] for name in again.spans["name"].tolist()] == ["Scale", "dot"]


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF\x02\x01", b"hello", bytes(range(1, 256)), b"\0" * 9]
)
def test_what_is_no_trace_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read(Member("some/file", lambda: io.BytesIO(data)))
    assert str(caught.value).startswith("some/file is ")
    if data:
        assert repr(data[:16]) in str(caught.value)
        assert "kineto" in str(caught.value)


@needs_chrome
@pytest.mark.parametrize("text", ["{}", "[]", '{"a": 1}', "[1, 2]", "{", "[[[[", '{"traceEvents"'])
def test_json_without_events_is_a_session_that_says_so(text: str) -> None:
    session = read(Member("x", lambda: io.BytesIO(text.encode())))
    assert len(session.spans) == 0
    assert "no events were found" in session.processes[0].damage


def command(*args: object) -> tuple[int, str, str]:
    """(exit code, output, errors) of the command."""
    run = [sys.executable, "-W", "error", "-m", "opscope", *map(str, args)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("data", [b"", b"\0\1\2\3", b"\x1f\x8b\x08", b"PK\x03\x04 cut"])
def test_the_command_says_which_file_and_returns_three(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(data)
    code, out, told = command("report", path)
    assert (code, out) == (3, "")
    assert "some.json" in told.replace("\n", "")
    assert "Traceback" not in told


def test_two_vendors_are_one_report_and_so_is_an_archive_of_both(tmp_path: Path) -> None:
    names = ["bert_small_h100.json.gz", "bert_small_mi300.json.gz"]
    paths = [TRACES / "kineto" / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip(f"no {paths}")
    archive = tmp_path / "both.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in paths:
            out.write(path, path.name)
    told = []
    for what in (paths, [archive]):
        code, table, errors = command("report", "--custom", "aten::linear", *what)
        assert (code, errors) == (0, "")
        assert "aten::linear" in table
        told.append(command("report", "--json", "--custom", "aten::linear", *what))
    assert told[0] == told[1]
    calls = [json.loads(line)["calls"] for line in told[0][1].splitlines()]
    session = opscope.load(*paths)
    assert (len(session.processes), len(session.spans)) == (2, 674 + 743)
    assert calls == [sum(session.names[row["name"]] == "aten::linear" for row in session.spans)]


def test_the_head_of_a_member_and_the_whole(tmp_path: Path) -> None:
    data = json.dumps(list(range(50_000))).encode()
    packed = gzip.compress(data)
    path = tmp_path / "x"
    for some, whole in ((data, True), (packed, True), (packed[: len(packed) // 2], False)):
        path.write_bytes(some)
        (member,) = members(path)
        read, why = member.whole()
        assert (read == data, why == "") == (whole, whole)
        assert data.startswith(read)
        assert member.head() == data[: 1 << 16]
    with member.opened() as stream, pytest.raises(OSError, match="end-of-stream"):
        stream.read()
    assert Member("y", lambda: io.BytesIO(data)).whole() == (data, "")
