"""The order of what is written: every prefix of a file that ends at a frame is a whole session."""

from __future__ import annotations

import random
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opscope.model import Flag, Kind, Op, Session
from opscope.record import Recorder, Writer
from opscope.record import writer as writer_module
from opscope.store import MemorySink, parse
from opscope.testing import ManualClock


class Frames(MemorySink):
    """Keeps every prefix that ends at a frame."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[int] = []

    def put(self, word: str, data: Any) -> None:
        super().put(word, data)
        self.ends.append(self._bytes.tell())

    def prefixes(self) -> list[Session]:
        return [parse(self._bytes.getvalue()[:end], "prefix") for end in self.ends]


class Moment(deque[bytes]):
    """Stands for `Recorder.late`, whose length is asked in the middle of a flush."""

    then: Callable[[], Any] = staticmethod(lambda: None)

    def __len__(self) -> int:
        then, self.then = self.then, lambda: None
        then()
        return super().__len__()


@pytest.fixture
def made() -> tuple[Recorder, Writer, Frames]:
    sink = Frames()
    recorder = Recorder(sink, ManualClock())
    recorder.late = Moment()
    return recorder, Writer(recorder), sink


def op(recorder: Recorder, name: str) -> int:
    return recorder.op(Op("python", "function", name))


def check(session: Session) -> None:
    """Whatever a span mentions is there."""
    spans = session.spans
    assert "?" not in session.names
    assert "?" not in [lane.name for lane in session.lanes]
    owners = spans["owner"][spans["owner"] != 0]
    assert np.isin(owners, spans["id"]).all()
    assert np.isin(spans["name"][spans["kind"] == Kind.CALL], session.op_names).all()
    assert len(set(spans["id"].tolist())) == len(spans)
    assert session.processes[0].damage == ""


def test_whatever_threads_do_every_prefix_is_whole() -> None:
    sink = Frames()
    recorder = Recorder(sink)
    writer = Writer(recorder)

    def work(seed: int) -> None:
        dice = random.Random(seed)
        for n in range(100):
            outer = recorder.begin(Kind.CALL, op(recorder, f"outer {seed} {n}"), owner=0)
            for _ in range(dice.randrange(3)):
                inner = recorder.begin(Kind.CALL, op(recorder, f"inner {seed} {n}"), owner=outer)
                for _ in range(dice.randrange(4)):
                    name = recorder.name(f"op {dice.random()}")
                    recorder.end(recorder.begin(Kind.OP, name, owner=inner))
                recorder.end(inner)
            recorder.end(outer)

    threads = [threading.Thread(target=work, args=(seed,), name=f"t{seed}") for seed in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            writer.flush()
    finally:
        sys.setswitchinterval(interval)
    recorder.closed = True
    writer.finish()
    prefixes = sink.prefixes()
    for session in [*prefixes[:: max(len(prefixes) // 100, 1)], prefixes[-1]]:
        check(session)
    assert (prefixes[-1].spans["flags"] == 0).all()


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_an_owner_that_ends_during_the_flush_stands_before_what_it_owns(
    made: Any, told: bool, last: bool
) -> None:
    recorder, writer, sink = made
    outer = recorder.begin(Kind.CALL, op(recorder, "outer"), owner=0)
    if told:
        writer.flush()
    recorder.end(recorder.begin(Kind.OP, recorder.name("mul"), owner=outer))
    recorder.late.then = lambda: recorder.end(outer)
    if last:
        writer.finish()
    else:
        writer.flush()
        assert sink.session().spans[["id", "flags"]].tolist() == [(2, 0), (1, Flag.INCOMPLETE)]
        writer.finish()
    for session in sink.prefixes():
        check(session)
    spans = sink.session().spans[["id", "flags"]].tolist()
    assert sorted(spans) == [(1, Flag.INCOMPLETE if last else 0), (2, 0)]


def test_a_whole_call_during_the_flush_waits_for_the_next(made: Any) -> None:
    recorder, writer, sink = made

    def call() -> None:
        outer = recorder.begin(Kind.CALL, op(recorder, "new"), owner=0)
        recorder.end(recorder.begin(Kind.OP, recorder.name("mul"), owner=outer))
        recorder.end(outer)

    recorder.here()
    recorder.late.then = call
    writer.flush()
    for session in sink.prefixes():
        check(session)
    assert len(sink.session().spans) == 0
    recorder.closed = True
    writer.finish()
    for session in sink.prefixes():
        check(session)
    assert sink.session().spans[["id", "flags"]].tolist() == [(2, 0), (1, 0)]


def test_a_call_inside_one_that_begins_during_the_flush_waits_for_its_owner(made: Any) -> None:
    recorder, writer, sink = made

    def calls() -> None:
        outer = recorder.begin(Kind.CALL, op(recorder, "outer"), owner=0)
        recorder.end(recorder.begin(Kind.CALL, op(recorder, "inner"), owner=outer))

    recorder.here()
    taken, pending = writer_module._taken, [calls]
    with pytest.MonkeyPatch.context() as patch:

        def once(buffer: Any, size: int) -> Any:
            # By now what is open has been noted.
            if pending:
                pending.pop()()
            return taken(buffer, size)

        patch.setattr(writer_module, "_taken", once)
        writer.flush()
    for session in sink.prefixes():
        check(session)
    recorder.closed = True
    writer.finish()
    for session in sink.prefixes():
        check(session)
    assert sink.session().spans[["id", "flags"]].tolist() == [(2, 0), (1, Flag.INCOMPLETE)]


def test_a_call_that_begins_while_names_are_told_is_not_written_before_its_name(made: Any) -> None:
    recorder, writer, sink = made
    told = recorder.tables.news

    def news() -> Any:
        facts = told()
        recorder.begin(Kind.CALL, op(recorder, "late"), owner=0)
        return facts

    recorder.tables.news = news
    writer.flush()
    writer.flush()
    for session in sink.prefixes():
        check(session)
    assert len(sink.session().spans) == 1
