"""Random forests of spans, written in every form, damaged and read back."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.importers.chrome_forests import (
    Span,
    as_list,
    as_object,
    findings_of,
    forests,
    marks,
    session_of,
    spans_of,
    whole_events,
)

from opscope.importers.chrome import OPEN
from opscope.model import Finding, Session

EPOCH_NS = 1_700_000_000_123_456_789
FORMS = st.sampled_from([as_list, as_object])
SIZES = st.sampled_from([64, 100, 1000, 1 << 20])


def plain(spans: list[Span]) -> set[tuple[str, int, int]]:
    return {(name, start, end) for name, _, start, end in spans}


def told(session: Session) -> tuple[str, set[Finding]]:
    (process,) = session.processes
    return process.damage, set(process.findings)


@given(forests(), FORMS, SIZES)
def test_whole_events_come_back_as_they_were_written(spans, form, size):
    session = session_of(form(whole_events(spans)), block=size)
    assert spans_of(session) == Counter(spans)
    assert session.processes[0].findings == ()
    assert (session.processes[0].damage == "") == bool(spans)


@given(forests(), FORMS, SIZES)
def test_beginnings_and_ends_come_back_as_spans(spans, form, size):
    session = session_of(form(marks(spans)), block=size)
    assert spans_of(session) == Counter(spans)
    assert session.processes[0].findings == ()


@given(forests(EPOCH_NS), st.sampled_from([whole_events, marks]))
def test_times_since_1970_keep_every_nanosecond(spans, write):
    assert spans_of(session_of(as_list(write(spans)))) == Counter(spans)


@given(forests(EPOCH_NS))
def test_times_as_texts_keep_every_nanosecond(spans):
    events = [event.replace('"ts": ', '"ts": "').replace(', "dur"', '", "dur"')
              for event in whole_events(spans)]  # fmt: skip
    clear = [span for span in spans if not {'"', "\\"} & set(span[0])]
    assert spans_of(session_of(as_list(events))) >= Counter(clear)


@given(forests(), st.data())
def test_a_file_cut_anywhere_loses_spans_and_makes_none(spans, data):
    text = data.draw(FORMS)(whole_events(spans))
    cut = data.draw(st.integers(0, len(text)))
    size = data.draw(SIZES)
    front, back = session_of(text[:cut], block=size), session_of(text[cut:], block=size)
    assert not spans_of(front) - Counter(spans)
    assert not spans_of(back) - Counter(spans)
    found = sum(spans_of(front).values()) + sum(spans_of(back).values())
    assert found >= len(spans) - 1


@given(forests(), st.data())
def test_marks_of_a_file_that_was_cut_make_no_span_that_was_not_there(spans, data):
    text = as_list(marks(spans))
    session = session_of(text[: data.draw(st.integers(0, len(text)))])
    starts = {(name, start) for name, _, start, _ in spans}
    for row in session.spans:
        assert (session.names[row["name"]], int(row["start_ns"])) in starts
    unended = sum(spans_of(session).values()) + findings_of(session).get(OPEN, 0)
    assert unended <= len(session.spans)  # of twins, one of which has no end, both are marked


@given(forests(), st.data())
def test_a_changed_byte_changes_one_span_at_most(spans, data):
    text = bytearray(data.draw(FORMS)(whole_events(spans)))
    # Not in front of the first event: there a byte may be of the key that says they are events.
    first = max(text.find(b"{", 1), 0)
    place = data.draw(st.integers(min(first, len(text) - 1), len(text) - 1))
    text[place] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from(b'"\\{}[]:, \n\0')))
    found = [session_of(bytes(text), block=size) for size in (64, 1 << 20)]
    seen = spans_of(found[0])
    assert sum((seen - Counter(spans)).values()) <= 1
    assert sum((Counter(spans) - seen).values()) <= 2
    assert seen == spans_of(found[1])
    assert told(found[0]) == told(found[1])


@given(forests(), st.data())
def test_events_in_any_order_dropped_or_told_twice_are_those_that_were_written(spans, data):
    events = whole_events(spans)
    some = data.draw(st.lists(st.sampled_from(events), max_size=20)) if events else []
    between = data.draw(st.sampled_from([",", "", "\n", ",,", " , ", "\0,", "][", "}\n"]))
    session = session_of(("[" + between.join(some) + "]").encode())
    assert set(spans_of(session)) == {spans[events.index(event)] for event in some}


@given(forests(), forests(), st.data())
def test_one_event_inside_another_is_taken_apart(spans, others, data):
    outer, inner = whole_events(spans), whole_events(others)
    if not outer or not inner:
        return
    place = data.draw(st.integers(1, len(outer[0]) - 1))
    mixed = outer[0][:place] + inner[0] + ",\n" + outer[0][place:]
    session = session_of(as_list([mixed, *outer[1:], *inner[1:]]))
    assert not spans_of(session) - Counter([*spans, *others])
    assert not Counter([*spans[1:], *others[1:]]) - spans_of(session)


@given(forests(), st.integers(0, 2**32), SIZES)
@example([("a", 1, 0, 1000), ("b", 1, 0, 500)], 0, 64)
def test_any_mixture_of_pieces_is_read_without_an_exception(spans, seed, size):
    text = as_object(whole_events(spans))
    chance = random.Random(seed)
    pieces = []
    for _ in range(chance.randrange(8)):
        begin = chance.randrange(len(text))
        pieces.append(text[begin : begin + chance.randrange(200)])
    mixed = b"".join(pieces)
    session = session_of(mixed, block=size)
    assert told(session) == told(session_of(mixed))
    assert (session.spans["end_ns"] >= session.spans["start_ns"]).all()


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_an_object_that_ends_before_a_list_of_events_is_no_document(size: int) -> None:
    event = whole_events([("a", 1, 0, 1000)])[0]
    rest = '[{"y": 1}, {"z": "}"}]}, "devices": [{"id": 0}], "traceEvents": [' + event + ", {"
    session = session_of(rest.encode(), block=size)
    assert Finding("events left out: objects without a phase", 2, ()) in told(session)[1]
    assert spans_of(session) == Counter([("a", 1, 0, 1000)])


@pytest.mark.parametrize("size", [64, 1 << 20])
@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_exception(size, data):
    session_of(data, block=size)
    session_of(b'{"traceEvents":[' + data + b"]}", block=size)
