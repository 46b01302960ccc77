"""A file that was cut anywhere, or flipped anywhere, gives what is whole and says what is lost."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.errors import InputError
from opscope.model import SPAN, Flag, Session
from opscope.sessions import summary
from opscope.store import load, parse

HEAD, FRAME = 12, 12


def frame_ends(data: bytes) -> list[int]:
    """Where each frame ends, read without the code under test."""
    ends = [HEAD]
    while ends[-1] < len(data):
        _, length, _ = struct.unpack_from("<4sII", data, ends[-1])
        ends.append(ends[-1] + FRAME + length)
    return ends


def finished(session: Session) -> dict[int, tuple[int, ...]]:
    """The spans that are not shown as incomplete, by id."""
    done = session.spans[session.spans["flags"] & Flag.INCOMPLETE == 0]
    return {row[0]: row for row in done.tolist()}


def test_every_prefix_loads(whole: bytes, facts: Any, tmp_path: Path) -> None:
    ends = frame_ends(whole)
    assert len(ends) == len(facts) + 1
    path = tmp_path / "cut.opscope"
    for size in range(1, len(whole) + 1):
        path.write_bytes(whole[:size])
        session = load([path])
        (process,) = session.processes
        complete = max((n for n, end in enumerate(ends) if end <= size), default=0)
        told = facts[:complete]
        spans = b"".join(data for word, data in told if word == "spans")
        expected = {row[0]: row for row in np.frombuffer(spans, SPAN).tolist()}
        assert finished(session) == expected, size
        assert process.complete == (size == len(whole))
        assert bool(process.damage) == (size not in ends), size
        begun = {row[0] for word, data in told if word == "open" for row in data}
        assert set(session.spans["id"].tolist()) == set(expected) | begun
        if process.damage and size > HEAD:
            lost = size - ends[complete]
            assert process.damage == (
                f"the file ends inside a frame at byte {ends[complete]} ({lost} bytes lost)"
            )


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.opscope"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        load([path])


def test_every_flipped_byte_loses_that_frame_alone(whole: bytes) -> None:
    ends = frame_ends(whole)
    intact = finished(parse(whole, "x"))
    for at in range(len(whole)):
        for mask in (0x01, 0x80, 0xFF):
            bad = bytearray(whole)
            bad[at] ^= mask
            if at < 8 or int.from_bytes(bad[8:10], "little") > 1:
                # The magic and the version: not ours, or not ours yet.
                with pytest.raises(InputError):
                    parse(bytes(bad), "x")
                continue
            session = parse(bytes(bad), "x")
            assert finished(session).items() <= intact.items()
            assert len(session.names) <= 3
            if at >= HEAD:
                start = max(end for end in ends if end <= at)
                assert f"at byte {start} " in session.processes[0].damage
                lost = min(end for end in ends if end > at) - start
                assert f"({lost} bytes lost)" in session.processes[0].damage
                if at >= start + FRAME:  # its length is as it was
                    assert session.processes[0].damage.startswith("a damaged frame")
                assert mask != 0xFF or summary(session) is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_mix_of_damage_is_survived(whole: bytes, data: st.DataObject) -> None:
    place = st.integers(HEAD, len(whole))
    pieces = data.draw(st.lists(st.tuples(place, place, st.binary(max_size=40)), max_size=5))
    bad = whole[:HEAD] + b"".join(whole[a:b] + noise for a, b, noise in pieces)
    session = parse(bad, "x")
    intact = finished(parse(whole, "x"))
    assert finished(session).items() <= intact.items()
    assert summary(session) is not None
