"""Every operator of an MXNet profile once: it is written as a slice of its row and as a task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.totals import distinct
from opscope.importers.mxnet.events import Slices

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def once(slices: Slices, engine: Bools, custom: int) -> tuple[Slices, Bools, int, int]:
    """Of operators that were written as a slice of their row and as a task only the first copy,
    which encloses the other.

    `engine` marks what the engine wrote; `custom` is the entry of the category that a task tells
    of its copy. Returns the slices, which of them are engine tasks without a copy, how many copies
    went and how many of the engine's have none.
    """
    rows, tasks = np.flatnonzero(engine & ~slices.task), np.flatnonzero(engine & slices.task)
    row, task = _copies(slices, rows, tasks)
    cat = slices.cat.copy()
    told = cat[task] == custom
    cat[row[told]] = custom
    alone = engine & slices.task
    alone[task] = False
    kept = np.ones(len(slices), bool)
    kept[task] = False
    return (
        replace(slices, cat=cat).take(kept),
        alone[kept],
        len(task),
        len(rows) - len(row),
    )


def _copies(slices: Slices, rows: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    """Pairs of a slice and the task that is the same operator: of one name and thread, inside it.

    The first of both, the second of both, ... where that fits; else the next that does.
    """
    both = np.concatenate((rows, tasks))
    group = distinct(slices.name[both], slices.thread[both])[1]
    is_task = np.arange(len(both)) >= len(rows)
    start, end = slices.start_ns[both], slices.end_ns[both]
    order = np.lexsort((end, start, is_task, group))
    both, group, is_task = both[order], group[order], is_task[order]
    where = np.arange(len(both))
    first = np.maximum.accumulate(
        np.where(np.append(True, (np.diff(group) != 0) | (np.diff(is_task) != 0)), where, 0)
        if len(both)
        else where
    )
    rank = where - first
    # The rank-th slice of a group stands that many places behind the first slice of the group.
    base = np.searchsorted(group, group)
    partner = base + rank
    fits = is_task & (partner < first)
    partner = np.where(fits, partner, 0)
    inside = fits & _inside(slices, both, both[partner] if len(both) else both)
    bad = np.zeros(int(group.max(initial=-1)) + 1, bool)
    bad[group[is_task & ~inside]] = True
    sure = inside & ~bad[group]
    row, task = [both[partner[sure]]], [both[sure]]
    for one in np.flatnonzero(bad).tolist():
        low, high = np.searchsorted(group, (one, one + 1)).tolist()
        split = low + int((~is_task[low:high]).sum())
        found = _next_fit(slices, both[low:split], both[split:high])
        row.append(found[:, 0])
        task.append(found[:, 1])
    return np.concatenate(row), np.concatenate(task)


def _inside(slices: Slices, inner: Ints, outer: Ints) -> Bools:
    begins = slices.start_ns[outer] <= slices.start_ns[inner]
    ends = slices.end_ns[inner] <= slices.end_ns[outer]
    fits: Bools = begins & (ends | slices.incomplete[inner] | slices.incomplete[outer])
    return fits


def _next_fit(slices: Slices, rows: Ints, tasks: Ints) -> Ints:
    """The same one by one: each task, by start, to the latest free slice around it."""
    pairs: list[tuple[int, int]] = []
    open_: list[int] = []
    begun = 0
    start, end = slices.start_ns, slices.end_ns
    for task in tasks.tolist():
        while begun < len(rows) and start[rows[begun]] <= start[task]:
            open_.append(int(rows[begun]))
            begun += 1
        # What ended before this task is around no later one.
        loose = slices.incomplete
        open_ = [row for row in open_ if end[row] >= start[task] or loose[row]]
        for row in reversed(open_):
            if end[task] <= end[row] or loose[row] or loose[task]:
                pairs.append((row, task))
                open_.remove(row)
                break
    return np.array(pairs, np.int64).reshape(-1, 2)
