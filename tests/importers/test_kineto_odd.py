"""PyTorch traces with values that should not be there: told and counted, never raised."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from opscope.analyse.summary import summary
from opscope.importers import Member, read
from opscope.importers.documents.typed import ODD
from opscope.model import Session

#: A stamp from 1970, which makes the reader keep stamps as text, and an early one.
EPOCH, EARLY = 1_616_161_616_161_616, 10
_GOOD = {"ph": "X", "cat": "cpu_op", "name": "lib::good", "pid": 7, "tid": 11, "dur": 5}


def session(*events: dict[str, Any], first: int = EARLY, **head: Any) -> Session:
    """Of these events behind a good one."""
    odd = {**_GOOD, "ts": first, "name": "lib::odd"}
    every = [{**_GOOD, "ts": first}, *({**odd, **event} for event in events)]
    return of_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": every}))


def of_text(text: str) -> Session:
    found = read(Member("some.json", lambda: io.BytesIO(text.encode())))
    assert found.sight[0].host == "kineto"
    assert (found.spans["start_ns"] <= found.spans["end_ns"]).all()
    assert summary(found)
    return found


def findings(found: Session) -> dict[str, int]:
    return {one.what: one.count for one in found.processes[0].findings}


@pytest.mark.parametrize("first", [EARLY, EPOCH])
@pytest.mark.parametrize("field", ["ts", "dur"])
@pytest.mark.parametrize(
    "value",
    [None, "abc", "", "-", [1], {"a": 1}, True, "1e999", 10**30, -(10**30), 1e300, 9e15, "9" * 40],
    ids=str,
)
def test_stamps_that_are_none_are_counted(first: int, field: str, value: object) -> None:
    found = session({field: value}, first=first)
    told = {found.names[row["name"]]: row for row in found.spans}
    assert (told["lib::good"]["start_ns"], told["lib::good"]["end_ns"]) == (
        first * 1000,
        first * 1000 + 5000,
    )
    assert findings(found) or (field, value) == ("dur", None)


@pytest.mark.parametrize("first", [EARLY, EPOCH])
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "nan"])
def test_numbers_that_json_does_not_have(first: int, word: str) -> None:
    good = json.dumps({**_GOOD, "ts": first})
    odd = good.replace('"dur": 5', f'"dur": {word}').replace("lib::good", "lib::odd")
    found = of_text(f'{{"schemaVersion": 1, "traceEvents": [{good}, {odd}]}}')
    assert len(found.spans) == 2
    assert findings(found)


@pytest.mark.parametrize(
    "key", ["External id", "external id", "correlation", "Sequence number", "Fwd thread id"]
)
@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**70, -(2**70)])
def test_numbers_of_any_size_in_arguments(key: str, value: int) -> None:
    assert len(session({"args": {key: value}}).spans) == 2


@pytest.mark.xfail(reason="numbers past 63 bits are taken for none, and join nothing")
@pytest.mark.parametrize("value", [2**64 - 1, 2**63 + 5])
def test_large_correlations_still_join(value: int) -> None:
    found = session(
        {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": value}},
        {"cat": "kernel", "name": "k", "tid": 3, "args": {"correlation": value}},
        {"cat": "kernel", "name": "l", "tid": 3, "args": {"correlation": value - 1}},
    )
    assert len(found.links) == 1
    assert findings(found) == {"device spans without a launching operator": 1}


@pytest.mark.parametrize("args", [None, [], [1], "text", 5])
def test_arguments_of_any_type(args: object) -> None:
    assert len(session({"args": args}).spans) == 2


@pytest.mark.parametrize("key", ["External id", "correlation"])
@pytest.mark.parametrize("value", ["7", "x", 7.0, 7.5, None, [7]])
def test_numbers_in_arguments_of_any_type(key: str, value: object) -> None:
    assert len(session({"args": {key: value}}).spans) == 2


@pytest.mark.parametrize("number", ["a", -1, 2**31, 2**70, 1.5, None, True, [1]], ids=str)
def test_threads_and_processes_of_any_type(number: object) -> None:
    found = session({"tid": number, "name": "lib::a"}, {"pid": number, "name": "lib::b"})
    assert len(found.spans) == 3
    told = {found.names[row["name"]]: int(row["lane"]) for row in found.spans}
    assert told["lib::a"] != told["lib::b"]
    assert all(0 <= lane.thread < 2**31 for lane in found.lanes)


@pytest.mark.parametrize("value", [None, 5, ["a"], "", "\ud800", "\0", "x" * 100_000], ids=str)
def test_names_of_any_type_are_spans(value: object) -> None:
    assert len(session({"name": value}).spans) == 2


def test_an_event_without_arguments_or_anything_is_one() -> None:
    text = '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1}, %s]}'
    found = of_text(text % json.dumps({**_GOOD, "ts": 3}))
    assert len(found.spans) == 2


def test_a_span_without_a_time_is_counted_and_does_not_stretch_the_session() -> None:
    """At 0 the recording would seem to have begun days before."""
    good = [{**_GOOD, "ts": 3743411230047 + at} for at in range(0, 60, 20)]
    none = {key: value for key, value in _GOOD.items() if key != "dur"}
    text = json.dumps({"schemaVersion": 1, "traceEvents": [*good, none]})
    found = of_text(text)
    assert findings(found)
    assert found.processes[0].start_ns == 3743411230047000


def test_negative_durations_are_told_with_the_place_in_the_file() -> None:
    events = [{"ts": 10 * at} for at in range(1, 40_000)]
    events[-1] |= {"dur": -3}
    (found,) = session(*events).processes[0].findings
    assert found.count == 1
    (place,) = found.places
    # The number of the event, or its place in bytes: not one in the block that was being read.
    assert int(place) >= 39_999


def test_ids_that_stand_for_two_things_are_counted() -> None:
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": 9}}
    work = {"cat": "kernel", "name": "k", "tid": 3, "args": {"correlation": 9}}
    found = session(launch, {**launch, "ts": 30}, work)
    assert len(found.spans) == 4
    assert any("twice" in what or "duplicate" in what or "same" in what for what in findings(found))


@pytest.mark.parametrize(
    "base", [None, "1767189312000000000", 2**70, 1.5e18, True, [1], -5], ids=str
)
def test_a_base_that_is_none_tells_no_wall_clock(base: object) -> None:
    """Stamps of a few seconds do not count from 1970 either."""
    (process,) = session({}, baseTimeNanoseconds=base).processes
    told = ((10_000, 1767189312000010000),) if isinstance(base, str) else ()
    assert process.anchors in ((), told)


@pytest.mark.parametrize("first", [EARLY, EPOCH])
def test_arrows_of_any_shape(first: int) -> None:
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "dur": 0}
    found = session(
        {**flow, "ph": "s", "id": {"a": 1}},
        {**flow, "ph": "f", "id": 2**80, "ts": "x"},
        {**flow, "ph": "f", "id": "7", "ts": None},
        {**flow, "ph": "s", "id": None, "tid": [3]},
        first=first,
    )
    assert len(found.spans) == 1
    assert findings(found)[ODD] >= 1


def test_fractions_stay_exact_where_only_late_stamps_count_from_1970() -> None:
    """A long beginning of other events does not change how the rest is read."""
    filler = [{"ph": "M", "name": "process_labels", "pid": at, "args": {}} for at in range(2000)]
    text = json.dumps({"schemaVersion": 1, "traceEvents": [*filler, {**_GOOD, "ts": 0}]})
    found = of_text(text.replace('"ts": 0', f'"ts": {EPOCH}.123'))
    assert found.spans["start_ns"].tolist() == [EPOCH * 1000 + 123]
