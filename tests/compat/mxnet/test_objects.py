"""Domain, Task, Frame, Event, Counter, Marker: before, while and after the profiler runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compat.mxnet.conftest import Profiled

import opscope.compat.mxnet as mx
from opscope.compat.mxnet import profiler
from opscope.compat.mxnet.profiler import marks, objects


def everything(suffix: str) -> Any:
    """Uses one of each; returns the counter's value."""
    domain = profiler.Domain("mine")
    task, frame = domain.new_task(f"task{suffix}"), domain.new_frame(f"frame{suffix}")
    event = profiler.Event(f"event{suffix}")
    for one in (task, frame, event):
        one.start()
    counter = domain.new_counter(f"counter{suffix}")
    counter.set_value(10)
    counter += 5
    counter -= 2
    counter.increment()
    counter.decrement(4)
    domain.new_marker(f"marker{suffix}").mark("thread")
    for one in (event, frame, task):
        one.stop()
    return counter._value


def test_all_of_them_while_it_runs(profiled: Profiled) -> None:
    profiled.run()
    assert everything("") == 10
    profiled.stop()
    table = profiled.time()
    table.pop("runtime", None)  # arrays of the tests before
    assert {domain: sorted(rows) for domain, rows in table.items()} == {
        "event": ["event"],
        "mine": ["counter", "task"],
        "mine,frame": ["frame"],
        "mine,instant_marker": ["marker"],
    }
    assert table["mine"]["counter"] == {
        "Count": 5, "Total": 10, "Min": 10, "Max": 15, "Avg": 12.4,
    }  # fmt: skip
    profiler.dump()
    events = profiled.events()
    values = [e["args"]["counter"] for e in events if e["ph"] == "C"]
    assert values == [10, 15, 13, 14, 10]
    assert sorted((e["ph"], e["name"], e["cat"]) for e in events if e["ph"] in "bei") == [
        ("b", "event", "event"),
        ("b", "frame", "mine,frame"),
        ("b", "task", "mine"),
        ("e", "event", "event"),
        ("e", "frame", "mine,frame"),
        ("e", "task", "mine"),
        ("i", "marker", "mine,instant_marker"),
    ]
    named = [e for e in events if e["name"] == "process_name"]
    assert {e["args"]["name"] for e in named} >= {
        "event",
        "mine",
        "mine,frame",
        "mine,instant_marker",
    }
    assert sorted(e["pid"] for e in named) == list(range(1, len(named) + 1))
    assert all(e["ts"] >= 0 for e in events if "ts" in e)


def test_stretches_of_one_name_are_added_up(profiled: Profiled) -> None:
    profiled.run()
    domain = profiler.Domain("mine")
    for _ in range(2):
        task = domain.new_task("x")
        task.start()
        task.stop()
    profiled.stop()
    row = profiled.time()["mine"]["x"]
    assert row["Count"] == 2
    assert row["Total"] == pytest.approx(row["Min"] + row["Max"])


def test_before_and_after_they_work_and_are_not_recorded(profiled: Profiled) -> None:
    assert everything(" before") == 10
    profiled.run()
    profiler.pause()
    everything(" paused")
    profiler.resume()
    profiled.stop()
    everything(" after")
    assert profiled.time().keys() <= {"runtime"}
    profiler.dump()
    assert not [e for e in profiled.events() if e["ph"] in "beiC"]


def test_a_counter_counts_while_nobody_looks(profiled: Profiled) -> None:
    counter = profiler.Domain("mine").new_counter("n", 1)
    counter += 1
    profiled.run()
    counter += 1
    profiled.stop()
    counter += 1
    assert profiled.time()["mine"]["n"] == {"Count": 1, "Total": 3, "Min": 3, "Max": 3, "Avg": 3}
    assert counter._value == 4


def test_of_a_task_across_edges_the_part_inside_counts(
    profiled: Profiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100, 200, 350, 400, 500, 600])
    for module in (marks, objects):
        monkeypatch.setattr(module, "now", lambda: next(clock))
    profiler.set_config(profile_imperative=False)
    task = profiler.Domain("mine").new_task("task")
    task.start()  # 100
    profiled.run()  # 200
    profiler.pause()  # 350
    profiler.resume()  # 400
    profiler.set_state("stop")  # 500
    task.stop()  # 600
    monkeypatch.undo()
    row = profiled.time()["mine"]["task"]
    assert [row["Count"], round(row["Total"] * 1e6)] == [1, 150 + 100]


def test_a_task_that_runs_is_in_the_document_and_not_in_the_table(profiled: Profiled) -> None:
    task = profiler.Domain("mine").new_task("task")
    profiled.run()
    task.start()
    profiler.dump(False)
    begun = [e for e in profiled.events() if e["ph"] == "b"]
    assert [e["args"]["flags"] for e in begun] == [["incomplete"]]
    assert "mine" not in profiled.time()
    task.stop()
    task.stop()
    assert profiled.counts("mine") == {"task": 1}


def test_passes_of_a_task_add_up_and_reset_forgets_them(profiled: Profiled) -> None:
    domain = profiler.Domain("mine")
    task = domain.new_task("task")
    profiled.run()
    for _ in range(3):
        task.start()
        task.stop()
    domain.new_marker("m").mark()
    assert profiled.counts("mine", reset=True) == {"task": 3}
    task.start()
    task.start()  # begins anew
    task.stop()
    assert profiled.counts("mine") == {"task": 2}


def test_counters_and_tasks_of_one_name_are_two_rows(profiled: Profiled) -> None:
    domain = profiler.Domain("mine")
    profiled.run()
    domain.new_counter("x", 1)
    task = domain.new_task("x")
    task.start()
    task.stop()
    assert profiled.counts("mine") == {"x": 1, "x [counter]": 1}


@pytest.mark.parametrize(
    ("scope", "letter"),
    [("global", "g"), ("process", "p"), ("thread", "t"), ("task", "p"), ("marker", "p")],
)
def test_scopes_of_markers(scope: str, letter: str, profiled: Profiled) -> None:
    marker = profiler.Marker(profiler.Domain("mine"), "m")
    profiled.run()
    marker.mark(scope)
    profiler.dump()
    assert [e["s"] for e in profiled.events() if e["ph"] == "i"] == [letter]


def test_a_marker_refuses_other_scopes() -> None:
    with pytest.raises(mx.base.MXNetError, match="'galaxy'"):
        profiler.Marker(profiler.Domain("mine"), "m").mark("galaxy")


def test_names_are_texts() -> None:
    domain = profiler.Domain("mine")
    assert [str(domain), str(domain.new_task("t")), str(domain.new_frame("f"))] == [
        "mine",
        "t",
        "f",
    ]
    assert [str(domain.new_counter("c")), str(profiler.Event("e"))] == ["c", "e"]
