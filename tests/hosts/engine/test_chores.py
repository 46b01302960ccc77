"""The engine's own chores belong to nobody, whoever drops the last reference, and count nowhere."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import kinds, owned, rows
from tests.hosts.engine.ops import ENGINES, define, engine_of

import opscope
from opscope import engine as nd
from opscope.model import Kind


@pytest.fixture(params=list(ENGINES), autouse=True)
def kind(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Each test on each way of running custom operators."""
    with engine_of(request.param):
        yield request.param


def temporaries(x: Any) -> Any:
    """Four arrays of which three are dropped in the body."""
    for _ in range(4):
        x = x + 1.0
    return x


def test_chores_are_runtime_without_owner() -> None:
    op = define("Drops", temporaries)
    with opscope.profile() as profile:
        for _ in range(5):
            op(nd.ones((2, 2))).asnumpy()
        nd.waitall()
        gc.collect()
        nd.waitall()
    session = profile.session
    check(session)
    assert kinds(session)["runtime"] > 0
    for call in rows(session, "Drops"):
        assert owned(session, call) == {"_plus_scalar": 4, "_copyto": 1}
        assert call.subs == 5


def test_it_does_not_matter_which_thread_drops_the_last_reference() -> None:
    kept: list[Any] = []

    def keeps(x: Any) -> Any:
        y = x * 2.0
        kept.append(y)
        return y + 1.0

    op = define("Keeps", keeps)
    with opscope.profile() as profile:
        op(nd.ones((2, 2))).asnumpy()
        other = threading.Thread(target=kept.clear)
        other.start()
        other.join()
        nd.waitall()
    session = profile.session
    check(session)
    (call,) = rows(session, "Keeps")
    assert owned(session, call) == {"_mul_scalar": 1, "_plus_scalar": 1, "_copyto": 1}


def test_a_chore_inside_a_call_is_runtime_of_that_call_only_on_its_lane(kind: str) -> None:
    op = define("Drops", temporaries)
    with opscope.profile() as profile:
        op(nd.ones((2, 2))).asnumpy()
        nd.waitall()
    session = profile.session
    (call,) = rows(session, "Drops")
    chores = session.spans[session.spans["kind"] == Kind.RUNTIME]
    assert len(chores) > 0
    if kind == "naive":
        assert call.runtime_ns > 0
    else:
        assert call.runtime_ns == 0


def test_dummy_waits_are_not_recorded() -> None:
    op = define("Plain", temporaries)
    with opscope.profile() as profile:
        op(nd.ones((2, 2))).asnumpy()
        nd.waitall()
    plain = {"Plain", "_ones", "_plus_scalar", "_copyto", "DeleteVariable", "dispatch"}
    waits = {"wait_to_read", "asnumpy", "wait", "waitall", "wait_all"}
    assert set(profile.session.names) <= plain | waits
