"""A call that raises keeps its row, says so, and marks nobody else: at each place it can raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.engine.found import free, owned, rows
from tests.hosts.engine.ops import ENGINES, add_one, define, engine_of

import opscope
from opscope import engine as nd


@pytest.fixture(params=list(ENGINES), autouse=True)
def kind(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """Each test on each way of running custom operators."""
    with engine_of(request.param):
        yield request.param


def _fails(message: str) -> None:
    raise ZeroDivisionError(message)


def in_python(x: Any) -> Any:
    """After one sub-operator."""
    y = x + 1.0
    _fails("in Python")
    return y


def while_pushing(x: Any) -> Any:
    """Shapes that do not fit."""
    return nd.dot(x + 1.0, nd.ones((7, 3)))


def in_execution(x: Any) -> Any:
    """In a sub-operator, and nobody waits for it inside."""
    y = nd.empty(x.shape)
    nd.push_sync(lambda: _fails("in execution"), writes=[y.storage.var], name="bad")
    return y


def in_execution_with_a_wait(x: Any) -> Any:
    """In a sub-operator that the body waits for."""
    y = in_execution(x)
    y.wait_to_read()
    return y


PLACES: dict[str, tuple[Callable[[Any], Any], type[Exception], bool, dict[str, int]]] = {
    "python": (in_python, ZeroDivisionError, True, {"_plus_scalar": 1}),
    "pushing": (while_pushing, nd.ShapeError, True, {"_plus_scalar": 1, "_ones": 1}),
    "execution": (in_execution, ZeroDivisionError, False, {"bad": 1}),
    "execution and wait": (in_execution_with_a_wait, ZeroDivisionError, True, {"bad": 1}),
}


@pytest.mark.parametrize("place", list(PLACES))
def test_each_place(place: str) -> None:
    body, error, in_body, expected = PLACES[place]
    bad, good = define("Bad", body), define("Good", add_one)
    with opscope.profile() as profile:
        for _ in range(3):
            result = bad(nd.ones((2, 2)))
            with pytest.raises(error):
                result.wait_to_read()
        for _ in range(50):
            nd.ones((2, 2)) * 2.0
        good(nd.ones((2, 2))).asnumpy()
        nd.waitall()
    session = profile.session
    check(session)
    found = rows(session, "Bad")
    assert len(found) == 3
    for call in found:
        assert ("failed" in call.flags) is in_body
        assert owned(session, call) == expected
    (after,) = rows(session, "Good")
    assert (after.path, after.flags == () or after.flags == ("outlived",)) == (("Good",), True)
    assert owned(session, after) == {"_plus_scalar": 1, "_copyto": 1}
    assert free(session) == {"_ones": 54, "_mul_scalar": 50}


def test_the_failed_operator_itself_is_flagged() -> None:
    with opscope.profile() as profile:
        result = define("Bad", in_execution)(nd.ones((2, 2)))
        with pytest.raises(ZeroDivisionError):
            result.wait_to_read()
    session = profile.session
    bad = session.names.index("bad")
    (row,) = session.spans[session.spans["name"] == bad]
    assert row["flags"] & 1


def test_nested_failure_marks_both_calls_and_their_order() -> None:
    inner = define("InnerBad", in_python)

    def waits(x: Any) -> Any:
        y = inner(x)
        y.wait_to_read()
        return y

    outer = define("OuterBad", waits)
    with opscope.profile() as profile:
        result = outer(nd.ones((2, 2)))
        with pytest.raises(ZeroDivisionError):
            result.wait_to_read()
        nd.waitall()
    session = profile.session
    check(session)
    (above,), (below,) = rows(session, "OuterBad"), rows(session, "InnerBad")
    assert "failed" in above.flags
    assert "failed" in below.flags
    assert below.parent == above.call
