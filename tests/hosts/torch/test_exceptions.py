"""Operators that raise: their calls have failed, and nothing else is the worse for it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from tests.hosts.torch.edges import Boom, made
from tests.hosts.torch.ops import negative, owned, record, rows, torch

KINDS = ("custom_op", "differentiable", "function", "library")


def boom(x: Any) -> Any:
    torch.exp(x)
    raise Boom


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grad", [False, True])
def test_a_forward_that_raises(kind: str, grad: bool) -> None:
    (bad, name), (good, well) = made(kind, boom), made(kind, negative)
    x = torch.ones(3, requires_grad=grad)

    def program() -> None:
        for _ in range(3):
            with pytest.raises(Boom):
                bad(x)
            good(x)
            torch.tan(x)

    session = record(program)
    assert len(rows(session, name)) == len(rows(session, well)) == 3
    for row in rows(session, name):
        assert owned(session, row)["aten::exp"] == 1
        assert ("failed" in row.flags) == (kind != "library")  # torch's events do not tell
        assert row.parent is None
    for row in rows(session, well):
        assert row.parent is None
        assert "failed" not in row.flags
        assert owned(session, row)["aten::neg"] == 1
    assert owned(session, 0)["aten::tan"] == 3


@pytest.mark.parametrize("kind", ["differentiable", "function"])
def test_a_backward_that_raises(kind: str) -> None:
    (bad, name), (good, well) = made(kind, negative, boom), made(kind, negative)
    x = torch.ones(3, requires_grad=True)

    def program() -> None:
        for _ in range(2):
            with pytest.raises(Boom):
                bad(good(x)).sum().backward()
            good(x).sum().backward()
            torch.tan(x)

    session = record(program)
    broken = rows(session, name, "backward")
    assert [row.flags for row in broken] == [("failed", "estimated")] * 2
    assert [row.forward_call for row in broken] == [
        row.call for row in rows(session, name, "forward")
    ]
    fine = rows(session, well, "backward")
    assert len(fine) == 2
    assert all(row.parent is None and "failed" not in row.flags for row in fine)
    assert owned(session, 0)["aten::tan"] == 2


def test_an_inner_call_that_raises_and_is_caught() -> None:
    inner, name = made("custom_op", boom)

    def body(x: Any) -> Any:
        with suppress(Boom):
            inner(x)
        return torch.neg(x)

    outer, above = made("function", body)
    session = record(lambda: outer(torch.ones(3, requires_grad=True)))
    (row,), (below,) = rows(session, above), rows(session, name)
    assert "failed" not in row.flags
    assert "failed" in below.flags
    assert below.parent == row.call
    assert owned(session, row) == {name: 1, "aten::neg": 1}
