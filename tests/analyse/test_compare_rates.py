"""How often the comparison is wrong, over many made-up experiments with a fixed seed."""

from __future__ import annotations

from tests.analyse.runs import Machine

from opscope.analyse.compare import Comparison, compare

TRIES = 20


def experiment(seed: int, **slower: float) -> Comparison:
    """Five runs a side in alternation, the new ones with some operators slower."""
    machine = Machine(seed)
    pairs = [(machine.run(), machine.run(**slower)) for _ in range(5)]
    return compare([base for base, _ in pairs], [new for _, new in pairs])


def marks(comparison: Comparison) -> set[tuple[str, str, str | None]]:
    return {("::".join(change.path), change.part, change.verdict) for change in comparison.marked}


def test_of_equal_runs_nothing_is_marked() -> None:
    tries = [experiment(seed) for seed in range(TRIES)]
    assert min(comparison.tests for comparison in tries) >= 6
    assert sum(marks(comparison) == set() for comparison in tries) >= 19


def test_a_slower_python_part_is_marked_and_nothing_else() -> None:
    right = {("alone", "python", "slower")}
    tries = [marks(experiment(100 + seed, alone=1.3)) for seed in range(TRIES)]
    assert sum(found == right for found in tries) >= 18
    assert sum(found - right != set() for found in tries) <= 1


def test_so_is_one_inside_another_operator() -> None:
    right = {("outer::inner", "python", "slower")}
    tries = [marks(experiment(200 + seed, inner=1.3)) for seed in range(TRIES)]
    assert sum(found == right for found in tries) >= 18
    assert sum(found - right != set() for found in tries) <= 1
