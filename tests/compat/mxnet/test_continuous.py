"""Continuous dumps: whole documents, which never shrink."""

from __future__ import annotations

import time

from tests.compat.mxnet import programs  # noqa: F401  registers the operators
from tests.compat.mxnet.conftest import Profiled

import opscope.compat.mxnet as mx
from opscope.compat.mxnet import profiler
from opscope.compat.mxnet.profiler import document
from opscope.compat.mxnet.profiler.continuous import Continuous
from opscope.compat.mxnet.profiler.marks import Timeline
from opscope.model import Session


def test_the_file_never_shrinks_over_five_unfinished_dumps(kind: str, profiled: Profiled) -> None:
    profiler.set_config(continuous_dump=True, dump_period=3600, aggregate_stats=True)
    profiled.run()
    size = 0
    for times in range(1, 6):
        mx.nd.Custom(mx.nd.ones((3,)), op_type="MyAdd1").wait_to_read()
        profiler.dump(False)
        assert profiled.path.stat().st_size >= size
        size = profiled.path.stat().st_size
        assert profiled.count("MyAdd1") == times
        assert profiler.dumps()
    profiled.stop()


def test_a_document_with_less_in_it_is_as_long(profiled: Profiled) -> None:
    profiled.run()
    for _ in range(3):
        mx.nd.Custom(mx.nd.ones((3,)), op_type="MyAdd1").wait_to_read()
    profiled.stop()
    profiler.dump()
    size = profiled.path.stat().st_size
    document.write(str(profiled.path), Session(), Timeline())
    assert profiled.path.stat().st_size == size
    assert profiled.count("MyAdd1") == 0


def test_documents_appear_by_themselves_until_finished(profiled: Profiled) -> None:
    profiler.set_config(continuous_dump=True, dump_period=0.01)
    profiled.run()
    for times in (1, 2):
        mx.nd.Custom(mx.nd.ones((3,)), op_type="MyAdd1").wait_to_read()
        mx.nd.waitall()
        deadline = time.monotonic() + 30
        while not (profiled.path.exists() and profiled.count("MyAdd1") == times):
            assert time.monotonic() < deadline
            time.sleep(0.005)
    writer = profiler._output.thread
    assert writer is not None
    profiler.dump()
    writer.join(30)
    assert not writer.is_alive()
    profiled.path.unlink()
    mx.nd.ones((3,)).wait_to_read()
    time.sleep(0.05)
    assert not profiled.path.exists()
    assert profiler.state() == "run"


def test_the_writer_gives_up_when_it_cannot_write(profiled: Profiled) -> None:
    def fail() -> None:
        raise OSError("the disk is full")

    writer = Continuous(fail, 0.001)
    writer.start()
    writer.join(30)
    assert not writer.is_alive()


def test_a_new_period_takes_effect_while_it_runs(profiled: Profiled) -> None:
    profiler.set_config(continuous_dump=True, dump_period=3600)
    profiled.run()
    first = profiler._output.thread
    profiler.set_config(dump_period=1800)
    second = profiler._output.thread
    assert first is not None
    assert second is not None
    assert [first is second, second.period_s] == [False, 1800]
    first.join(30)
    profiler.set_config(continuous_dump=False)
    assert profiler._output.thread is None
    second.join(30)
