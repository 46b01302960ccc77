"""What real MXNet 1.9.1 gets wrong, row by row, is right here, every time and on every kind.

The rows are those of the project's list of faults: D1 to D10 of the 2019 design as merged, and the
numbered scenes. Those of the profiler's own calls (D7, 28 to 32) are in test_mxnet_dumps.py.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.end_to_end.faults import (
    ManualClock,
    always,
    asynchronous,
    every_kind,
    only,
    record,
    regular,
    rows,
    subs,
)
from tests.hosts.engine.ops import add_one, define, engine_of
from tests.present.trace import check as check_trace
from tests.present.trace import slices

import opscope
from opscope import engine as nd
from opscope.analyse import span_records

ADD, MUL = "_plus_scalar", "_mul_scalar"


def three(x: Any) -> Any:
    return ((x + 1.0) + 1.0) + 1.0


def ones() -> Any:
    return nd.ones((4, 4))


def fails(x: Any) -> Any:
    y = x + 1.0
    raise ValueError("in forward")
    return y


def swallow(array: Any) -> None:
    with pytest.raises(ValueError, match="in forward"):
        array.wait_to_read()


@every_kind
def test_d01_recording_never_breaks_a_nested_call(kind: str) -> None:
    inner = define("D1Inner", add_one)
    outer = define("D1Outer", lambda x: inner(x) * 2.0)
    always(kind, 4.0, lambda: found(outer))


def found(op: Any) -> float:
    values: list[float] = []
    record(lambda: values.append(op(ones()).asnumpy()[0, 0]))
    return values[0]


@every_kind
def test_d02_nested_calls_have_a_path_and_a_row_of_their_own(kind: str) -> None:
    inner = define("D2Inner", add_one)
    outer = define("D2Outer", lambda x: inner(x) * 2.0)

    def look() -> Any:
        session = record(lambda: outer(ones()))
        shown = {tuple(r["path"]) for r in span_records(session) if r["name"] == ADD}
        return only(session, "D2Outer").path, only(session, "D2Inner").path, shown

    expected = (("D2Outer",), ("D2Outer", "D2Inner"), {("D2Outer", "D2Inner", ADD)})
    always(kind, expected, look)


@every_kind
def test_d03_a_failed_call_is_recorded_and_marks_nothing_else(kind: str) -> None:
    bad, good = define("D3Bad", fails), define("D3Good", add_one)

    def scene() -> None:
        swallow(bad(ones()))
        good(ones() * 2.0).asnumpy()

    def look() -> Any:
        session = record(scene)
        call = only(session, "D3Bad")
        return "failed" in call.flags, call.wall_ns > 0, subs(session, "D3Good"), regular(session)

    always(kind, (True, True, [{ADD: 1}], {MUL: 1}), look)


@every_kind
@pytest.mark.parametrize("name", ['with "quotes"', "o" * 200, "Out::er"])
def test_d04_d05_d06_names_are_not_read_cut_or_left_raw(kind: str, name: str) -> None:
    op = define(name, add_one)

    def look() -> Any:
        session = record(lambda: op(ones()))
        shown = [
            (event["name"], event["cat"])
            for event in slices(check_trace(session))
            if event["args"].get("op") == name and event["name"].endswith(ADD)
        ]
        return only(session, name).path, subs(session, name), shown

    always(kind, ((name,), [{ADD: 1}], [(f"{name}::{ADD}", "Custom Operator")]), look)


@every_kind
def test_d08_d10_every_sub_operator_once_with_small_numbers(kind: str) -> None:
    op = define("D8", three)

    def look() -> Any:
        events = check_trace(record(lambda: [op(ones()) for _ in range(3)]))
        names = [event["name"] for event in slices(events)]
        largest = max(max(event["pid"], event["tid"]) for event in events)
        return names.count(f"D8::{ADD}"), names.count("D8"), largest < 1000

    always(kind, (9, 3, True), look)


@every_kind
def test_d09_and_33_chores_are_nobodys(kind: str) -> None:
    op = define("D9", lambda x: three(x) * 2.0)

    def look() -> Any:
        session = record(lambda: [op(ones()) for _ in range(4)])
        chores = {
            (r["owner"], r["op"], r["domain"])
            for r in span_records(session)
            if r["name"] == "DeleteVariable"
        }
        return subs(session, "D9"), chores

    always(kind, ([{ADD: 3, MUL: 1}] * 4, {(None, None, "runtime")}), look)


@every_kind
def test_01_02_basic(kind: str) -> None:
    op = define("A", three)

    def scene() -> None:
        for _ in range(5):
            op(ones())
        x = ones()
        for _ in range(4):
            x = x + 1.0

    def look() -> Any:
        session = record(scene)
        return subs(session, "A"), regular(session)

    always(kind, ([{ADD: 3}] * 5, {ADD: 4}), look)


@every_kind
def test_02_04_python_is_python_in_every_kind(kind: str) -> None:
    clock = ManualClock()

    def body(x: Any) -> Any:
        clock.tick(100)
        y = nd.zeros(x.shape)
        nd.push_sync(lambda: clock.tick(1000), writes=[y.storage.var], name="slow")
        y.asnumpy()
        return y

    op = define("Sync", body)

    def look() -> Any:
        call = only(record(lambda: op(ones()), clock), "Sync")
        assert call.wait_ns is not None
        return call.python_ns, call.wait_ns + call.sub_ns

    always(kind, (100, 1000), look)


@asynchronous
def test_03_06_35_sub_operators_outside_the_call_are_its_own(kind: str) -> None:
    gates: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def lazily(x: Any) -> Any:
        y = nd.ones((30, 30))
        nd.push_async(gates.put, writes=[y.storage.var], name="gate")
        for _ in range(5):
            y = nd.dot(y, y)
        return x

    op = define("Lazy", lazily)

    def scene() -> None:
        op(ones()).wait_to_read()
        gates.get()()  # only now, that the call is over, what it pushed may run

    def look() -> Any:
        session = record(scene)
        call = only(session, "Lazy")
        return subs(session, "Lazy")[0]["dot"], call.elsewhere_ns > 0, call.span_ns > call.wall_ns

    always(kind, (5, True, True), look)


@every_kind
def test_05_06_nested_calls_do_not_merge_with_direct_ones(kind: str) -> None:
    clock = ManualClock()

    def inner_body(x: Any) -> Any:
        clock.tick(10)
        return x + 1.0

    def outer_body(x: Any) -> Any:
        clock.tick(5)
        for _ in range(3):
            x = inner(x)
            x.wait_to_read()
        return x

    inner, outer = define("Within", inner_body), define("Around", outer_body)

    def scene() -> None:
        outer(ones()).asnumpy()
        inner(ones()).asnumpy()

    def look() -> Any:
        session = record(scene, clock)
        above = only(session, "Around")
        below = [(row.path, row.parent, row.python_ns) for row in rows(session, "Within")]
        nested = (("Around", "Within"), above.call, 10)
        return below == [nested] * 3 + [(("Within",), None, 10)], above.python_ns

    always(kind, (True, 5), look)


@every_kind
def test_07_inner_calls_at_once_never_cross(kind: str) -> None:
    inner = define("Par", add_one)
    outer = define("OfPar", lambda x: [inner(x) for _ in range(3)][2])

    def look() -> Any:
        session = record(lambda: [outer(ones()) for _ in range(3)])  # which checks the trace
        owners = {row.call for row in rows(session, "OfPar")}
        return len(owners), [row.parent in owners for row in rows(session, "Par")]

    always(kind, (3, [True] * 9), look)


@every_kind
def test_08_recursion_keeps_its_depth(kind: str) -> None:
    def body(x: Any) -> Any:
        return x + 0.0 if x.asnumpy()[0] <= 1 else rec(x - 1.0)

    rec = define("Rec8", body)

    def look() -> Any:
        session = record(lambda: rec(nd.full((1,), 3.0)).asnumpy())
        return sorted(row.path for row in rows(session, "Rec8"))

    always(kind, [("Rec8",) * depth for depth in (1, 2, 3)], look)


@every_kind
def test_09_10_many_calls_at_once_each_keep_their_own(kind: str) -> None:
    op = define("Many", three)

    def work(calls: int) -> None:
        for _ in range(calls):
            op(ones())
        nd.waitall()

    def scene() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, (50, 50)))
        work(100)

    def look() -> Any:
        found_subs = subs(record(scene), "Many")
        return len(found_subs), all(one == {ADD: 3} for one in found_subs)

    always(kind, (200, True), look)


@asynchronous
def test_11_the_pool_grows_and_shrinks_and_no_call_pays_for_it(kind: str) -> None:
    before = threading.active_count()

    def body(x: Any) -> Any:
        meet.wait(60)
        return x + 1.0

    op, meet = define("Blocks", body), threading.Barrier(64)
    with engine_of(kind):
        nd.use("threaded", 2, "pool" if kind == "pool" else "workers", idle_s=0.1)
        session = record(lambda: [op(ones()) for _ in range(64)])
        assert subs(session, "Blocks") == [{ADD: 1}] * 64
        assert len({row.lane for row in rows(session, "Blocks")}) == 64
        for _ in range(600):
            if threading.active_count() <= before + 4:
                break
            time.sleep(0.05)
        assert threading.active_count() <= before + 4


@every_kind
def test_12_13_after_a_failure_nothing_stays_marked(kind: str) -> None:
    bad, good = define("Bad12", fails), define("Good12", add_one)

    def scene() -> None:
        for _ in range(3):
            swallow(bad(ones()))
        x = ones()
        for _ in range(50):
            x = x + 1.0
        good(x).asnumpy()

    def look() -> Any:
        session = record(scene)
        failed = ["failed" in row.flags for row in rows(session, "Bad12")]
        return failed, subs(session, "Bad12"), regular(session), only(session, "Good12").path

    always(kind, ([True] * 3, [{ADD: 1}] * 3, {ADD: 50}, ("Good12",)), look)


@every_kind
def test_14_watched_or_not_a_nested_call_gives_the_same(kind: str) -> None:
    inner = define("In14", three)
    outer = define("Out14", lambda x: inner(inner(x)) * 3.0)
    with engine_of(kind):
        unwatched = outer(ones()).asnumpy()[0, 0]
    always(kind, unwatched, lambda: found(outer))


@every_kind
def test_15_a_name_that_looks_like_a_backward_is_not_one(kind: str) -> None:
    plain, fake = define("G", add_one, add_one), define("_backward_G", lambda x: x * 2.0)

    def scene() -> None:
        for _ in range(2):
            x = ones()
            x.attach_grad()
            with nd.autograd.record():
                y = plain(x)
            y.backward()
        fake(ones())

    def look() -> Any:
        session = record(scene)
        return (
            subs(session, "G", "backward"),
            subs(session, "_backward_G"),
            [row.phase for row in rows(session, "_backward_G")],
        )

    always(kind, ([{ADD: 1}] * 2, [{MUL: 1}], ["forward"]), look)


@every_kind
def test_16_operators_of_threads_the_call_started_are_its_own(kind: str) -> None:
    def body(x: Any) -> Any:
        threads = [threading.Thread(target=three, args=(x,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return x

    op = define("Own16", body)

    def look() -> Any:
        session = record(lambda: op(ones()))
        return subs(session, "Own16"), regular(session)

    always(kind, ([{ADD: 9}], {}), look)


@every_kind
def test_17_the_first_call_pays_for_nobody_else(kind: str) -> None:
    op = define("First", add_one)

    def look() -> Any:
        with engine_of(kind):  # an engine that has no thread yet
            session = record(lambda: [op(ones()) for _ in range(2)])
        return subs(session, "First")

    always(kind, [{ADD: 1}] * 2, look)


@every_kind
@pytest.mark.parametrize("row", ["18 start", "19 stop", "20 pause"])
def test_18_19_20_recording_begins_ends_or_pauses_inside(kind: str, row: str) -> None:
    profile = opscope.profile()

    def body(x: Any) -> Any:
        if row == "20 pause":
            x = x * 2.0
            profile.pause()
            x = x - 1.0
            profile.resume()
        elif row == "18 start":
            profile.start()
        x = three(x)
        if row == "19 stop":
            x.wait_to_read()
            profile.stop()
        return x

    op = define("Edge", body)

    def look() -> Any:
        if row != "18 start":
            profile.start()
        op(ones()).asnumpy()
        op_after = row == "20 pause"
        if op_after:
            op(ones()).asnumpy()
        nd.waitall()
        profile.stop()
        calls = rows(profile.session, "Edge")
        said = {"18 start": "clamped", "19 stop": "incomplete", "20 pause": "paused"}[row]
        return len(calls), [said in call.flags for call in calls], subs(profile.session, "Edge")

    expected = {
        "18 start": (1, [True], [{ADD: 3}]),
        "19 stop": (1, [True], [{ADD: 3}]),
        "20 pause": (2, [True] * 2, [{ADD: 3, MUL: 1}] * 2),
    }[row]
    always(kind, expected, look)


@every_kind
def test_20_a_pause_inside_does_not_count(kind: str) -> None:
    clock = ManualClock()

    def body(x: Any) -> Any:
        clock.tick(10)
        profile.pause()
        clock.tick(3000)
        profile.resume()
        clock.tick(5)
        return x

    op, profile = define("Paused20", body), opscope.profile()

    def look() -> Any:
        nonlocal profile
        profile = opscope.profile(clock=clock).start()
        op(ones()).asnumpy()
        profile.stop()
        call = only(profile.session, "Paused20")
        return call.wall_ns, call.python_ns

    always(kind, (15, 15), look)


def test_21_an_empty_name_is_refused_where_it_is_given() -> None:
    with pytest.raises(nd.RegistrationError, match="empty"):
        define("", add_one)


@every_kind
@pytest.mark.parametrize("name", ["Custom", "CustomOperatorWait", "\N{SNOWMAN}", "A::B"])
def test_21_special_names_are_ordinary(kind: str, name: str) -> None:
    op = define(name, add_one)

    def look() -> Any:
        session = record(lambda: op(ones()))
        return only(session, name).path, subs(session, name), regular(session)

    always(kind, ((name,), [{ADD: 1}], {}), look)


@every_kind
def test_22_23_long_names_that_begin_alike_stay_apart_and_whole(kind: str) -> None:
    # The 127th byte falls inside a letter.
    one, two = "x" * 126 + "\N{SNOWMAN}" + "1" * 170, "x" * 126 + "\N{SNOWMAN}" + "2" * 170
    first, second = define(one, three), define(two, add_one)

    def look() -> Any:
        session = record(lambda: (first(ones()), second(ones())))
        names = {event["name"] for event in slices(check_trace(session))}
        return subs(session, one), subs(session, two), {one, two} <= names

    always(kind, ([{ADD: 3}], [{ADD: 1}], True), look)


@every_kind
def test_24_quotes_and_backslashes(kind: str) -> None:
    name = 'a "quoted" \\ name'
    op = define(name, add_one)

    def look() -> Any:
        events = check_trace(record(lambda: op(ones())))
        return [event["name"] for event in slices(events)].count(name)

    always(kind, 1, look)


@every_kind
def test_26_bulk_hides_no_operator_and_goes_on_when_watched(kind: str) -> None:
    def body(x: Any) -> Any:
        with nd.bulk(4):
            for _ in range(12):
                x = x + 1.0
        return x

    op = define("Bulk26", body)

    def look() -> Any:
        session = record(lambda: op(ones()))
        return subs(session, "Bulk26"), {n for n in session.names if "Bulk" in n}

    always(kind, ([{ADD: 12}], {"Bulk26"}), look)


@every_kind
def test_34_an_operator_registered_again_is_another_one(kind: str) -> None:
    def look() -> Any:
        session = record(lambda: [define("R", body)(ones()).asnumpy() for body in (three, add_one)])
        keys = {row.key for row in rows(session, "R")}
        table = [row for row in opscope.summary(session) if row["op"] == "R"]
        return len(keys), len(table), subs(session, "R")

    always(kind, (2, 2, [{ADD: 3}, {ADD: 1}]), look)
