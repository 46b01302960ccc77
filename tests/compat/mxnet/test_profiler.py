"""The profiler's calls in any order: what each document holds. Rows are of the fault tables."""

from __future__ import annotations

import json
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.compat.mxnet import programs
from tests.compat.mxnet.conftest import Profiled

import opscope
import opscope.compat.mxnet as mx
from opscope.compat.mxnet import profiler
from opscope.compat.mxnet.profiler import config

CUSTOM = "Custom Operator"


def work(times: int = 1) -> None:
    """Calls of a custom operator with one sub-operator each, waited for."""
    for _ in range(times):
        mx.nd.Custom(mx.nd.zeros((2,)), op_type="MyAdd1").wait_to_read()
    mx.nd.waitall()


def calls(profiled: Profiled, path: Path | None = None) -> int:
    assert profiled.count("MyAdd1::_plus_scalar", path) == profiled.count("MyAdd1", path)
    return profiled.count("MyAdd1", path)


def test_row_28_an_unfinished_dump_then_more_then_another(kind: str, profiled: Profiled) -> None:
    profiled.run()
    work(3)
    profiler.dump(False)
    assert calls(profiled) == 3
    work(2)
    profiler.dump()
    assert calls(profiled) == 5


def test_a_document_is_reported_like_a_recording(profiled: Profiled) -> None:
    profiled.run()
    marked = profiler.Task(profiler.Domain("mine"), "marked")
    marked.start()
    work(3)
    marked.stop()
    profiler.dump()
    (row,) = opscope.summary(opscope.load(profiled.path))
    owned = [e for e in profiled.events() if e["ph"] == "X" and e["args"]["kind"] == "op"]
    owned = [event for event in owned if event["args"]["owner"]]
    assert profiled.count("MyAdd1::_plus_scalar") == 3
    assert (row["op"], row["calls"], row["host"]) == ("MyAdd1", 3, "engine")
    assert row["subs"] == len(owned)
    assert row["python_ns"] > 0


def test_row_29_a_table_then_a_dump(kind: str, profiled: Profiled) -> None:
    profiled.run()
    work(3)
    assert profiled.counts(CUSTOM)["MyAdd1"] == 3
    work(2)
    profiler.dumps()
    profiler.dump()
    assert calls(profiled) == 5
    assert profiled.counts(CUSTOM)["MyAdd1"] == 5


def test_row_30_dump_run_dump(kind: str, profiled: Profiled) -> None:
    profiled.run()
    work(3)
    profiler.dump()
    assert calls(profiled) == 3
    profiled.run()
    work(2)
    profiled.stop()
    profiler.dump()
    assert calls(profiled) == 5
    profiler.dump()
    assert calls(profiled) == 5


def test_row_31_the_same_with_continuous_dumps(kind: str, profiled: Profiled) -> None:
    profiler.set_config(continuous_dump=True, dump_period=0.01)
    profiled.run()
    work(3)
    profiler.dump()
    assert calls(profiled) == 3
    profiled.run()
    work(2)
    profiled.stop()
    profiler.dump()
    assert calls(profiled) == 5


def test_row_32_started_while_other_threads_are_at_work(kind: str, profiled: Profiled) -> None:
    profiler.set_config(profile_all=True)
    over = threading.Event()
    failures: list[BaseException] = []

    def busy() -> None:
        try:
            while not over.is_set():
                mx.nd.ones((5,)).asnumpy()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        profiled.run()
        work()
        profiler.set_state("stop")
    over.set()
    for thread in threads:
        thread.join()
    profiler.dump()
    assert failures == []
    assert calls(profiled) == 5


def test_d7_another_file_name_is_another_whole_document(profiled: Profiled, tmp_path: Path) -> None:
    second = tmp_path / "second.json"
    profiled.run()
    work(2)
    profiler.dump(False)
    profiler.set_config(filename=second)
    work(1)
    profiler.dump()
    assert calls(profiled) == 2
    assert calls(profiled, second) == 3


@pytest.mark.parametrize(
    "order", ["dt", "td", "drd", "rwdtsd", "rwsrwsd", "sd", "rrwssd", "rwpwed", "rpwrwt", "pwrwt"]
)
def test_any_order_works(order: str, profiled: Profiled) -> None:
    """d dump, t table, r run, s stop, w work, p pause, e resume."""
    on = paused = False
    wanted = 0
    for step in order:
        if step == "w":
            work()
            wanted += on and not paused
        elif step == "d":
            profiler.dump()
            assert calls(profiled) == wanted
        elif step == "t":
            assert profiled.counts(CUSTOM).get("MyAdd1", 0) == wanted
        else:
            on = on if step in "pe" else step == "r"
            paused = step == "p"  # as in MXNet, running ends a pause
            {
                "r": profiled.run,
                "s": profiled.stop,
                "p": profiler.pause,
                "e": profiler.resume,
            }[step]()
    assert profiler.state() == ("run" if on else "stop")


def test_pausing_hides_and_does_not_count(kind: str, profiled: Profiled) -> None:
    profiled.run()
    work(1)
    profiler.pause()
    work(2)
    profiler.resume()
    work(1)
    profiled.stop()
    work(1)
    assert profiled.counts(CUSTOM)["MyAdd1"] == 2


@pytest.mark.parametrize("before", ["", "r", "rs"])
def test_running_ends_a_pause(before: str, profiled: Profiled) -> None:
    """A program may stop while paused and run again later, as MXNet's own tests do."""
    for step in before:
        profiler.set_state("run" if step == "r" else "stop")
    profiler.pause()
    work(1)
    assert profiled.counts(CUSTOM) == {}
    profiled.run()
    work(1)
    assert profiled.counts(CUSTOM)["MyAdd1"] == 1
    profiler.pause()
    work(1)
    assert profiled.counts(CUSTOM)["MyAdd1"] == 1


@pytest.mark.parametrize("step", ["run", "stop", "pause", "resume", "dump", "dumps"])
def test_switching_inside_an_operator_changes_no_result(
    step: str, kind: str, profiled: Profiled
) -> None:
    acts: dict[str, Any] = {
        "run": lambda: profiler.set_state("run"),
        "stop": lambda: profiler.set_state("stop"),
        "pause": profiler.pause,
        "resume": profiler.resume,
        "dump": profiler.dump,
        "dumps": profiler.dumps,
    }

    class Switches(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            inner = mx.nd.Custom(in_data[0], op_type="MyAdd1")
            acts[step]()
            self.assign(out_data[0], req[0], mx.nd.Custom(inner, op_type="MyAdd2") * 2)
            acts[step]()

    programs.register("Switches", Switches)
    for running in (False, True):
        if running:
            profiled.run()
        for _ in range(2):
            y = mx.nd.Custom(mx.nd.ones((2,)), op_type="Switches")
            assert y.asnumpy().tolist() == [8, 8]
    profiled.stop()
    profiler.dump()
    profiled.events()


def test_a_call_under_way_is_shown_as_such(profiled: Profiled) -> None:
    going, go_on = threading.Event(), threading.Event()

    class Slow(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            going.set()
            assert go_on.wait(30)

    programs.register("Slow", Slow)
    profiled.run()
    y = mx.nd.Custom(mx.nd.zeros((1,)), op_type="Slow")
    assert going.wait(30)
    profiler.dump(False)
    (slice_,) = (e for e in profiled.events() if e["name"] == "Slow" and e["ph"] == "X")
    assert "incomplete" in slice_["args"]["flags"]
    row = profiled.time()[CUSTOM]["Slow"]
    assert [row["Count"], row["Min"], row["Max"], row["Avg"]] == [1, None, None, None]
    assert " - " in profiler.dumps()
    before = profiled.path.stat().st_size
    go_on.set()
    y.wait_to_read()
    profiler.dump(False)
    assert profiled.path.stat().st_size >= before
    (slice_,) = (e for e in profiled.events() if e["name"] == "Slow" and e["ph"] == "X")
    assert "incomplete" not in slice_["args"].get("flags", [])


def test_operators_are_left_out_where_asked(profiled: Profiled) -> None:
    profiler.set_config(profile_imperative=False)
    profiled.run()
    work(1)
    with_domain = profiler.Domain("mine").new_task("task")
    with_domain.start()
    with_domain.stop()
    profiled.stop()
    assert list(profiled.time()) == ["mine"]
    profiler.dump()
    assert not [e for e in profiled.events() if e["ph"] == "X"]
    profiler.set_config(profile_all=True, profile_imperative=False)
    profiled.run()
    work(1)
    profiled.stop()
    assert profiled.counts(CUSTOM)["MyAdd1"] == 1


def test_keywords_of_mxnet_are_accepted_and_others_are_not(profiled: Profiled) -> None:
    profiler.set_config(
        profile_all=False, profile_symbolic=True, profile_imperative="1", profile_memory=0,
        profile_api="false", aggregate_stats=True, continuous_dump=False, dump_period="0.5",
    )  # fmt: skip
    config._warned.clear()
    with pytest.warns(UserWarning, match="profile_process") as told:
        profiler.set_config(profile_process="worker")
    assert told[0].filename == __file__
    profiler.set_config(profile_process="worker")  # a second warning would be an error
    with pytest.raises(mx.base.MXNetError, match="does not know 'colour'"):
        profiler.set_config(colour="red", filename="not_taken.json")
    assert profiler.recording.config.filename == str(profiled.path)


@pytest.mark.parametrize(
    ("key", "value"), [("profile_all", "maybe"), ("dump_period", 0), ("dump_period", "soon")]
)
def test_values_that_make_no_sense_are_refused(key: str, value: Any, profiled: Profiled) -> None:
    with pytest.raises(mx.base.MXNetError, match=key):
        profiler.set_config(**{key: value})


def test_states_and_processes_are_checked(profiled: Profiled) -> None:
    with pytest.raises(ValueError, match="'run' or 'stop'"):
        profiler.set_state("fast")
    with pytest.raises(mx.base.MXNetError, match="server"):
        profiler.set_state("run", profile_process="server")
    assert profiler.state() == "stop"


def test_retired_names_still_work(profiled: Profiled) -> None:
    with pytest.warns(UserWarning, match="set_config"):
        profiler.profiler_set_config(mode="all", filename=str(profiled.path))
    with pytest.warns(UserWarning, match="set_state"):
        profiler.profiler_set_state("run")
    work(2)
    with pytest.warns(UserWarning, match="dump"):
        profiler.dump_profile()
    assert calls(profiled) == 2


def test_a_recording_of_opscopes_own_is_shown_and_left_alone(profiled: Profiled) -> None:
    with opscope.profile() as mine:
        with pytest.warns(UserWarning, match="already"):
            profiler.set_state("run")
        work(2)
        profiler.set_state("stop")
        profiler.pause()
        work(1)
        profiler.resume()
        profiler.dump()
        assert calls(profiled) == 3
        assert profiled.counts(CUSTOM)["MyAdd1"] == 3
    assert [row["calls"] for row in mine.summary()] == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profiler.set_state("run")  # a recording of its own now
    work(1)
    profiled.stop()
    assert profiled.counts(CUSTOM)["MyAdd1"] == 1


def test_a_file_that_cannot_be_written_says_so(profiled: Profiled, tmp_path: Path) -> None:
    profiler.set_config(filename=tmp_path / "missing" / "trace.json")
    profiled.run()
    work(1)
    with pytest.raises(OSError, match="missing"):
        profiler.dump()
    profiler.set_config(filename=profiled.path)
    profiler.dump()
    assert calls(profiled) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_half_a_document_does_not_stay(
    profiled: Profiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError("the disk is full")

    profiler.dump()
    before = profiled.path.read_bytes()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="the disk is full"):
        profiler.dump()
    assert profiled.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_device_is_written_to_and_not_replaced(profiled: Profiled, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    texts: list[str] = []
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text("utf-8")))
    reader.start()
    profiler.set_config(filename=pipe)
    profiler.dump()
    reader.join(30)
    assert {event["ph"] for event in json.loads(texts[0])["traceEvents"]} == {"M"}
    assert pipe.is_fifo()


def _child(child_file: Path) -> None:
    code = 1
    try:
        assert profiler.state() == "stop"
        profiler.set_config(filename=child_file)
        profiler.set_state("run")
        work(2)
        profiler.dump()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_begins_anew(profiled: Profiled, tmp_path: Path) -> None:
    child_file = tmp_path / "child.json"
    profiled.run()
    work(1)
    with profiler._output.lock, profiler.recording._lock:  # as if another thread were writing
        pid = os.fork()
        if not pid:
            _child(child_file)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    work(2)
    profiled.stop()
    profiler.dump()
    assert calls(profiled) == 3
    assert calls(profiled, child_file) == 2
