"""Every operator once, every call with its own row and what it owns: on each kind of engine."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import flags, free, owned, rows
from tests.hosts.engine.ops import ENGINES, add_one, define, engine_of, triple

import opscope
from opscope import engine as nd

TRIPLE = {"_plus_scalar": 1, "_mul_scalar": 1, "_minus_scalar": 1, "_copyto": 1}


@pytest.fixture(params=list(ENGINES), autouse=True)
def kind(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Each test on each way of running custom operators."""
    with engine_of(request.param):
        yield request.param


def test_operators_of_a_call_and_operators_of_nobody() -> None:
    op = define("Triple", triple)
    with opscope.profile() as profile:
        x = nd.ones((4, 4))
        for _ in range(5):
            op(x)
        for _ in range(4):
            x = x + 1.0
        nd.waitall()
    session = profile.session
    check(session)
    found = rows(session, "Triple")
    assert len(found) == 5
    for call in found:
        assert owned(session, call) == TRIPLE
        assert call.subs == 4
        assert call.path == ("Triple",)
    assert free(session) == {"_ones": 1, "_plus_scalar": 4}


def test_forward_and_backward_are_one_operator_joined_call_by_call() -> None:
    op = define("Both", triple, add_one)
    with opscope.profile() as profile:
        x = nd.ones((4, 4))
        x.attach_grad()
        for _ in range(3):
            with nd.autograd.record():
                y = op(x)
            y.backward()
        nd.waitall()
    session = profile.session
    check(session)
    forward, backward = rows(session, "Both", "forward"), rows(session, "Both", "backward")
    # Calls that do not depend on each other may run in any order.
    assert sorted(row.forward_call or 0 for row in backward) == sorted(row.call for row in forward)
    assert len({row.key for row in forward + backward}) == 1
    assert [row.path for row in backward] == [("_backward_Both",)] * 3
    for call in backward:
        assert owned(session, call) == {"_plus_scalar": 1, "_copyto": 1}


def test_sub_operators_outlive_a_call_that_does_not_wait() -> None:
    gate = threading.Event()

    def lazily(x):  # type: ignore[no-untyped-def]
        y = nd.empty(x.shape)
        nd.push_sync(lambda: gate.wait(30), writes=[y.storage.var], name="slow")
        return y

    op = define("Lazy", lazily)
    with opscope.profile() as profile:
        threading.Timer(0.05, gate.set).start()
        op(nd.ones((2, 2)))
        nd.waitall()
    session = profile.session
    check(session)
    (call,) = rows(session, "Lazy")
    assert owned(session, call)["slow"] == 1
    naive = call.lane == "MainThread"
    assert ("outlived" in call.flags) is not naive
    assert call.span_ns > call.wall_ns or naive


def test_two_threads_call_the_same_operator() -> None:
    op = define("Shared", triple)
    meet = threading.Barrier(2)

    def work() -> None:
        meet.wait(30)
        for _ in range(20):
            op(nd.ones((2, 2)))
        nd.waitall()

    with opscope.profile() as profile:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    session = profile.session
    check(session)
    found = rows(session, "Shared")
    assert len(found) == 40
    assert all(owned(session, call) == TRIPLE for call in found)


def test_200_calls_in_flight(kind: str) -> None:
    gate = threading.Event()
    calls = 4 if kind == "naive" else 200
    if kind == "naive":
        gate.set()

    def held(x):  # type: ignore[no-untyped-def]
        y = x + 1.0
        gate.wait(60)
        return y * 2.0

    op = define("Held", held)
    with opscope.profile() as profile:
        x = nd.ones((2, 2))
        results = [op(x) for _ in range(calls)]
        threading.Timer(0.2, gate.set).start()
        for result in results:
            assert result.asnumpy()[0, 0] == 4.0
        nd.waitall()
    session = profile.session
    check(session)
    found = rows(session, "Held")
    assert len(found) == calls
    expected = {"_plus_scalar": 1, "_mul_scalar": 1, "_copyto": 1}
    assert all(owned(session, call) == expected for call in found)


def test_nested_calls_and_what_each_of_them_owns() -> None:
    inner = define("Inner", add_one)
    outer = define("Outer", lambda x: inner(x * 2.0) * 3.0)
    with opscope.profile() as profile:
        x = nd.ones((2, 2))
        outer(x).asnumpy()
        inner(x).asnumpy()
    session = profile.session
    check(session)
    (above,) = rows(session, "Outer")
    inside, alone = sorted(rows(session, "Inner"), key=lambda row: -len(row.path))
    assert owned(session, above) == {"_mul_scalar": 2, "Inner": 1, "_copyto": 1}
    assert (inside.path, inside.parent) == (("Outer", "Inner"), above.call)
    assert (alone.path, alone.parent) == (("Inner",), None)
    for call in (inside, alone):
        assert owned(session, call) == {"_plus_scalar": 1, "_copyto": 1}


def test_recursive_three_deep() -> None:
    def body(x):  # type: ignore[no-untyped-def]
        depth = x.asnumpy()[0]
        return x + 0.0 if depth <= 1 else rec(x - 1.0) * 1.0

    rec = define("Rec", body)
    with opscope.profile() as profile:
        rec(nd.full((1,), 3.0)).asnumpy()
    session = profile.session
    check(session)
    found = rows(session, "Rec")
    assert sorted(len(row.path) for row in found) == [1, 2, 3]
    assert {row.path for row in found} == {("Rec",) * depth for depth in (1, 2, 3)}
    deepest = max(found, key=lambda row: len(row.path))
    assert owned(session, deepest) == {"_plus_scalar": 1, "_copyto": 1}


def test_two_operators_side_by_side() -> None:
    one, two = define("MyAdd1", add_one), define("MyAdd2", lambda x: (x + 1.0) + 2.0)
    with opscope.profile() as profile:
        x = nd.ones((2, 2))
        for _ in range(10):
            one(x), two(x)
        nd.waitall()
    session = profile.session
    check(session)
    total: dict[str, Counter[str]] = {"MyAdd1": Counter(), "MyAdd2": Counter()}
    for name, count in total.items():
        for call in rows(session, name):
            count += owned(session, call)
    assert total == {
        "MyAdd1": {"_plus_scalar": 10, "_copyto": 10},
        "MyAdd2": {"_plus_scalar": 20, "_copyto": 10},
    }
    assert "_plus_scalar" not in free(session)


def test_operators_of_threads_a_call_started() -> None:
    def spawns(x):  # type: ignore[no-untyped-def]
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda by: x * by, (2.0, 3.0)))
        thread = threading.Thread(target=lambda: x - 1.0)
        thread.start()
        thread.join()
        return parts[0] + parts[1]

    op = define("Spawns", spawns)
    with opscope.profile() as profile:
        op(nd.ones((2, 2))).asnumpy()
    session = profile.session
    check(session)
    (call,) = rows(session, "Spawns")
    assert owned(session, call) == {
        "_mul_scalar": 2, "_minus_scalar": 1, "elemwise_add": 1, "_copyto": 1
    }  # fmt: skip
    assert (call.elsewhere_python_ns or 0) > 0


def test_bulk_keeps_every_operator_apart() -> None:
    def bulked(x):  # type: ignore[no-untyped-def]
        with nd.bulk(4):
            for _ in range(10):
                x = x + 1.0
        return x

    op = define("Bulked", bulked)
    with opscope.profile() as profile:
        assert op(nd.ones((2, 2))).asnumpy()[0, 0] == 11.0
        with nd.bulk(4):
            x = nd.ones((2, 2))
            for _ in range(6):
                x = x * 2.0
        nd.waitall()
    session = profile.session
    check(session)
    (call,) = rows(session, "Bulked")
    assert owned(session, call) == {"_plus_scalar": 10, "_copyto": 1}
    assert free(session)["_mul_scalar"] == 6


def test_failures_are_flagged_and_nothing_else() -> None:
    define("Fine", add_one)(nd.ones((2, 2))).asnumpy()
    with opscope.profile() as profile:
        define("Fine", add_one)(nd.ones((2, 2))).asnumpy()
    assert all("failed" not in found for found in flags(profile.session, "Fine"))
