"""Whose an operator of an MXNet profile is: the file names the custom operator, never the call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution import looking_through, nest
from opscope.attribution.totals import distinct
from opscope.model import SPAN, Kind, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """`op` is a number for each operator and direction; `thread` is -1 where it is not known."""

    op: Ints
    thread: Ints
    start_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.op)

    def and_also(self, other: Calls) -> Calls:
        """These and those."""
        return Calls(
            np.concatenate((self.op, other.op)),
            np.concatenate((self.thread, other.thread)),
            np.concatenate((self.start_ns, other.start_ns)),
            np.concatenate((self.end_ns, other.end_ns)),
        )


def raised(calls: Calls, last: Calls, subs: Calls) -> Calls:
    """The calls that left nothing but the wait at their end, in `last`.

    Where they ran and how long is not in the file. Each stands, without length, where the first of
    `subs` begins that came after the call before it, or else at its wait.
    """
    where = last.start_ns.copy()
    for op in np.unique(last.op).tolist():
        mine = np.flatnonzero(last.op == op)
        mine = mine[np.argsort(last.start_ns[mine], kind="stable")]
        waited = last.start_ns[mine]
        ended = np.sort(np.concatenate((calls.end_ns[calls.op == op], waited)))
        before = np.searchsorted(ended, waited) - 1
        bound = np.where(before >= 0, ended[np.maximum(before, 0)], np.iinfo(np.int64).min)
        begun = np.sort(subs.start_ns[subs.op == op])
        if len(begun):
            first = np.minimum(np.searchsorted(begun, bound, "right"), len(begun) - 1)
            first_ns = begun[first]
            fits = (first_ns > bound) & (first_ns < waited)
            where[mine] = np.where(fits, first_ns, waited)
    return Calls(last.op, np.full(len(last), -1, np.int64), where, where)


def callers(calls: Calls, subs: Calls) -> tuple[Ints, Bools]:
    """(the call each sub-operator is given to or -1, whether others of its operator fit as well).

    Among the calls of its operator: the innermost around it on its own thread. Else of those on
    other threads that were on when it began the one that ended first, as work is handed over all
    along; else, as an engine runs behind, the one that had ended last.
    """
    if not len(calls) or not len(subs):
        return np.full(len(subs), -1, np.int64), np.zeros(len(subs), bool)
    n, at = len(calls), subs.start_ns
    op, thread = np.concatenate((calls.op, subs.op)), np.concatenate((calls.thread, subs.thread))
    own = distinct(op, thread)[1]
    here = _innermost(own[:n], calls.start_ns, calls.end_ns, own[n:], at)
    group = distinct(op)[1]
    on = _innermost(group[:n], -calls.end_ns, -calls.start_ns, group[n:], -at)
    begun = _last(group[:n], calls.start_ns, group[n:], at)
    gone = _last(group[:n], calls.end_ns, group[n:], at)
    found = np.where(here >= 0, here, np.where(on >= 0, on, gone))
    earliest = _first_together(group[:n], calls)
    several = (here < 0) & (begun >= 0) & (earliest[begun] != begun)
    return found, several


def _innermost(group: Ints, start: Ints, end: Ints, group_at: Ints, at: Ints) -> Ints:
    """For each moment the call of its group around it that began last, -1: none."""
    n = len(group)
    table = np.zeros(n + len(at), SPAN)
    table["id"] = np.arange(len(table))
    table["kind"][:n], table["kind"][n:] = Kind.CALL, Kind.OP
    table["lane"] = np.concatenate((group, group_at))
    table["start_ns"] = np.concatenate((start, at))
    table["end_ns"] = np.concatenate((end, at))
    return looking_through(nest(table).parent, table["kind"] == Kind.OP)[n:]


def _last(group: Ints, when: Ints, group_at: Ints, at: Ints) -> Ints:
    """For each moment the last of its group up to then, -1: none."""
    n = len(group)
    both = np.concatenate((group, group_at))
    mark = np.arange(len(both)) >= n
    order = np.lexsort((mark, np.concatenate((when, at)), both))
    place = np.maximum.accumulate(np.where(mark[order], -1, np.arange(len(order))))
    found = np.where(place >= 0, order[np.maximum(place, 0)], -1)
    found = np.where((found >= 0) & (both[found] == both[order]), found, -1)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    answer: Ints = found[back[n:]]
    return answer


def _first_together(group: Ints, calls: Calls) -> Ints:
    """For each call the first of the calls of its group that it is on together with, in a chain."""
    order = np.lexsort((calls.start_ns, group))
    moments, rank = np.unique(
        np.concatenate((calls.start_ns, calls.end_ns))[None, :], return_inverse=True
    )
    rank = rank.reshape(-1)
    ahead = group[order] * (len(moments) + 1)
    begins, ends = ahead + rank[: len(calls)][order], ahead + rank[len(calls) :][order]
    alone = np.append(True, np.maximum.accumulate(ends)[:-1] <= begins[1:])
    first = np.maximum.accumulate(np.where(alone, np.arange(len(order)), 0))
    answer: Ints = np.empty_like(order)
    answer[order] = order[first]
    return answer


def within(calls: Calls, wholes: Calls) -> tuple[Ints, Bools]:
    """(the call that each whole call of the engine's is or -1, whether none else fits).

    The engine begins them in the order in which it hands them out: each call, by start, is the
    first free one around it.
    """
    found = np.full(len(wholes), -1, np.int64)
    sure = np.zeros(len(wholes), bool)
    if not len(wholes) or not len(calls):
        return found, sure
    order = np.lexsort((wholes.end_ns, wholes.start_ns))
    start, end = wholes.start_ns[order], wholes.end_ns[order]
    fresh = np.append(True, np.maximum.accumulate(end)[:-1] < start[1:])
    heap = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    closes = np.maximum.reduceat(end, first)
    of_call = np.searchsorted(start[first], calls.start_ns, "right") - 1
    inside = (of_call >= 0) & (calls.end_ns <= closes[np.maximum(of_call, 0)])
    inside &= calls.start_ns <= closes[np.maximum(of_call, 0)]
    some = np.flatnonzero(inside)
    some = some[np.lexsort((calls.end_ns[some], calls.start_ns[some]))]
    many_calls = np.bincount(of_call[some], minlength=len(first))
    many_wholes = np.bincount(heap, minlength=len(first))
    single = (many_calls == 1) & (many_wholes == 1)
    plain = some[single[of_call[some]]]
    target = order[first[of_call[plain]]]
    found[target], sure[target] = plain, True
    rest = some[~single[of_call[some]]]
    waiting: list[int] = []
    begun = 0
    crowd = np.flatnonzero(~single[heap])
    for call in rest.tolist():
        while begun < len(crowd) and start[crowd[begun]] <= calls.start_ns[call]:
            waiting.append(int(crowd[begun]))
            begun += 1
        waiting = [one for one in waiting if end[one] >= calls.start_ns[call]]
        for one in waiting:
            if end[one] >= calls.end_ns[call]:
                found[order[one]] = call
                waiting.remove(one)
                break
    return found, sure


def own_by_time(rows: Rows) -> None:
    """What has no owner yet belongs to the innermost call around it on its own thread."""
    kind = rows["kind"]
    free = (rows["owner"] == 0) & ((kind == Kind.OP) | (kind == Kind.WAIT))
    if not free.any() or not (kind == Kind.CALL).any():
        return
    around = looking_through(nest(rows).parent, kind != Kind.CALL)
    found = np.flatnonzero(free & (around >= 0))
    rows["owner"][found] = rows["id"][around[found]]
    rows["phase"][found] = rows["phase"][around[found]]
