"""Forks in the middle, workers of a DataLoader, and an interpreter that ends meanwhile."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.checks import check
from tests.hosts.torch.edges import script
from tests.hosts.torch.ops import custom, negative, owned, record, rows, sees_threads, torch

import opscope
from opscope.analyse import span_records
from opscope.testing import assert_restored


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_in_the_middle(inside: bool, tmp_path: Path) -> None:
    """The child is not recorded, may profile on its own, and the parent's recording goes on."""
    children: list[int] = []

    def child() -> int:
        leaf(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
            leaf(x)
        seen = Counter(event.name() for event in own.profiler.kineto_results.events())
        return 0 if seen[leaf._qualname] >= 1 and seen["aten::neg"] == 1 else 3

    def fork() -> None:
        pid = os.fork()
        if not pid:
            code = 4
            try:
                code = child()
            finally:
                os._exit(code)
        children.append(os.waitpid(pid, 0)[1])

    def forks(x: Any) -> Any:
        torch.exp(x)
        fork()
        return torch.neg(x)

    leaf, outer, x = custom("leaf", negative), custom("outer", forks), torch.ones(3)

    def program() -> None:
        leaf(x)
        if inside:
            outer(x)
        else:
            fork()
        leaf(x)

    with assert_restored(), opscope.profile(output=tmp_path / "fork.opscope") as run:
        program()
    assert children == [0]
    for session in (run.session, opscope.load(tmp_path / "fork.opscope")):
        check(session)
        assert session.processes[0].broken == ()
        assert len(session.processes) == 1
        assert [owned(session, row) for row in rows(session, leaf)] == [{"aten::neg": 1}] * 2
        assert [owned(session, row) for row in rows(session, outer)] == (
            [{"aten::exp": 1, "aten::neg": 1}] if inside else []
        )


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc]
    """A data set that calls a custom operator for each sample, in whatever process it is."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return sample_op()(torch.full((2,), float(index)))


_sample: list[Any] = []


def sample_op() -> Any:
    """Made once a process, as a spawned worker imports this module anew."""
    if not _sample:
        _sample.append(custom("sample", negative))
    return _sample[0]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_data_loader(workers: int) -> None:
    """Workers are other processes: what they run is not recorded here, and they are not hurt."""
    if workers and "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork here")
    step = custom("step", negative)
    batches: list[Any] = []

    def program() -> None:
        loader = torch.utils.data.DataLoader(
            Numbers(),
            batch_size=2,
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )
        for batch in loader:
            batches.append(step(batch)[:, 0].tolist())

    sample_op()
    session = record(program)
    assert batches == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert len(rows(session, step)) == 4
    assert len(rows(session, sample_op())) == (0 if workers else 8)


EXIT = """
import sys, threading, torch, opscope
HERE, GO = threading.Event(), threading.Event()
def kernel(x: torch.Tensor) -> torch.Tensor:
    torch.exp(x)
    HERE.set()
    GO.wait()
    return torch.neg(x)
op = torch.library.custom_op("opscope_exit::held", kernel, mutates_args=())
run = opscope.profile(output=sys.argv[1]).start()
threading.Thread(target=op, args=(torch.ones(3),), daemon=True).start()
HERE.wait()
torch.tan(torch.ones(3))
import atexit
atexit.register(run.stop)
"""


@sees_threads
def test_a_daemon_thread_inside_an_operator_as_the_interpreter_ends(tmp_path: Path) -> None:
    file = tmp_path / "exit.opscope"
    script(tmp_path, EXIT, file)
    session = opscope.load(file)
    check(session)
    (row,) = rows(session, "opscope_exit::held")
    assert "incomplete" in row.flags
    assert owned(session, row) == {"aten::exp": 1}
    assert sum(record["name"] == "aten::tan" for record in span_records(session)) == 1
