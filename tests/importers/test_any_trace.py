"""Any forest of spans in every format: whole files equal what was written, damaged ones never raise
and never hold a span that nobody wrote."""

from __future__ import annotations

import importlib.util
import io
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.importers.written import FORMATS, Format, Written, forests

from opscope.analyse.summary import summary
from opscope.attribution import nest
from opscope.errors import InputError
from opscope.importers import FORMATS as READERS
from opscope.importers import Member, read
from opscope.importers.building import Builder
from opscope.model import Flag, Session

Triple = tuple[str, int, int]

CHROME = importlib.util.find_spec("opscope.importers.chrome") is not None

often = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> Format:
    found = FORMATS[request.param]
    if importlib.util.find_spec(f"opscope.importers.{found.kind}") is None:
        pytest.skip(f"no importer of {found.kind}")
    return found


def plain(name: str) -> str:
    """A name as every format can hold it."""
    return name.replace("::", "_")


def triples(spans: Iterable[Written], format: Format) -> list[Triple]:
    tick = format.tick_ns
    return [(plain(span.name), span.start * tick, span.end * tick) for span in spans]


def told(session: Session) -> list[Triple]:
    columns = (session.spans[column].tolist() for column in ("name", "start_ns", "end_ns"))
    return [(plain(session.names[name]), at, end) for name, at, end in zip(*columns, strict=True)]


def lanes(rows: Iterable[tuple[Any, Triple, Triple | None]]) -> Counter[Any]:
    """(span, the one around it) by lane, whatever lanes are called."""
    by_lane: dict[Any, list[Any]] = {}
    for lane, span, around in rows:
        by_lane.setdefault(lane, []).append((span, around or ("", 0, 0)))
    return Counter(tuple(sorted(found)) for found in by_lane.values())


def damaged(data: bytes, format: Format) -> Session:
    """What its reader makes of it; a session of which everything can be worked out."""
    session = READERS[format.kind](io.BytesIO(data), Builder(format.kind), data[: 1 << 16])
    assert (session.spans["start_ns"] <= session.spans["end_ns"]).all()
    summary(session)
    try:  # by its content it may be another kind, or none
        read(Member("x", lambda: io.BytesIO(data)))
    except InputError:
        pass
    except ModuleNotFoundError:
        if CHROME:
            raise
    return session


def nothing_invented(session: Session, spans: list[Written], format: Format) -> None:
    """Each span is one that was written. Where beginnings and ends stand apart, each of the two is
    one, and what has lost its end says so."""
    written = set(triples(spans, format))
    if format.kind == "xplane":  # names stand behind the events
        times = {(at, end) for _, at, end in written}
        assert all(
            (at, end) in times if name.startswith("event ") else (name, at, end) in written
            for name, at, end in told(session)
        )
        return
    if format.exact:
        assert set(told(session)) <= written
        return
    starts = {(name, at) for name, at, _ in written}
    ends = {(name, end) for name, _, end in written}
    for (name, at, end), flags in zip(told(session), session.spans["flags"].tolist(), strict=True):
        assert (name, at) in starts
        assert flags & Flag.INCOMPLETE or (name, end) in ends or at == end


@often
@given(spans=forests())
def test_a_whole_file_is_what_was_written(format: Format, spans: list[Written]) -> None:
    data = format.write(spans)
    session = read(Member("x", lambda: io.BytesIO(data)))
    assert session.sight[0].host == format.kind
    assert session.processes[0].damage == ""
    whole = triples(spans, format)
    assert Counter(told(session)) == Counter(whole)
    parent = nest(session.spans).parent.tolist()
    found = told(session)
    shown = zip(session.spans["lane"].tolist(), found, parent, strict=True)
    assert lanes((lane, span, found[up] if up >= 0 else None) for lane, span, up in shown) == lanes(
        (span.lane, one, whole[span.parent] if span.parent >= 0 else None)
        for span, one in zip(spans, whole, strict=True)
    )


@often
@given(spans=forests(), data=st.data())
def test_a_file_that_was_cut(format: Format, spans: list[Written], data: st.DataObject) -> None:
    whole = format.write(spans)
    at = data.draw(st.integers(0, len(whole)))
    nothing_invented(damaged(whole[:at], format), spans, format)


@often
@given(spans=forests(), data=st.data())
def test_a_file_without_its_head(format: Format, spans: list[Written], data: st.DataObject) -> None:
    if format.kind == "xplane":
        pytest.skip("bytes without their message may be any message")
    whole = format.write(spans)
    at = data.draw(st.integers(0, len(whole)))
    nothing_invented(damaged(whole[at:], format), spans, format)


@often
@given(spans=forests(), data=st.data())
def test_lines_in_another_order_or_twice_or_not_at_all(
    format: Format, spans: list[Written], data: st.DataObject
) -> None:
    if format.kind == "xplane":
        pytest.skip("no lines")
    lines = format.write(spans).splitlines()
    which = st.lists(st.integers(0, len(lines) - 1), max_size=2 * len(lines))
    text = b"\n".join(
        lines[place] for place in data.draw(st.permutations(range(len(lines))) | which)
    )
    nothing_invented(damaged(text, format), spans, format)


@often
@given(spans=forests(), data=st.data())
def test_chunks_in_another_order_or_twice(
    format: Format, spans: list[Written], data: st.DataObject
) -> None:
    """Anywhere: half of one event may end as half of another, but none is made of nothing."""
    whole = format.write(spans)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4))), len(whole)]
    chunks = [whole[at:end] for at, end in pairwise(cuts)]
    order = data.draw(st.lists(st.sampled_from(range(len(chunks))), max_size=8))
    text = b"".join(chunks[place] for place in order)
    session = damaged(text, format)
    if format.kind != "xplane":
        assert len(session.spans) <= text.count(b'"ph"')


@often
@given(spans=forests(), data=st.data())
def test_one_byte_is_another(format: Format, spans: list[Written], data: st.DataObject) -> None:
    whole = bytearray(format.write(spans))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    session = damaged(bytes(whole), format)
    if format.kind == "xplane":  # an entry of the names, read as a line, is an event or two
        assert len(session.spans) <= len(spans) + 2 * len({span.name for span in spans}) + 2
        return
    # An end may have become another beginning; MXNet writes each twice.
    twice = 2 if format.kind == "mxnet" else 1
    assert len(session.spans) <= twice * len(spans) + (not format.exact)
    if format.exact:
        more = Counter(told(session)) - Counter(triples(spans, format))
        assert more.total() <= 1
