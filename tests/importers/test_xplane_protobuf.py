"""The reader of the wire format: against numbers written by hand, and on bytes that are wrong."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.importers.xplane_writer import block, double, varint, whole

from opscope.importers.xplane.protobuf import BYTES, FIXED32, FIXED64, VARINT, Wire

NUMBERS = st.integers(-(2**63), 2**63 - 1)
FIELDS = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 3000), st.just(VARINT), NUMBERS),
        st.tuples(st.integers(1, 3000), st.just(BYTES), st.binary(max_size=200)),
        st.tuples(st.integers(1, 3000), st.just(FIXED64), NUMBERS),
        st.tuples(st.integers(1, 3000), st.just(FIXED32), st.integers(0, 2**32 - 1)),
    )
)


def written(fields: list[tuple[int, int, int | bytes]]) -> bytes:
    """The message of these fields."""
    out = b""
    for number, wire, value in fields:
        out += varint(number << 3 | wire)
        if isinstance(value, bytes):
            out += varint(len(value)) + value
        elif wire == VARINT:
            out += varint(value)
        else:
            out += (value % 2**64).to_bytes(8 if wire == FIXED64 else 4, "little")
    return out


def read(data: bytes) -> tuple[list[tuple[int, int, int | bytes]], int]:
    """The fields one by one, and how often the message broke."""
    wire = Wire(data)
    found: list[tuple[int, int, int | bytes]] = []
    for number, how, value, end in wire.fields(0, len(data)):
        found.append((number, how, data[value:end] if how == BYTES else value))
    return found, wire.breaks


def in_columns(messages: list[bytes]) -> tuple[list[list[tuple[int, int, int | bytes]]], int]:
    """The same of many messages at once."""
    data = b"".join(messages)
    wire = Wire(data)
    ends = np.cumsum([len(one) for one in messages], dtype=np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
    found: list[list[tuple[int, int, int | bytes]]] = [[] for _ in messages]
    for some in wire.rounds(starts, ends):
        columns = (some.which, some.number, some.wire, some.value, some.end)
        for which, number, how, value, end in zip(*(c.tolist() for c in columns), strict=True):
            found[which].append((number, how, data[value:end] if how == BYTES else value))
    return found, wire.breaks


@given(FIELDS)
def test_fields_are_read_as_they_were_written(fields: list[tuple[int, int, int | bytes]]) -> None:
    assert read(written(fields)) == (fields, 0)


@given(st.lists(FIELDS, max_size=20))
def test_many_messages_at_once_read_the_same(
    messages: list[list[tuple[int, int, int | bytes]]],
) -> None:
    assert in_columns([written(one) for one in messages]) == (messages, 0)


@given(FIELDS, st.integers(0, 400))
def test_of_a_message_that_is_cut_the_whole_fields_are_read(
    fields: list[tuple[int, int, int | bytes]], size: int
) -> None:
    data = written(fields)[:size]
    found, breaks = read(data)
    assert found == fields[: len(found)]
    assert breaks == (written(found) != data)
    assert in_columns([data]) == ([found], breaks)


@given(st.binary(max_size=60))
def test_any_bytes_read_the_same_both_ways(data: bytes) -> None:
    found, breaks = read(data)
    assert in_columns([data]) == ([found], breaks)


def test_every_size_of_varint() -> None:
    values = [sign * (1 << bits) for bits in range(63) for sign in (1, -1)]
    values += [2**63 - 1, -(2**63), 0]
    assert in_columns([whole(1, value) for value in values]) == (
        [[(1, VARINT, value)] for value in values],
        0,
    )


def test_messages_of_one_field_apart_from_the_others() -> None:
    data = whole(1, 7) + block(4, "a") + double(9, 0.5) + block(4, "b" * 200) + block(4, "")
    wire = Wire(data)
    starts, stops, rest = wire.split(0, len(data), 4)
    assert [data[a:b] for a, b in zip(starts, stops, strict=True)] == [b"a", b"b" * 200, b""]
    assert [number for number, *_ in rest] == [1, 9]
    assert wire.breaks == 0


def test_places_tell_where_messages_broke() -> None:
    data = whole(1, 7) + block(4, "a") + block(4, "cut off")[:-3]
    wire = Wire(data)
    starts, _, _ = wire.split(0, len(data), 4)
    assert (len(starts), wire.breaks, wire.places) == (1, 1, [5])


def test_groups_and_field_number_zero_end_a_message() -> None:
    assert read(whole(1, 7) + varint(2 << 3 | 3) + whole(1, 8)) == ([(1, VARINT, 7)], 1)
    assert read(whole(1, 7) + varint(0) + whole(1, 8)) == ([(1, VARINT, 7)], 1)


def test_a_varint_of_more_than_ten_bytes_ends_a_message() -> None:
    data = whole(1, 7) + b"\x08" + b"\xff" * 11 + b"\x01"
    assert read(data) == ([(1, VARINT, 7)], 1)
    assert in_columns([data]) == ([[(1, VARINT, 7)]], 1)
