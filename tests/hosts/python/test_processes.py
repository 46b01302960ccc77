"""Pools of processes work as ever inside a recording, and a forked child records nothing."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from tests.hosts.checks import Scene, check

from opscope import carry, custom_op, load
from opscope.model import Kind
from opscope.profiler import profile
from opscope.record import scope, watch
from opscope.testing import assert_restored

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def square(number: int) -> int:
    return number * number


@custom_op
def marked_square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("inside", [False, True])
def test_a_process_pool_executor(inside: bool, scene: Scene) -> None:
    def use() -> None:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(square, range(5))) == [0, 1, 4, 9, 16]
            assert pool.submit(marked_square, 7).result() == 49
            assert pool.submit(carry(square), 8).result() == 64

    with scene:
        (custom_op("uses")(use) if inside else use)()
    assert scene.named(Kind.TASK) == []
    assert len(scene.calls()) == inside


@pytest.mark.parametrize("inside", [False, True])
def test_a_pool_of_multiprocessing(inside: bool, scene: Scene) -> None:
    def use() -> None:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
            assert pool.apply(marked_square, (7,)) == 49
            assert list(pool.imap(square, range(3))) == [0, 1, 4]
            assert sorted(pool.imap_unordered(square, range(3))) == [0, 1, 4]
            pool.close()
            pool.join()

    with scene:
        (custom_op("uses")(use) if inside else use)()
    assert scene.named(Kind.TASK) == []
    assert len(scene.calls()) == inside


def forked(fn: Callable[[], object]) -> bool:
    """Run `fn` in a forked child; whether all was well there."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    code = 1
    try:
        fn()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        sys.stderr.flush()
    finally:
        os._exit(code)


def test_a_fork_inside_a_call(tmp_path: Path) -> None:
    file = tmp_path / "run.opscope"

    def in_child() -> None:
        assert watch.recorder is None
        assert marked_square(3) == 9
        with custom_op("in the child"):
            pass
        with profile() as own:  # finds the call that forked still running
            marked_square(4)
        check(own.session)
        assert [op.name for op in own.session.ops] == ["forks", "marked_square"]

    @custom_op("forks")
    def forks() -> None:
        assert forked(in_child)
        marked_square(5)

    with assert_restored(), profile(output=file):
        marked_square(1)
        forks()
    session = load(file)
    check(session)
    assert session.processes[0].complete
    assert session.processes[0].damage == ""
    assert [op.name for op in session.ops] == ["marked_square", "forks"]
    assert len(session.spans) == 3


def test_the_child_ends_the_call_it_was_born_in(tmp_path: Path) -> None:
    file = tmp_path / "run.opscope"
    role = {"child": False}

    @custom_op("forks")
    def forks() -> int:
        pid = os.fork()
        role["child"] = pid == 0
        return pid

    with profile(output=file) as recorded:
        pid = forks()
        if role["child"]:
            recorded.stop()
            os._exit(0 if scope.held() is None else 1)
        assert os.waitpid(pid, 0)[1] == 0
    session = load(file)
    check(session)
    assert session.processes[0].damage == ""
    assert [op.name for op in session.ops] == ["forks"]
    assert session.spans["flags"].tolist() == [0]
