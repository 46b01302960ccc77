"""`Document`: every form and state of a file, with tiny blocks and with whole ones."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import msgspec
import pytest

from opscope.importers import documents
from opscope.importers.documents import Document
from opscope.importers.quality import Quality


class Args(msgspec.Struct):
    n: int = -1


class Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    ts: int | float | None = None
    args: Args | None = None


class Stamp(msgspec.Struct):
    ts: msgspec.Raw = msgspec.Raw(b"")


@pytest.fixture(params=[64, 1 << 20], ids=["tiny blocks", "one block"], autouse=True)
def block(request, monkeypatch):
    monkeypatch.setattr(documents, "BLOCK", request.param)
    return request.param


class Read:
    """What comes of a file."""

    def __init__(self, data: bytes | str, stream: Any = None) -> None:
        data = data.encode() if isinstance(data, str) else data
        quality = Quality()
        self.document = Document(stream or io.BytesIO(data), quality)
        self.events = [event for batch in self.document.batches(Event) for event in batch]
        self.names = [event.name for event in self.events]
        self.other, self.damage = self.document.other, self.document.damage
        self.findings = {one.what: one.count for one in quality.findings()}
        self.places = {one.what: one.places for one in quality.findings()}


def event(name: str, ts: int = 1) -> str:
    return json.dumps({"ph": "X", "name": name, "ts": ts, "args": {"n": ts}})


A, B, C = event("a", 1), event("b", 2), event("c", 3)


@pytest.mark.parametrize(
    "text",
    [
        f"[{A},{B},{C}]",
        f"\ufeff[ {A} ,\r\n{B},{C} ]\n",
        f'{{"traceEvents":[{A},{B},{C}]}}',
        f'{{"x":1,"devices":[{{"a":[1]}}],"traceEvents": [{A},{B},{C}],"y":{{"z":"]}}"}}}}',
        f'{{"x":[],"traceEvents":[{A},{B},{C}\n]\n,\n"y":2\n}}\n',
        f"[{A},{B},{C}",
        f"[{A},{B},{C},",
        f"{A}\n{B}\n{C}\n",
        f"{A},{B},{C}]",
        f"[{A}][{B},{C}]",
        f'{{"traceEvents":[{A}]}}\n{{"traceEvents":[{B},{C}]}}',
        f'[{{"traceEvents":[{A},{B}]}},{{"traceEvents":[{C}]}}]',
        f'[{A},{{"x":1,"traceEvents":[{B}]}},{C}]',
        f'{{"traceEvents":[{A}],"traceEvents":[{B},{C}]}}',
        f'{{"samples":[{{"id":1}}],"TraceEvents":[{A},{B},{C}]}}',
        f"[{A}{B}{C}]",
        f"[,,{A},,{B},{C},]",
        f"[{A}\0\0\0,\0{B},{C}\0]\0\0",
        f"[{A},[{B},{C}]",
        f'{{"traceEvents":[{A},{B},{C}}}',
        f"[{A}}},{B},{C}]",
        f"[[{A}],[{B},{C}]]",
        f'{{"traceEvents":[[{A},{B},{C}],"y":1}}',
        f"garbage {A},{B},{C}]",
        f'erty": 3, "traceEvents": [{A},{B},{C}]}}',
        f'{{"x": oh no, "traceEvents": [{A},{B},{C}]}}',
    ],
)
def test_all_events_of_any_form_are_found(text):
    read = Read(text)
    assert read.names == ["a", "b", "c"]
    assert [one.args.n for one in read.events] == [1, 2, 3]


def test_the_other_members_are_told_and_later_documents_win():
    read = Read(
        f'{{"x":1,"y":[{{"a":"]}}"}}],"traceEvents":[{A}],"z":NaN}}{{"x":2,"traceEvents":[{B}]}}'
    )
    assert read.other == {"x": 2, "y": [{"a": "]}"}], "z": None}
    assert read.damage == ""
    assert read.findings[documents.MORE] == 1


def test_an_undamaged_file_has_no_findings():
    nested = {"ph": "X", "name": "}, {", "args": {"n": 1, "list": [{"ph": "X"}, {"a": "]"}]}}
    text = json.dumps({"traceEvents": [nested] * 200, "displayTimeUnit": "ms"}, indent=1)
    read = Read(text)
    assert (len(read.events), read.findings, read.damage) == (200, {}, "")


def test_a_block_of_undamaged_events_is_one_batch(block):
    text = f"[{','.join([A] * 10_000)}]".encode()
    batches = list(Document(io.BytesIO(text), Quality()).batches(Event))
    assert sum(map(len, batches)) == 10_000
    if block > 64:
        assert len(batches) == 1


@pytest.mark.parametrize(
    ("text", "name", "what"),
    [
        (b'"a\xff"', "a\N{REPLACEMENT CHARACTER}", "texts that are not UTF-8"),
        (b'"a\0b\tc"', "a\0b\tc", "control bytes"),
        (b'"f("x")"', 'f("x")', "quotes or backslashes"),
        (b'"f("a", "b")"', 'f("a", "b")', "quotes or backslashes"),
        (b'"q"uo\\te"', 'q"uo\\te', "quotes or backslashes"),
        (b'"C:\\dir\\new.py"', "C:\\dir\\new.py", "quotes or backslashes"),
        (b'"C:\\x\\"', "C:\\x\\", "quotes or backslashes"),
        (b'"a\\ud800"', "a\N{REPLACEMENT CHARACTER}", "half of a surrogate"),
        (b'"\\ud83d\\ude00\\ud83d"', "\U0001f600\N{REPLACEMENT CHARACTER}", "half of a surrogate"),
    ],
)
def test_texts_are_mended(text, name, what):
    read = Read(b'[%s,{"ph":"X","name":%s,"ts":5},%s]' % (A.encode(), text, B.encode()))
    assert read.names == ["a", name, "b"]
    assert [(one, number) for one, number in read.findings.items() if what in one] != []
    assert list(read.places.values()) == [(str(len(A) + 2),)]
    assert read.damage == ""


@pytest.mark.parametrize(
    ("text", "ts"),
    [
        ("NaN", None), ("-Infinity", None), ("inf", None), ("nan", None), ("1e999", None),
        ("007", 7), (".5", 0.5), ("5.", 5), ("+3", 3), ('"12.5"', 12.5), ("None", None),
        ("[1]", None), ("{}", None), ("true", None), ('"soon"', None), ("9" * 30, int("9" * 30)),
    ],
)  # fmt: skip
def test_odd_numbers_are_read_or_left_out_but_the_event_is_kept(text, ts):
    read = Read(f'[{A},{{"ph":"X","name":"x","ts":{text},"args":{{"n":4,}}}},{B}]')
    assert [(one.name, one.ts) for one in read.events] == [("a", 1), ("x", ts), ("b", 2)]
    assert read.events[1].args == Args(4)


def test_fields_of_another_type_are_left_at_their_default_one_by_one():
    odd = '{"ph":"X","name":7,"ts":[1],"args":{"n":"9"}}'
    worse = '{"ph":"X","name":"x","args":"none"}'
    read = Read(f"[{A},{odd},{worse},{B}]")
    assert read.events[1] == Event("X", args=Args(9))
    assert read.events[2] == Event("X", "x")
    what = "fields of another type than they should have (left at their default)"
    assert read.findings == {what: 3}
    assert read.places[what][0] == str(len(A) + 2)


def test_what_is_no_event_is_counted():
    read = Read(f'[{A}, 3, "x", null, [1, 2], {{}}, {B}]')
    assert read.names == ["a", "", "b"]
    assert read.findings == {"things among the events that are no events": 4}


@pytest.mark.parametrize("name", ["a", "}, {", 'x"y'])
def test_a_cut_event_is_left_out_wherever_it_was_cut(name):
    last = json.dumps({"ph": "X", "name": name, "args": {"n": 1}, "ts": 12})
    text = f"[{A},{B},"
    for cut in range(1, len(last)):
        read = Read(text + last[:cut])
        assert read.names == ["a", "b"]
        assert "the file ends inside an event" in read.damage
        assert f"at byte {len(text)})" in read.damage


def test_a_file_without_its_head_begins_with_the_first_whole_event():
    text = f'{{"x":[{{"y":1}}],"traceEvents":[{A},{B},{C}],"end":1}}'
    for cut in range(text.index(A) + 1, text.index(B)):
        read = Read(text[cut:])
        assert read.names == ["b", "c"]
        assert read.other == {"end": 1}
        assert "could not be read" in read.damage or documents.HEADLESS in read.findings


def test_events_written_into_one_another_are_taken_apart():
    for place in range(1, len(A)):
        for inner in (B, f"{B},", f"{B},\n{C},\n"):
            read = Read(f"[{A[:place]}{inner}{A[place:]},{event('d')}]")
            assert "d" in read.names
            assert set(read.names) <= {*"abcd", ""}  # arguments left alone are no event's
            # Behind a colon it looks like a value.
            assert "b" in read.names or A[:place].rstrip().endswith(":")
    read = Read(f"[{A[:22]}{B},\n{A[22:]},{C}]")
    assert read.names == ["a", "b", "c"]
    assert read.findings == {"events with others in the middle of them (taken apart)": 1}


def test_a_lost_brace_or_quote_does_not_join_two_events():
    for place in range(len(A)):
        for byte in '"}{,x ':
            read = Read(f"[{A[:place]}{byte}{A[place + 1 :]},{B},{C}]")
            assert read.names[-2:] == ["b", "c"] or read.names[-1:] == ["c"]
            assert [(one.name, one.ts) for one in read.events][-1] == ("c", 3)
            assert len(read.events) <= 3


def test_very_long_events_and_members_are_read_whole():
    long = json.dumps({"ph": "X", "name": "l" * 300_000, "args": {"n": 1}})
    listed = json.dumps({"ph": "X", "name": "m", "args": {"n": 2, "x": [{"y": "z" * 40}] * 3000}})
    read = Read(f'{{"x":"{"y" * 200_000}","traceEvents":[{A},{long},{listed},{B}]}}')
    assert list(map(len, read.names)) == [1, 300_000, 1, 1]
    assert len(read.other["x"]) == 200_000
    assert read.damage == ""


def test_damage_far_apart_leaves_all_else_alone():
    events = [event(f"e{number}", number) for number in range(3000)]
    for number in range(100, 3000, 500):
        events[number] = events[number].replace('"ts"', '"ts')
    read = Read(f"[{','.join(events)}]")
    assert len(read.events) == 3000 - 6
    assert read.findings == {"stretches between events that could not be read (left out)": 6}
    assert read.damage.startswith("6 stretches of the file (")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"  ", b"\0" * 5000, b'{"x":1}', b"[]", b"hello", b'{"traceEvents":{}}'),
        '[{"ph":"X"}]'.encode("utf-16"),
        *(b'"' * 9999, b"{" * 2000, b"[" * 2000, b'{"a":' * 2000),
    ],
)
def test_a_file_without_events_says_so(data):
    read = Read(data)
    assert read.events == []
    assert "no events were found" in read.damage


def test_a_compressed_file_that_was_cut_gives_what_can_be_unpacked():
    events = [event(f"e{number}", number) for number in range(20_000)]
    packed = gzip.compress(f"[{','.join(events)}]".encode())
    stream = gzip.GzipFile(fileobj=io.BytesIO(packed[: len(packed) // 2]))
    read = Read(b"", stream)
    assert 5_000 < len(read.events) < 15_000
    assert "compressed data are damaged or end early" in read.damage


def test_the_last_batch_can_be_read_again_as_another_kind():
    text = f'[{A},{{"ph":"X","name":"q"x","ts":"1.50"}},3,{{"ts":NaN}},{B}]'
    document = Document(io.BytesIO(text.encode()), Quality())
    pairs = []
    for batch in document.batches(Event):
        stamps = document.again(Stamp)
        assert len(stamps) == len(batch)
        pairs += [(one.name, bytes(two.ts)) for one, two in zip(batch, stamps, strict=True)]
    assert pairs == [("a", b"1"), ('q"x', b'"1.50"'), ("", b"null"), ("b", b"2")]
