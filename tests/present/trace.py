"""Reads a Chrome trace as strictly as nobody else does, in whole nanoseconds."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np

from opscope.model import Flag, Kind, Session
from opscope.present import write_chrome

Event = dict[str, Any]


def events(session: Session) -> list[Event]:
    """All events of the session's trace, `ts` and `dur` as nanoseconds."""
    file = io.StringIO()
    write_chrome(session, file)
    text = file.getvalue()
    text.encode("utf-8")  # a lone surrogate could not be written
    whole = json.loads(text, parse_constant=_refuse, parse_float=_nanoseconds)
    assert whole["displayTimeUnit"] == "ns"
    found: list[Event] = whole["traceEvents"]
    return found


def slices(found: list[Event]) -> list[Event]:
    return [event for event in found if event["ph"] == "X"]


def check(session: Session) -> list[Event]:
    """Everything that must hold of any trace; returns its events."""
    found = events(session)
    shown = sorted(event["args"]["id"] for event in slices(found) if "id" in event["args"])
    assert shown == sorted(session.spans["id"].tolist()), "one slice for each span"
    lanes: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in slices(found):
        assert event["dur"] >= 0
        lanes[event["pid"], event["tid"]].append(event)
    for of_one in lanes.values():
        _no_crossing(of_one)
    threads = [e for e in found if e["ph"] == "M" and e["name"] == "thread_name"]
    assert sorted(e["tid"] for e in threads) == list(range(1, len(threads) + 1))
    assert lanes.keys() <= {(e["pid"], e["tid"]) for e in threads}
    _arrows_bind(found, lanes)
    _holes_are_free(session, found)
    return found


def _no_crossing(events: list[Event]) -> None:
    """In the order of the file, with a stack: each slice lies inside what is open."""
    stack: list[tuple[int, int]] = []
    last = None
    for event in events:
        start, end = event["ts"], event["ts"] + event["dur"]
        assert last is None or (start, -end) >= last, "in order of time, outer first"
        last = (start, -end)
        while stack and (stack[-1][1] < start or (stack[-1][1] == start and end > start)):
            stack.pop()
        assert not stack or end <= stack[-1][1], f"{event['name']} crosses"
        stack.append((start, end))


def _arrows_bind(found: list[Event], lanes: dict[tuple[int, int], list[Event]]) -> None:
    starts = [event for event in found if event["ph"] == "s"]
    ends = [event for event in found if event["ph"] == "f"]
    assert [event["id"] for event in starts] == list(range(1, len(starts) + 1))
    assert [event["id"] for event in ends] == [event["id"] for event in starts]
    for event in (*starts, *ends):
        at = event["ts"]
        assert any(
            slice_["ts"] <= at <= slice_["ts"] + slice_["dur"]
            for slice_ in lanes[event["pid"], event["tid"]]
        ), "an arrow in the air"
    for start, end in zip(starts, ends, strict=True):
        assert start["ts"] <= end["ts"], "back in time"
        assert end["bp"] == "e"


def _holes_are_free(session: Session, found: list[Event]) -> None:
    """Own time overlaps nothing that lies inside its call on its lane, but what was suspended."""
    spans = session.spans
    row = {ident: index for index, ident in enumerate(spans["id"].tolist())}
    zero = session.start_ns
    asleep = (spans["kind"] == Kind.WAIT) & (spans["flags"] & Flag.SUSPENDED != 0)
    for event in slices(found):
        if "id" in event["args"]:
            continue
        call = spans[row[event["args"]["call"]]]
        start, end = event["ts"] + zero, event["ts"] + event["dur"] + zero
        assert call["start_ns"] <= start < end <= call["end_ns"]
        waits = asleep & (spans["owner"] == call["id"]) & (spans["end_ns"] <= start)
        woken = max(call["start_ns"], spans["end_ns"][waits].max(initial=0))
        inside = (
            (spans["lane"] == call["lane"])
            & (spans["id"] != call["id"])
            & (spans["start_ns"] > woken)
            & (spans["kind"] < 8)
            & (spans["end_ns"] > spans["start_ns"])
        )
        overlap = inside & (spans["start_ns"] < end) & (spans["end_ns"] > start)
        covered = asleep & (spans["start_ns"] <= start) & (spans["end_ns"] >= end)
        assert call["id"] not in spans["owner"][covered]
        overlap &= ~(covered | np.isin(spans["id"], spans["owner"][covered]))
        assert not overlap.any()


def _nanoseconds(text: str) -> int:
    whole, point, decimals = text.partition(".")
    assert point, text
    assert len(decimals) == 3, text
    return int(Decimal(whole) * 1000 + int(decimals))


def _refuse(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")
