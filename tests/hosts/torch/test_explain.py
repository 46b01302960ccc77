"""A finished profile of torch's own as a session: calls, owners and links without any hook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.torch.backward import KINDS, forward_of, tags
from tests.hosts.torch.ops import custom, differentiable, library, negative, owned, rows, torch

import opscope
from opscope.analyse import span_records
from opscope.errors import UsageError
from opscope.model import Kind, Session

CPU = [torch.profiler.ProfilerActivity.CPU]


def profiled(program: Callable[[], object], **more: Any) -> Any:
    with torch.profiler.profile(activities=CPU, **more) as found:
        program()
    return found


def explained(program: Callable[[], object], **more: Any) -> Session:
    session = opscope.explain(profiled(program, **more))
    check(session)
    return session


def ones() -> Any:
    return torch.ones(3, requires_grad=True)


#: An opscope-marked function leaves no trace in torch's events.
OPS = [kind for kind in KINDS if kind != "marked"]


@pytest.mark.parametrize("kind", OPS)
def test_calls_owners_and_links(kind: str) -> None:
    op = KINDS[kind](kind)

    def program() -> None:
        outs = [op(ones(), tag) for tag in range(1, 5)]
        for out in reversed(outs):
            out.sum().backward()

    session = explained(program)
    forward, backward = rows(session, op, "forward"), rows(session, op, "backward")
    assert len(forward) == len(backward) == 4
    assert tags(session, op, "forward") == dict.fromkeys(range(1, 5), 1)
    assert tags(session, op, "backward") == dict.fromkeys(range(1, 5), 1)
    for row in backward:
        assert forward_of(session, op, row) == ("forward", owned(session, row)["aten::cos"])
    (found,) = [o for o in session.ops if o.name == op._qualname]
    assert found.host == "torch"
    assert found.line > 0


def test_nested_operators() -> None:
    inner = differentiable("inner", negative, lambda slope: torch.cos(slope))

    def body(x: Any) -> Any:
        return torch.exp(inner(x))

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return middle(x)

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return torch.tan(slope)

    middle = library("middle", body)
    session = explained(lambda: Outer.apply(ones()).sum().backward())
    (outer,) = rows(session, "Outer", "forward")
    (between,) = rows(session, middle, "forward")
    (innermost,) = rows(session, inner, "forward")
    assert (outer.parent, between.parent, innermost.parent) == (None, outer.call, between.call)
    assert owned(session, innermost) == {"aten::neg": 1}
    assert owned(session, between) == {inner._qualname: 1, "aten::exp": 1}
    assert owned(session, outer) == {middle._qualname: 1}
    (back,) = rows(session, "Outer", "backward")
    assert back.forward_call == outer.call
    assert owned(session, back)["aten::tan"] == 1


@pytest.mark.skipif(
    not hasattr(torch._C._autograd._KinetoEvent, "is_python_function"),
    reason="events of this torch do not tell whether they are functions of Python",
)
@pytest.mark.parametrize("more", [{}, {"record_shapes": True}, {"with_stack": True}], ids=str)
def test_every_event_is_one_span(more: dict[str, bool]) -> None:
    """Events of the wrapper of one call are one span, and nothing else is left out."""
    plain, graded = custom("plain", negative), differentiable("graded", negative, torch_cos)

    def program() -> None:
        with torch.profiler.record_function("mine"):
            for _ in range(3):
                plain(torch.ones(3))
                graded(ones()).sum().backward()

    found = profiled(program, **more)
    session = opscope.explain(found)
    check(session)
    # `found.events()` would leave out operators in operators of the same name.
    kept = [e for e in found.profiler.kineto_results.events() if not e.is_python_function()]
    assert len(kept) >= len([e for e in found.events() if not e.is_python_function])
    wrappers = Counter(e.name() for e in kept)[f"GeneratedBackwardFor_{flat(graded)}_default"]
    assert wrappers == 3
    again = sum(e.name() == graded._qualname for e in kept) - 3
    shown = session.spans[session.spans["kind"] != Kind.DISPATCH]
    assert len(shown) == len(kept) - wrappers - again
    assert len(rows(session, plain)) == 3
    assert len(rows(session, graded, "forward")) == len(rows(session, graded, "backward")) == 3
    (mark,) = [r for r in span_records(session) if r["name"] == "mine"]
    assert mark["kind"] == "range"


def torch_cos(slope: Any) -> Any:
    return torch.cos(slope)


def flat(op: Any) -> str:
    return str(op._qualname).replace("::", "_")


def test_what_torch_does_not_tell_is_not_known() -> None:
    op = custom("untracked", negative)
    session = explained(lambda: op(torch.ones(3)))
    (row,) = rows(session, op)
    assert (row.python_ns, row.wait_ns) == (None, None)
    assert row.untracked_ns is not None
    (sight,) = session.sight
    assert sight.host == "torch"
    assert "cpu" in sight.misses


def test_a_profile_of_the_autograd_profiler() -> None:
    op = custom("older", negative)
    with torch.autograd.profiler.profile(use_kineto=True) as found:
        op(torch.ones(3))
    session = opscope.explain(found)
    check(session)
    assert len(rows(session, op)) == 1


def test_a_profile_with_a_schedule() -> None:
    op = custom("scheduled", negative)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(activities=CPU, schedule=schedule) as found:
        for _ in range(5):
            op(torch.ones(3))
            found.step()
    session = opscope.explain(found)
    check(session)
    assert len(rows(session, op)) == 2
    assert sum(record["kind"] == "step" for record in span_records(session)) == 2


def test_a_profile_without_events() -> None:
    session = opscope.explain(profiled(lambda: None))
    check(session)
    assert rows(session, "anything") == []


def test_it_can_be_exported(tmp_path: Any) -> None:
    op = custom("exported", negative)
    session = explained(lambda: op(torch.ones(3)))
    opscope.export(session, tmp_path / "trace.json")
    assert op._qualname in (tmp_path / "trace.json").read_text("utf-8")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.profiler.profile(activities=CPU),
        lambda: torch.autograd.profiler.profile(use_kineto=True),
        lambda: torch.profiler.profile(),
        lambda: object(),
        lambda: None,
        lambda: 7,
        lambda: "profile",
        lambda: opscope.profile(),
        lambda: torch.ones(3),
    ],
)
@pytest.mark.filterwarnings("ignore:.*CUDA:UserWarning")
def test_what_is_no_finished_profile(wrong: Callable[[], Any]) -> None:
    with pytest.raises(UsageError):
        opscope.explain(wrong())


def test_a_profile_that_is_still_running() -> None:
    with torch.profiler.profile(activities=CPU) as running, pytest.raises(UsageError):
        opscope.explain(running)
