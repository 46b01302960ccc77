"""A disk that fills up: the program goes on, the file stays whole, and it is said once."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.errors import UsageError
from opscope.store import FileSink, load

SCRIPT = """
import resource, sys, time
import opscope

@opscope.custom_op
def work():
    pass

resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
with opscope.profile(output=sys.argv[1]) as profile:
    for round in range(20):
        for _ in range(100):
            work()
        profile.session
print("the program went on", flush=True)
"""


class Disk:
    """A raw file with room for so many bytes, and then for half of what is asked, and then none."""

    def __init__(self, inner: Any, room: int) -> None:
        self.inner, self.room = inner, room

    def write(self, data: Any) -> int:
        taken = min(len(data), self.room)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= taken
        written: int = self.inner.write(data[:taken])
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_failed_write_leaves_the_file_at_its_last_whole_frame(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "s.opscope")
    sink.put("notes", ["kept"])
    sink.flush()
    size = sink.path.stat().st_size
    sink._file = Disk(sink._file, room=10)  # type: ignore[assignment]
    sink.put("notes", ["lost"])
    with pytest.raises(OSError, match="No space"):
        sink.flush()
    assert sink.path.stat().st_size == size
    sink._file.room = 10**6  # type: ignore[attr-defined]
    sink.put("notes", ["later"])
    sink.close()
    (process,) = load([sink.path]).processes
    assert (process.notes, process.damage) == (("kept", "later"), "")


def test_a_recording_goes_on_without_its_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work = opscope.custom_op("work")(lambda: 5)
    path = tmp_path / "s.opscope"
    recording = opscope.profile(output=path)
    with caplog.at_level(logging.ERROR, "opscope"), recording:
        work()
        assert len(recording.session.spans) == 1
        recording._sink._file = Disk(recording._sink._file, room=100)  # type: ignore[union-attr]
        for _ in range(5):
            assert work() == 5
            recording.session  # noqa: B018
    (said,) = caplog.messages
    assert said.startswith("opscope: the recording cannot be written any more and ends here")
    assert "No space left" in said
    session = load([path])
    assert len(session.spans) == 1
    assert not session.processes[0].complete
    assert session.processes[0].damage == ""
    assert recording._writer is not None
    assert recording._writer.lost == 5


def test_no_room_for_the_head_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.opscope"
    opened = open
    monkeypatch.setattr(
        "opscope.store.sink.open",
        lambda *args, **more: Disk(opened(*args, **more), room=5),
        raising=False,
    )
    with pytest.raises(UsageError, match="No space left"):
        FileSink(path)
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_stays_when_the_head_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    opened = open
    monkeypatch.setattr(
        "opscope.store.sink.open",
        lambda *args, **more: Disk(opened(*args, **more), room=5),
        raising=False,
    )
    with pytest.raises(UsageError, match="No space left"):
        FileSink(pipe, force=True)
    assert pipe.is_fifo()
    os.close(reader)


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
@pytest.mark.parametrize("limit", [12, 13, 100, 5000, 20_000])
def test_a_limit_of_the_system_is_met_the_same_way(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "s.opscope"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(limit=limit), path],
        env={**os.environ, "PYTHONPATH": str(Path(opscope.__file__).parents[1])},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "the program went on\n"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "cannot be written any more" in done.stderr
    session = load([path])
    assert len(session.spans) % 100 == 0
    assert len(session.spans) <= limit // 64
    assert not session.processes[0].complete
    assert session.processes[0].damage == ""
