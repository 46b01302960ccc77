"""What a reader of a comparison must know about the runs: order, machines, versions, damage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opscope.analyse.compare_runs import Run

#: Sides count as alternating while their mean ranks in time differ by at most that share of the
#: number of runs. One side all before the other has 1/2, strict alternation almost 0.
_APART = 0.25


def notes(base: Sequence[Run], new: Sequence[Run]) -> Iterator[str]:
    """The sentences, the gravest first."""
    yield from _about_order(base, new)
    for word, what in (("machine", "machines (or boots)"), ("versions", "versions")):
        sides = [_told(side, word) for side in (base, new)]
        if all(sides) and sides[0] != sides[1]:
            yield f"base and new are of different {what}: {' against '.join(map(_list, sides))}"
    for name, side in (("base", base), ("new", new)):
        cut = sum(not run.whole for run in side)
        if cut:
            verb = "is" if cut == 1 else "are"
            yield f"{cut} of {len(side)} {name} runs {verb} cut short, or spans were lost"


def _about_order(base: Sequence[Run], new: Sequence[Run]) -> Iterator[str]:
    moments = [(run.began_ns, 0) for run in base] + [(run.began_ns, 1) for run in new]
    known = sorted((began, side) for began, side in moments if began is not None)
    if len(known) < len(moments):
        yield (
            "when the runs were made is not known: unless base and new alternated, "
            "a machine that grew slower in between looks like a change"
        )
        return
    if len(known) < 3:
        return
    ranks: tuple[list[int], list[int]] = ([], [])
    for rank, (_, side) in enumerate(known):
        ranks[side].append(rank)
    apart = sum(ranks[1]) / len(ranks[1]) - sum(ranks[0]) / len(ranks[0])
    if abs(apart) > _APART * len(known):
        first, last = ("base", "new") if apart > 0 else ("new", "base")
        yield (
            f"the {first} runs were made before the {last} ones, not in alternation: "
            "a machine that grew slower or faster in between looks like a change"
        )


def _told(side: Sequence[Run], word: str) -> set[str]:
    """What the processes of a side say about their machine or versions."""
    found: set[str] = set()
    for process in (process for run in side for process in run.processes):
        if word == "machine":
            found.add(process.machine)
        else:
            found |= {f"{name} {version}" for name, version in process.versions.items()}
    return found - {""}


def _list(words: set[str]) -> str:
    return ", ".join(sorted(words))
