"""Every operator under the call that caused it, whichever thread it ran on: all of them."""

from __future__ import annotations

import contextvars
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.hosts.torch.ops import owned, record, rows, sees_threads, tasks, torch
from tests.hosts.torch.threads import HERE, KINDS, PLAIN, THERE, Program, run

from opscope.model import Session


@pytest.fixture(scope="module", params=[*KINDS, "library in library", "function in backward"])
def recorded(request: pytest.FixtureRequest) -> tuple[Program, Session]:
    """The program with its outer operator of each kind, the inner one a custom_op unless said."""
    inner, _, outer = request.param.rpartition(" in ")
    program = Program(KINDS[outer], KINDS[inner or "custom_op"])
    return program, record(program)


def truth(way: str, tag: int, leaf: str, inner: str) -> Counter[str]:
    """What a call of that tag owns."""
    plain = f"aten::{PLAIN[way].__name__}"
    times = HERE if way == "nested" else HERE + THERE
    own = Counter({plain: times * tag, leaf: times, "aten::round": 1})
    if way == "nested":
        own[inner] = THERE
    return own


@sees_threads
def test_every_leaf_and_operator_is_under_its_own_call(
    recorded: tuple[Program, Session],
) -> None:
    program, session = recorded
    outer, inner = program.shown, program.inner._qualname
    calls = {row.call: row for row in rows(session, program.outer, program.phase)}
    assert len(calls) == len(program.tags)
    seen = {}
    for tag in program.tags:
        way, leaf = program.way[tag], program.leaf[tag]._qualname
        shown = Counter(row.path for row in rows(session, leaf))
        below = (outer, inner, leaf)
        wanted = Counter({(outer, leaf): HERE + (THERE if way != "nested" else 0)})
        wanted[below] += THERE if way == "nested" else 0
        wanted[(leaf,)] += 1 if way == "lazy_pool" else 0
        assert shown == +wanted, (way, tag)
        parents = {row.parent for row in rows(session, leaf) if row.path == (outer, leaf)}
        assert len(parents) == 1, (way, tag)
        (call,) = parents
        seen[call] = tag
        assert owned(session, calls[call]) == truth(way, tag, leaf, inner), (way, tag)
        for row in rows(session, leaf):
            assert owned(session, row) == {"aten::neg": 1}
    assert seen.keys() == calls.keys()


@sees_threads
def test_what_a_nested_operator_hands_over_is_its_own(recorded: tuple[Program, Session]) -> None:
    program, session = recorded
    nested = [tag for tag in program.tags if program.way[tag] == "nested"]
    found = Counter()
    for row in rows(session, program.inner):
        own = owned(session, row)
        assert own["aten::round"] == 1
        (tag,) = [tag for tag in nested if program.leaf[tag]._qualname in own]
        leaf = program.leaf[tag]._qualname
        assert own == {"aten::erf": tag, leaf: 1, "aten::round": 1}
        (above,) = {other.parent for other in rows(session, leaf) if other.path[1:] == (leaf,)}
        assert row.parent == above
        found[tag] += 1
    assert found == dict.fromkeys(nested, THERE)


@sees_threads
def test_nobody_owns_what_a_lazy_worker_does_later(recorded: tuple[Program, Session]) -> None:
    program, session = recorded
    lazy = [tag for tag in program.tags if program.way[tag] == "lazy_pool"]
    leaves = {program.leaf[tag]._qualname: 1 for tag in lazy}
    free = owned(session, 0)
    assert {name: free[name] for name in leaves} == leaves
    named = {f"aten::{plain.__name__}" for plain in PLAIN.values()} | {"aten::neg", "aten::round"}
    assert {name: free[name] for name in named if free[name]} == {"aten::tan": sum(lazy)}


@sees_threads
def test_each_task_is_its_calls(recorded: tuple[Program, Session]) -> None:
    program, session = recorded
    wanted: Counter[int] = Counter()
    for tag in program.tags:
        leaf = program.leaf[tag]._qualname
        (call,) = {row.parent for row in rows(session, leaf) if len(row.path) == 2}
        wanted[call] = THERE
    for row in rows(session, program.inner):
        wanted[row.call] = 1
    found: Counter[int] = Counter()
    for (_, owner), count in tasks(session).items():
        found[owner] += count
    # ThreadPool hands its two jobs over in one or two pieces.
    pooled = {
        row.parent
        for tag in program.tags
        if program.way[tag] == "thread_pool"
        for row in rows(session, program.leaf[tag])
    }
    lazy = sum(way == "lazy_pool" for way in program.way.values())
    assert found.pop(0) == 2 + lazy  # the two threads of the program, and what nobody asked for
    assert found.keys() == wanted.keys()
    assert all(found[call] == wanted[call] or call in pooled for call in wanted)


def test_threads_of_a_call_are_on_show_as_elsewhere(recorded: tuple[Program, Session]) -> None:
    program, session = recorded
    for row in rows(session, program.outer, program.phase):
        assert row.elsewhere_ns is not None
        assert row.elsewhere_ns > 0


@sees_threads
@pytest.mark.parametrize("kind", ["custom_op", "library"])
def test_threads_that_only_a_context_is_carried_to(kind: str) -> None:
    ran = threading.Event()

    def kernel(x: Any) -> Any:
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(context.run, torch.sin, x).result(30)
        thread = threading.Thread(target=context.run, args=(torch.cos, x))
        run([thread])
        timer = threading.Timer(0, lambda: (torch.exp(x), ran.set()))
        timer.start()
        timer.join(30)
        return torch.neg(x)

    op = KINDS[kind]("carried", kernel)
    x = torch.ones(2)

    def program() -> None:
        op(x)
        op(x)

    session = record(program)
    assert ran.is_set()
    for row in rows(session, op):
        assert owned(session, row) == dict.fromkeys(
            ("aten::sin", "aten::cos", "aten::exp", "aten::neg"), 1
        )
