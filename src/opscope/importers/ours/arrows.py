"""The arrows of an exported trace: submissions and links of the spans whose edges they touch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import among, nest
from opscope.attribution.totals import distinct
from opscope.importers.quality import Quality
from opscope.model import LINK, SPAN, Kind, LinkKind, Rows

Ints = NDArray[np.int64]

HALF = "arrows of which one end is missing (left out)"
LOOSE = "arrows that end where nothing begins (left out)"

_KINDS = {kind.name.lower(): int(kind) for kind in LinkKind}
#: What begins where an arrow of a kind ends; anything else only where no such span does.
_TARGETS = {
    LinkKind.PUSH: (Kind.OP, Kind.CALL, Kind.DEVICE),
    LinkKind.SPAWN: (Kind.TASK,),
    LinkKind.LAUNCH: (Kind.DEVICE,),
    LinkKind.BACKWARD: (Kind.CALL,),
}


class Drawn:
    """Ends of arrows as they are met."""

    def __init__(self) -> None:
        self._ends: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([], [])

    def add(self, begins: bool, number: int, name: str, track: int, moment_ns: int) -> None:
        """One end of the arrow of that number; its name is its kind."""
        self._ends[begins].append((number, _KINDS.get(name, 0), track, moment_ns))

    def join(self, rows: Rows, track: Ints, owned: NDArray[np.bool_], quality: Quality) -> Rows:
        """The links that only arrows tell; `rows` learn who submitted them, and when.

        `track` is the thread that each of the rows stands on, `owned` whether it has an owner: a
        push or spawn from there needs no link. Times of rows and arrows have the same zero.
        """
        heads, tails = (np.array(some, np.int64).reshape(-1, 4) for some in self._ends)
        _, first, second = np.intersect1d(tails[:, 0], heads[:, 0], return_indices=True)
        quality.count(HALF, len(tails) + len(heads) - 2 * len(first))
        tails, heads = tails[first], heads[second]
        target = np.full(len(heads), -1, np.int64)
        for link, targets in _TARGETS.items():
            mine = np.flatnonzero(heads[:, 1] == link)
            target[mine] = _starting(rows, track, among(rows, targets), heads[mine])
        other = np.flatnonzero(target < 0)
        target[other] = _starting(rows, track, among(rows, tuple(Kind)), heads[other])
        lost = heads[target < 0]
        moments = [f"{at / 1e3:.3f} us" for at in lost[:5, 3].tolist()]
        quality.count(LOOSE, len(lost), moments)
        tails, target = tails[target >= 0], target[target >= 0]
        kind = tails[:, 1]
        lane = np.zeros(int(track.max(initial=-1)) + 1, np.int64)
        lane[track] = rows["lane"]
        caused = np.isin(kind, (LinkKind.PUSH, LinkKind.SPAWN)) & (tails[:, 2] < len(lane))
        pushed = caused & (kind == LinkKind.PUSH)
        _submit(rows, target[pushed], lane[tails[pushed, 2]], tails[pushed, 3])
        source = np.full(len(target), -1, np.int64)
        free = caused & ~owned[target]
        source[free] = _around(rows, lane[tails[free, 2]], tails[free, 3])
        source[~caused] = _starting(rows, track, among(rows, tuple(Kind)), tails[~caused])
        told = source >= 0
        links = np.zeros(int(told.sum()), LINK)
        back = kind[told] == LinkKind.BACKWARD
        ends = rows["id"][source[told]], rows["id"][target[told]]
        links["kind"] = kind[told]
        links["source"], links["target"] = np.where(back, ends[::-1], ends)
        return links


def _submit(rows: Rows, target: Ints, lane: Ints, moment_ns: Ints) -> None:
    rows["submitted_lane"][target] = lane
    # Calls and tasks have it in their arguments, if it is known.
    unknown = np.isin(rows["kind"][target], (Kind.OP, Kind.DEVICE))
    rows["submitted_ns"][target[unknown]] = moment_ns[unknown]


def _starting(rows: Rows, track: Ints, chosen: NDArray[np.bool_], ends: Ints) -> Ints:
    """The chosen row that begins at each end of an arrow, -1 for none. Where several do, the first
    arrow that ends there has the first of them, and so on."""
    row = np.flatnonzero(chosen)
    if not len(row) or not len(ends):
        return np.full(len(ends), -1, np.int64)
    tracks = np.concatenate((track[row], ends[:, 2]))
    _, place = distinct(tracks, np.concatenate((rows["start_ns"][row], ends[:, 3])))
    mine, theirs = place[: len(row)], place[len(row) :]
    order = np.argsort(mine, kind="stable")
    low, high = (np.searchsorted(mine[order], theirs, side) for side in ("left", "right"))
    turn = np.arange(len(theirs)) - _first_of(theirs)
    wanted = np.minimum(low + turn, high - 1)
    return np.where(high > low, row[order[wanted]], -1)


def _first_of(group: Ints) -> Ints:
    """So that counting from it tells the how manieth of its group each is."""
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(group[order]) != 0))
    within = np.arange(len(group)) - np.repeat(begins, np.diff(np.append(begins, len(group))))
    turn = np.empty(len(group), np.int64)
    turn[order] = within
    return np.arange(len(group)) - turn


def _around(rows: Rows, lane: Ints, moment_ns: Ints) -> Ints:
    """The row of the innermost span around each moment, -1 for none."""
    points = np.zeros(len(lane), SPAN)
    points["lane"], points["id"] = lane, np.iinfo(np.int64).max
    points["start_ns"] = points["end_ns"] = moment_ns
    points["kind"] = Kind.WAIT  # behind what begins with it
    parent = nest(np.concatenate((rows, points))).parent
    found = parent[len(rows) :]
    while (inside := found >= len(rows)).any():  # two points at one moment: one lies in the other
        found = np.where(inside, parent[found], found)
    return found
