"""Perfetto traces say what Chrome traces say: read by a decoder of our own, and by the official."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import op, session, span
from tests.present import trace
from tests.present.test_chrome import lines_of_a_session

from opscope.model import Flag, Kind, Lane, LinkKind, Phase, Process, Session
from opscope.present import perfetto
from opscope.present.perfetto import write_perfetto
from opscope.present.protobuf_out import Messages, number, varint

Fields = dict[int, list[Any]]

# --- a decoder ------------------------------------------------------------------------------------


def decode(data: bytes) -> Fields:
    """The fields of a message by number; those of messages and strings as bytes."""
    found: Fields = {}
    place = 0

    def read() -> int:
        nonlocal place
        value = shift = 0
        while True:
            octet = data[place]
            place += 1
            value |= (octet & 127) << shift
            if octet < 128:
                assert octet or not shift, "no longer than needed"
                return value
            shift += 7

    while place < len(data):
        field, kind = divmod(read(), 8)
        if kind == 0:
            value: Any = read()
        else:
            size = {1: 8, 2: 0}[kind] or read()
            value = data[place : place + size]
            assert len(value) == size
            place += size
            if kind == 1:
                value = int.from_bytes(value, "little")
        found.setdefault(field, []).append(value)
    assert place == len(data)
    return found


def one(fields: Fields, number: int, default: Any = None) -> Any:
    (value,) = fields.get(number, [default])
    return value


Event = dict[str, Any]


class Read:
    """A trace as a reader of packets sees it."""

    def __init__(self, data: bytes) -> None:
        self.tracks: dict[int, Fields] = {}
        self.names: dict[int, dict[int, str]] = {1: {}, 2: {}, 3: {}, 29: {}}
        self.slices: list[Event] = []
        self.flows: dict[int, list[Event]] = {}
        self._open: dict[int, list[Event]] = {}
        last: dict[int, int] = {}
        for number_, raw in enumerate(decode(data).get(1, [])):
            packet = decode(raw)
            assert one(packet, 10) == 1
            if 60 in packet:
                track = decode(one(packet, 60))
                assert one(track, 1) not in self.tracks
                self.tracks[one(track, 1)] = track
            elif 12 in packet:
                self._learn(decode(one(packet, 12)))
            elif 11 in packet:
                event, now = decode(one(packet, 11)), one(packet, 8)
                assert one(packet, 13) == 2
                assert last.get(one(event, 11), 0) <= now, "in order on each track"
                last[one(event, 11)] = now
                self._event(event, now, number_)
            else:
                assert (one(packet, 13), one(packet, 87)) == (1, 1)
                assert not any(self.names.values())
        assert not any(self._open.values()), "what begins ends"

    def _learn(self, data: Fields) -> None:
        for field, entries in data.items():
            for entry in map(decode, entries):
                iid = one(entry, 1)
                assert iid not in self.names[field]
                self.names[field][iid] = one(entry, 2).decode()

    def _event(self, event: Fields, now: int, order: int) -> None:
        stack = self._open.setdefault(one(event, 11), [])
        if one(event, 9) == 1:
            made = {
                "name": self.names[2][one(event, 10)],
                "cat": self.names[1][one(event, 3)],
                "tid": one(event, 11),
                "ts": now,
                "args": dict(map(self._argument, map(decode, event.get(4, [])))),
            }
            stack.append(made)
            self.slices.append(made)
        else:
            assert one(event, 9) == 2
            assert event.keys() <= {9, 11, 48}
            made = stack.pop()
            made["dur"] = now - made["ts"]
        for field in (47, 48):
            for flow in event.get(field, []):
                ends = self.flows.setdefault(flow, [None, None])
                assert ends[field - 47] is None
                ends[field - 47] = {"slice": made, "met": (now, order)}

    def _argument(self, entry: Fields) -> tuple[str, Any]:
        key = self.names[3][one(entry, 1)]
        if 12 in entry:
            return key, [self.names[29][one(decode(item), 17)] for item in entry[12]]
        if 17 in entry:
            return key, self.names[29][one(entry, 17)]
        return key, one(entry, 4)


def written(made: Session) -> bytes:
    file = io.BytesIO()
    write_perfetto(made, file)
    return file.getvalue()


def check(made: Session) -> Read:
    """Slices and arrows are those of the Chrome trace."""
    read, chrome = Read(written(made)), trace.events(made)

    def shown(event: Event) -> tuple[Any, ...]:
        args = [(key, value) for key, value in event["args"].items() if value is not None]
        return (*(event[key] for key in ("tid", "ts", "dur", "name", "cat")), sorted(args))

    theirs = sorted(map(shown, trace.slices(chrome)), key=repr)
    assert sorted(map(shown, read.slices), key=repr) == theirs
    ends = {event["id"]: event for event in chrome if event["ph"] == "f"}
    expected = []
    for start in (event for event in chrome if event["ph"] == "s"):
        expected.append((start["tid"], ends[start["id"]]["tid"], ends[start["id"]]["ts"]))
    found = []
    for source, target in read.flows.values():
        assert source["met"] < target["met"], "a reader meets the source first"
        found.append((source["slice"]["tid"], target["slice"]["tid"], target["slice"]["ts"]))
    for entry in found:
        expected.remove(entry)
    for source, tid, at in expected:  # left out: from a span to itself, or to one without length
        assert source == tid or (tid, at, 0) in {(e["tid"], e["ts"], e["dur"]) for e in read.slices}
    return read


# --- tests ----------------------------------------------------------------------------------------

LINES = [
    span(1, "A", Kind.CALL, 1000, 2000, phase=Phase.FORWARD, flags=Flag.FAILED, cpu_ns=300),
    span(2, "x", Kind.OP, 1500, 1600, owner=1, lane="w", submitted_ns=1100, submitted_lane="main"),
    span(3, "x", Kind.OP, 1550, 1700, owner=1, lane="w", submitted_ns=1200, submitted_lane="main"),
    span(4, "job", Kind.TASK, 1400, 1480, owner=1, lane="v"),
    span(5, "kernel", Kind.DEVICE, 1700, 1800, lane="stream"),
    span(6, "A", Kind.CALL, 3000, 3100, phase=Phase.BACKWARD, lane="autograd"),
    span(7, "gc", Kind.RUNTIME, 3100, 3100),
]
LINKS = [(LinkKind.LAUNCH, 2, 5), (LinkKind.BACKWARD, 6, 1)]


def test_slices_and_arrows() -> None:
    read = check(session(LINES, links=LINKS))
    assert len(read.flows) == 5
    call = next(event for event in read.slices if event["args"].get("id") == 1)
    assert call["args"] == {
        **{"id": 1, "kind": "call", "phase": "forward", "op": "A", "key": "python:A#1"},
        **{"flags": call["args"]["flags"], "cpu_ns": 300},
    }
    assert "failed" in call["args"]["flags"]


def test_tracks() -> None:
    lanes = [Lane("a", thread=2**63), Lane("b", process=1), Lane("s", "stream")]
    processes = [Process(pid=4_000_000_000, command=("/x/a.py", "-v")), Process(pid=5)]
    lines = [span(1, "x", Kind.OP, 0, 9, lane="s"), span(2, "x", Kind.OP, 5, 12, lane="s")]
    tracks = check(session(lines, lanes=lanes, processes=processes)).tracks
    threads = {
        uuid: (*(one(decode(one(track, 4)), n) for n in (1, 2, 5)), one(track, 5), one(track, 14))
        for uuid, track in tracks.items()
        if 4 in track
    }
    assert threads == {
        1: (1, 1, b"a", 5, f"thread, id {2**63}".encode()),
        2: (1, 2, b"s", 5, b"stream"),
        3: (1, 3, b"s (2)", 5, b"stream"),
        4: (2, 4, b"b", 6, b"thread"),
    }
    first, second = (decode(one(tracks[uuid], 3)) for uuid in (5, 6))
    assert first == {
        **{1: [1], 2: [b"/x/a.py", b"-v"], 3: [0]},
        **{6: [b"a.py -v (4000000000)"], 8: [b"pid 4000000000"]},
    }
    assert (one(second, 1), one(second, 6)) == (2, b"process 5")


def test_one_call_may_have_many_arrows() -> None:
    lines = [span(1, "A", Kind.CALL, 0, 10_000)]
    for n in range(2, 400):
        more: dict[str, Any] = {
            "owner": 1,
            "lane": "w",
            "submitted_ns": n,
            "submitted_lane": "main",
        }
        lines.append(span(n, "x", Kind.OP, n * 20, n * 20 + 5, **more))
    assert len(check(session(lines)).flows) == 398


def test_arrows_leave_the_own_time_in_which_something_was_started() -> None:
    more: dict[str, Any] = {"owner": 1, "lane": "w", "submitted_lane": "main"}
    lines = [
        span(1, "A", Kind.CALL, 0, 1000, phase=Phase.FORWARD),
        span(2, "zone", Kind.RANGE, 100, 300),
        span(3, "x", Kind.OP, 400, 500, owner=1),
        span(4, "in", Kind.OP, 950, 960, submitted_ns=50, **more),
        span(5, "zone", Kind.OP, 970, 980, submitted_ns=150, **more),
        span(6, "x", Kind.OP, 990, 995, submitted_ns=450, **more),
        span(7, "edge", Kind.OP, 996, 999, submitted_ns=500, **more),
        span(8, "A", Kind.CALL, 2000, 2100, phase=Phase.BACKWARD),
    ]
    flows = check(session(lines, links=[(LinkKind.BACKWARD, 8, 1)])).flows.values()
    assert sorted(
        (target["slice"]["name"], source["slice"]["name"], source["slice"]["ts"])
        for source, target in flows
    ) == [
        ("A::edge", "A::pure_python", 500),
        ("A::in", "A::pure_python", 0),
        ("A::x", "A::x", 400),
        ("A::zone", "A::pure_python", 100),
        ("_backward_A", "A", 0),
    ]


def test_portions_join(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(session(LINES, links=LINKS))
    for size in (1, 3):
        monkeypatch.setattr(perfetto, "_PORTION", size)
        assert written(session(LINES, links=LINKS)) == whole


def test_names_of_all_sorts() -> None:
    names = ["", "a\0b", "lone \ud800", "emoji 🦀", "y" * 300, "A::pure_python"]
    lines = [span(n, op(name), Kind.CALL, 9 * n, 9 * n + 5) for n, name in enumerate(names, 1)]
    read = Read(written(session(lines)))
    shown = [event["name"] for event in read.slices if "id" in event["args"]]
    assert shown == [name.replace("\ud800", "\\ud800") for name in names]


def test_large_times_and_ids() -> None:
    big = 3 * 10**18
    lines = [
        span(2**62 + 1, "A", Kind.CALL, big + 1, big + 10**16 + 2),
        span(2**62 + 2, "b", Kind.OP, big + 2, big + 10**16 + 2, owner=2**62 + 1),
    ]
    check(session(lines))


def test_nothing_is_a_trace_too() -> None:
    read = check(session([]))
    assert not read.slices
    assert len(read.tracks) == 1


def test_varints() -> None:
    values = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**32, 2**62, -1, -(2**63)]
    messages = Messages(len(values))
    messages.number(5, np.array(values))
    whole = messages.joined().tobytes()
    assert whole == b"".join(number(5, value) for value in values)
    assert varint(300) == b"\xac\x02"
    assert [value - (value >> 63 << 64) for value in decode(whole)[5]] == values


#: Links between any spans; ties and spans without length included.
links_of_a_session = st.lists(
    st.tuples(st.sampled_from(list(LinkKind)), st.integers(1, 15), st.integers(1, 15)), max_size=6
)


@settings(max_examples=200, deadline=None)
@given(lines_of_a_session(), links_of_a_session)
def test_any_session(lines: Any, links: Any) -> None:
    check(session(lines, links=links))


# --- the official reader --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protos() -> Any:
    return pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def test_the_official_protos_read_the_same(protos: Any) -> None:
    data = written(session(LINES, links=LINKS, lanes=[Lane("main", thread=7)]))
    whole = protos.Trace.FromString(data)
    assert whole.IsInitialized()
    assert whole.SerializeToString(deterministic=True) == _without_unknown(whole)
    event, packet = protos.TrackEvent, protos.TracePacket
    assert whole.packet[0].HasField("track_descriptor")
    names: dict[str, dict[int, Any]] = {}
    cleared = False
    shown, flows = [], [0, 0]
    for entry in whole.packet:
        cleared |= entry.sequence_flags == packet.SEQ_INCREMENTAL_STATE_CLEARED
        for field, values in entry.interned_data.ListFields():
            texts = names.setdefault(field.name, {})
            texts.update({v.iid: getattr(v, "name", "") or v.str.decode() for v in values})
        if not entry.HasField("track_event"):
            continue
        assert cleared
        assert entry.sequence_flags == packet.SEQ_NEEDS_INCREMENTAL_STATE
        made = entry.track_event
        flows[0] += len(made.flow_ids)
        flows[1] += len(made.terminating_flow_ids)
        if made.type != event.TYPE_SLICE_BEGIN:
            assert made.type == event.TYPE_SLICE_END
            continue
        args = {}
        for note in made.debug_annotations:
            key = names["debug_annotation_names"][note.name_iid]
            args[key] = (
                note.int_value
                if note.HasField("int_value")
                else names["debug_annotation_string_values"][note.string_value_iid]
                if note.HasField("string_value_iid")
                else [
                    names["debug_annotation_string_values"][item.string_value_iid]
                    for item in note.array_values
                ]
            )
        (category,) = (names["event_categories"][iid] for iid in made.category_iids)
        name = names["event_names"][made.name_iid]
        shown.append((entry.timestamp, made.track_uuid, name, category, args))
    mine = Read(data)
    assert shown == [(e["ts"], e["tid"], e["name"], e["cat"], e["args"]) for e in mine.slices]
    assert flows == [len(mine.flows)] * 2 == [5, 5]
    threads = [
        e.track_descriptor.thread for e in whole.packet if e.track_descriptor.HasField("thread")
    ]
    assert next((t.tid, t.thread_name) for t in threads) == (1, "main")
    process = next(e for e in whole.packet if e.track_descriptor.HasField("process"))
    assert process.track_descriptor.process.process_name == "process 41"


def _without_unknown(whole: Any) -> bytes:
    """The message with all fields dropped that the official definition does not know."""
    known = type(whole)()
    known.CopyFrom(whole)
    known.DiscardUnknownFields()
    found: bytes = known.SerializeToString(deterministic=True)
    return found
