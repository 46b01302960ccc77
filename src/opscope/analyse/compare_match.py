"""Which rows of several runs are the same operator at the same place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

#: The exact identity of a row, and two looser ones, each with all that is around it.
Identity = tuple[tuple[Hashable, ...], tuple[Hashable, ...], tuple[Hashable, ...]]
#: For each run that has it, by number, the number of its row.
Group = dict[int, int]


def match(runs: Sequence[Sequence[Identity]]) -> list[Group]:
    """Rows that belong together, in the order in which they first appear.

    Equal identities do. What some runs lack is looked for among looser ones: the operator without
    its registration number, then its name on show, so that a foreign trace finds its recording.
    Loose relatives become one only where no run has two of them.
    """
    groups: dict[tuple[Hashable, ...], Group] = {}
    loose: dict[int, Identity] = {}
    for run, rows in enumerate(runs):
        for number, identity in enumerate(rows):
            again = 0
            while run in groups.setdefault((identity[0], again), {}):
                again += 1  # two rows of one run that nothing tells apart
            group = groups[identity[0], again]
            group[run] = number
            loose.setdefault(id(group), identity)
    found = list(groups.values())
    for level in (1, 2):
        found = _joined(found, {key: identity[level] for key, identity in loose.items()}, len(runs))
    return found


def _joined(groups: list[Group], names: dict[int, tuple[Hashable, ...]], runs: int) -> list[Group]:
    alike: dict[tuple[Hashable, ...], list[Group]] = {}
    for group in groups:
        if len(group) < runs:
            alike.setdefault(names[id(group)], []).append(group)
    gone: set[int] = set()
    for first, *others in alike.values():
        together = [run for group in (first, *others) for run in group]
        if others and len(together) == len(set(together)):
            for other in others:
                first.update(other)
                gone.add(id(other))
    return [group for group in groups if id(group) not in gone]
