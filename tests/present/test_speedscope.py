"""Speedscope files: as the schema and its reader demand, the slices of the Chrome trace."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import given, settings
from tests.builders import op, session, span
from tests.present.test_chrome import lines_of_a_session
from tests.present.trace import events, slices

from opscope.model import Kind, Lane, Process, Session
from opscope.present.speedscope import write_speedscope

Slice = tuple[str, int, int]


def written(made: Session) -> dict[str, Any]:
    file = io.StringIO()
    write_speedscope(made, file)
    assert file.getvalue().isascii()
    found: dict[str, Any] = json.loads(file.getvalue())
    return found


def check(made: Session) -> dict[str, list[Slice]]:
    """All that must hold of any file; returns (name, start, duration) by profile, as they began."""
    found = written(made)
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = found["shared"]["frames"]
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    for frame in frames:
        assert isinstance(frame["name"], str)
        assert frame.keys() <= {"name", "file", "line"}
    shown = {}
    for profile in found["profiles"]:
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        now, stack = profile["startValue"], []
        every: list[Slice] = []
        assert now == 0
        for event in profile["events"]:
            assert event.keys() == {"type", "frame", "at"}
            assert now <= event["at"] <= profile["endValue"]
            now = event["at"]
            if event["type"] == "O":
                stack.append((event["frame"], len(every)))
                every.append((frames[event["frame"]]["name"], now, -1))
                continue
            assert event["type"] == "C"
            frame, place = stack.pop()
            assert frame == event["frame"], "what is innermost ends first"
            every[place] = (*every[place][:2], now - every[place][1])
        assert not stack
        assert profile["name"] not in shown
        shown[profile["name"]] = every
    chrome = sorted((e["name"], e["ts"], e["dur"]) for e in slices(events(made)))
    assert sorted(entry for of_one in shown.values() for entry in of_one) == chrome
    return shown


def test_lanes_and_nesting() -> None:
    lines = [
        span(1, "A", Kind.CALL, 1000, 2000),
        span(2, "x", Kind.OP, 1200, 1300, owner=1),
        span(3, "end", Kind.OP, 2000, 2000, owner=1),
        span(4, "a", Kind.OP, 1000, 1100, lane="w"),
        span(5, "b", Kind.OP, 1050, 1150, lane="w"),
    ]
    assert check(session(lines, lanes=["nothing"])) == {
        "main": [
            *(("A", 0, 1000), ("A::pure_python", 0, 200), ("A::x", 200, 100)),
            *(("A::pure_python", 300, 700), ("A::end", 1000, 0)),
        ],
        "w": [("a", 0, 100)],
        "w (2)": [("b", 50, 100)],
    }


def test_frames_know_where_the_function_is() -> None:
    made = op("A", file="/x/a.py", line=7)
    lines = [span(1, made, Kind.CALL, 0, 100), span(2, "x", Kind.OP, 10, 20, owner=1)]
    assert written(session(lines))["shared"]["frames"] == [
        {"name": "A", "file": "/x/a.py", "line": 7},
        {"name": "A::x"},
        {"name": "A::pure_python", "file": "/x/a.py", "line": 7},
    ]


def test_lanes_of_several_processes_are_told_apart() -> None:
    lanes = [Lane("main"), Lane("other", process=1)]
    lines = [span(n, "x", Kind.OP, 0, 1, lane=lane.name) for n, lane in enumerate(lanes, 1)]
    made = session(lines, lanes=lanes, processes=[Process(pid=5, command=("a",)), Process(pid=6)])
    assert list(check(made)) == ["main, pid 5", "other, pid 6"]
    assert written(made)["name"] == "a"


def test_nothing() -> None:
    assert check(session([])) == {}


@settings(max_examples=200, deadline=None)
@given(lines_of_a_session())
def test_any_session(lines: Any) -> None:
    check(session(lines))
